"""The attributes that no fact took: kept as evidence, with summaries and sealed values cut out."""

from collections.abc import Callable

from facta.conventions import own
from facta.conventions.genai import event_consumed, fact
from facta.conventions.parts import REASONING, read_part, summary_texts
from facta.conventions.table import known_keys, table
from facta.conventions.values import load, strings, text_of
from facta.model.facts import Aside, Entry, Fact, Part
from facta.model.records import Record, Value

_DEPTH = 64


def leftover(
    record: Record, consumed: Callable[[str], bool], *, messages_read: bool = False
) -> tuple[list[Fact], dict[str, Value]]:
    """(asides, kept attributes) of a record.

    Kept: the span's or log record's attributes, its events', its body, and what its resource says,
    each once under its own key (`event.<name>.<key>` for events; where GenAI's messages that are
    events were read, their contents are no attributes).
    """
    aside = Aside()
    kept: dict[str, Value] = {}
    known = known_keys()
    for place, key, value in _places(record, messages_read=messages_read):
        if (
            consumed(key)
            or own.consumed(key)
            or (key in known and not list(_marked(record, value)))
        ):
            continue
        kept[place] = _clean(value, key, place, record, aside)
    return ([fact(aside, "response", record)] if aside.entries else []), kept


def _places(record: Record, *, messages_read: bool) -> list[tuple[str, str, Value]]:
    out: list[tuple[str, str, Value]] = [(key, key, value) for key, value in record.attributes]
    for event in record.events:
        out += [
            (f"event.{event.name}.{key}", key, value)
            for key, value in event.attributes
            if not (messages_read and event_consumed(event.name, key))
        ]
    if record.body not in (None, ""):
        out.append(("body", "log.body", record.body))
    if record.name:
        out.append(("name", "record.name", record.name))
    if record.status_message:
        out.append(("status", "record.status", record.status_message))
    out += [
        (f"link.{i}", "record.link", f"{trace}:{span}")
        for i, (trace, span) in enumerate(record.links)
    ]
    out += [(f"resource.{key}", f"resource.{key}", value) for key, value in record.scope.resource]
    return out


def _marked(record: Record, value: Value) -> list[str]:
    return [text for text in strings(value) if record.marks.find(text)]


def _clean(value: Value, key: str, place: str, record: Record, aside: Aside) -> Value:
    """A value without its summaries (moved to the aside) and with its marks rendered."""
    for sealed in (s for text in strings(value) for s in record.marks.find(text)):
        aside.entries.append(
            Entry(Part("sealed", sealed=[sealed]), place=record.marks.render(place))
        )
    if key in table()["summaries"]:
        return _moved(text_of(value), place, record, aside)
    opened, _ = load(value)
    if isinstance(opened, (dict, list)) and _holds_reasoning(opened, _DEPTH):
        return _walk(opened, place, record, aside, _DEPTH)
    return _rendered(value, record, _DEPTH)


def _moved(text: str, place: str, record: Record, aside: Aside) -> str:
    shown = record.marks.render(text)
    if not shown.strip() or record.marks.is_mark(text):
        return ""
    aside.entries.append(Entry(Part("reasoning", shown), place=record.marks.render(place)))
    return f"[ux {len(shown)}]"


def _reasoning(value: Value) -> bool:
    if not isinstance(value, dict):
        return False
    return (
        text_of(value.get("type")).lower() in REASONING
        or value.get("thought") is True
        or value.get("reasoningContent") is not None
    )


def _holds_reasoning(value: Value, depth: int) -> bool:
    if depth == 0:
        return False
    if isinstance(value, dict):
        named = any(
            k in table()["summaries"] and isinstance(v, str) and v for k, v in value.items()
        )
        return (
            named
            or _reasoning(value)
            or any(_holds_reasoning(v, depth - 1) for v in value.values())
        )
    if isinstance(value, str):
        opened, _ = load(value)
        return isinstance(opened, (dict, list)) and _holds_reasoning(opened, depth - 1)
    return isinstance(value, list) and any(_holds_reasoning(v, depth - 1) for v in value)


def _walk(value: Value, place: str, record: Record, aside: Aside, depth: int) -> Value:
    if depth == 0:
        return None
    if isinstance(value, str):
        opened, _ = load(value)
        if isinstance(opened, (dict, list)):
            return _walk(opened, place, record, aside, depth - 1)
        return record.marks.render(value)
    if isinstance(value, list):
        return [_walk(entry, place, record, aside, depth - 1) for entry in value]
    if not isinstance(value, dict):
        return value
    if _reasoning(value):
        for part in read_part(value, "assistant", record.marks):
            if part.text:
                aside.entries.append(
                    Entry(Part("reasoning", part.text), place=record.marks.render(place))
                )
        size = sum(len(text) for text in summary_texts(value, record.marks))
        return {"type": value.get("type"), "ux": size}
    out: dict[str, Value] = {}
    for key, inner in value.items():
        if key in table()["summaries"] and isinstance(inner, str):
            out[record.marks.render(key)] = _moved(inner, place, record, aside)
        else:
            out[record.marks.render(key)] = _walk(inner, place, record, aside, depth - 1)
    return out


def _rendered(value: Value, record: Record, depth: int) -> Value:
    if isinstance(value, str):
        return record.marks.render(value)
    if depth == 0:
        return None
    if isinstance(value, list):
        return [_rendered(entry, record, depth - 1) for entry in value]
    if isinstance(value, dict):
        return {record.marks.render(k): _rendered(v, record, depth - 1) for k, v in value.items()}
    return value
