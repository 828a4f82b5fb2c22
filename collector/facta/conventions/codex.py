"""Codex CLI: log events named in `event.name`; spans carry no content and make no turns.

`codex.api_request` opens a turn, the completed stream event closes it with its usage, and the
results of tools come whole with their arguments. Neither summaries nor sealed values are recorded.
Source: openai/codex codex-rs/otel and docs/config (otel).
"""

from facta.conventions.genai import fact
from facta.conventions.messages import read_items
from facta.conventions.table import fill
from facta.conventions.values import Attrs, attributes_of, event_name, milliseconds, number, text_of
from facta.model.facts import Call, Fact, Turn
from facta.model.records import Record

NAME = "codex"
_HTTP_ERROR = 400
_KEYS = {"arguments", "output", "prompt"}


def applies(record: Record, attrs: Attrs) -> bool:
    """By the scopes that Codex exports under, or its event names."""
    return record.scope.name.startswith("codex") or event_name(record, attrs).startswith("codex.")


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _KEYS


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """The fact of one log event; a span's usage as an aggregate, its tool events as calls."""
    if record.signal == "log":
        return _logged(record, event_name(record, attrs), attrs)
    out: list[Fact] = []
    for event in record.events:
        told = attributes_of(event.attributes)
        if text_of(told.get("event.name")) in ("codex.tool_result", "codex.tool_decision"):
            out += _logged(record, text_of(told["event.name"]), told)
    if any(key.startswith("gen_ai.usage.") for key in attrs):
        out.append(fact(fill(Turn(role="aggregate"), attrs), "later_request", record))
    return out


def _logged(record: Record, name: str, attrs: Attrs) -> list[Fact]:
    if name in ("codex.tool_result", "codex.tool_decision"):
        return [fact(_call(name, record, attrs), "tool_span", record)]
    if name in ("codex.user_prompt", "codex.api_request"):
        return [fact(_member(name, record, attrs), "response", record)]
    if name == "codex.sse_event" and text_of(attrs.get("event.kind")) == "response.completed":
        return [fact(_member(name, record, attrs), "response", record)]
    return []


def _member(name: str, record: Record, attrs: Attrs) -> Turn:
    turn = Turn(
        role="member",
        group=text_of(attrs.get("conversation.id")),
        sequence=record.start_ns,
        settings={"provider": "openai"},
    )
    if name == "codex.user_prompt":
        turn.opens = "next"
        turn.input = read_items(attrs.get("prompt"), record.marks)
    elif name == "codex.api_request":
        turn.opens = "this"
        status = number(attrs.get("http.response.status_code"))
        turn.error = text_of(attrs.get("error.message")) or (
            f"HTTP {status}" if status and status >= _HTTP_ERROR else ""
        )
    return fill(turn, attrs)


def _call(name: str, record: Record, attrs: Attrs) -> Call:
    render = record.marks.render
    call = Call(
        call_id=render(text_of(attrs.get("call_id"))), tool=render(text_of(attrs.get("tool_name")))
    )
    if name == "codex.tool_decision":
        call.decision = render(text_of(attrs.get("decision")))
        return call
    if attrs.get("arguments") is not None:
        call.arguments = render(text_of(attrs["arguments"]))
    if attrs.get("output") is not None:
        call.result = render(text_of(attrs["output"]))
    call.status = "error" if attrs.get("success") in (False, "false") else "ok"
    if attrs.get("output_truncated") in (True, "true"):
        call.flags.append("result_truncated")
    call.duration_ns = milliseconds(attrs.get("duration_ms"))
    return call
