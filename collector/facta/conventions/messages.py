"""Messages and items: the ordered list of a request or of a response, whoever wrote it."""

from facta.conventions.parts import (
    CALLS,
    REASONING,
    RESULTS,
    clean_id,
    read_part,
    result_text,
    sealed_in,
)
from facta.conventions.values import load, text_of
from facta.model.facts import Item, Part
from facta.model.records import Value
from facta.model.sealed import Marks

_WRAPPERS = ("message", "kwargs", "data")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
_ITEM_TYPES = REASONING | CALLS | RESULTS | {"compaction", "compaction_summary"}


def read_items(value: Value, marks: Marks, role: str = "user") -> list[Item]:
    """The items of a list of messages; a text alone is one item of `role`.

    Positions are kept: every entry gives one item, an entry that cannot be read an empty one.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [Item(role, read_part(value, role, marks))] if value else []
    if isinstance(value, dict):
        return [read_item(value, marks, role)]
    if isinstance(value, list):
        return [read_item(entry, marks, role) for entry in value]
    return [Item(role, [Part("other", text_of(value))])]


def read_item(message: Value, marks: Marks, role: str = "user") -> Item:
    """One message or item."""
    message, _ = load(message)
    if not isinstance(message, dict):
        return Item(role, read_part(message, role, marks))
    message = _unwrapped(message)
    role = _role(message, role)
    kind = text_of(message.get("type")).lower()
    item_id = clean_id(message.get("id"), marks) if isinstance(message.get("id"), str) else ""
    if kind in _ITEM_TYPES and not ("parts" in message or "tool_calls" in message):
        return Item(role, read_part(message, role, marks), item_id)
    return Item(role, _parts(message, role, marks), item_id)


def _unwrapped(message: dict[str, Value]) -> dict[str, Value]:
    """OpenInference wraps a message in {"message": …}, LangChain in {"kwargs": …}."""
    for key in _WRAPPERS:
        inner = message.get(key)
        if isinstance(inner, dict) and not ({"content", "parts", "text"} & message.keys()):
            return {**{k: v for k, v in message.items() if k != key}, **inner}
    return message


def _role(message: dict[str, Value], default: str) -> str:
    role = message.get("role")
    if isinstance(role, str) and role:
        return {"model": "assistant", "ai": "assistant", "human": "user", "function": "tool"}.get(
            role, role
        )
    kind = text_of(message.get("type")).lower()
    if kind in RESULTS:
        return "tool"
    if kind in REASONING | CALLS:
        return "assistant"
    return default


def _parts(message: dict[str, Value], role: str, marks: Marks) -> list[Part]:
    parts = _thoughts(message, marks)
    if _is_tool_message(message, role):
        return [*parts, _tool_message(message, marks)]
    for key in ("parts", "contents", "content", "text", "refusal"):
        content = message.get(key)
        if content is None:
            continue
        opened = content if not isinstance(content, str) or key != "parts" else load(content)[0]
        entries = opened if isinstance(opened, list) else [opened]
        for entry in entries:
            parts += read_part(_content_entry(entry), role, marks)
        break
    have = {part.call_id for part in parts if part.kind == "call" and part.call_id}
    for part in _tool_calls(message, role, marks):
        if part.call_id not in have or not part.call_id:
            parts.append(part)
    return parts


def _content_entry(entry: Value) -> Value:
    """OpenInference's content entries: `{"message_content": {…}, "tool_call": {…}}`."""
    if isinstance(entry, dict):
        inner = entry.get("message_content")
        if isinstance(inner, dict):
            return {**{k: v for k, v in entry.items() if k != "message_content"}, **inner}
    return entry


def _thoughts(message: dict[str, Value], marks: Marks) -> list[Part]:
    """Reasoning that stands beside the content: DeepSeek's, OpenRouter's, LiteLLM's dialects."""
    details = message.get("reasoning_details") or message.get("thinking_blocks")
    if isinstance(details, list) and details:
        return [part for entry in details for part in read_part(entry, "assistant", marks)]
    for key in _THOUGHTS[:3]:
        value = message.get(key)
        if value is not None and value not in ("", []):
            return read_part({"type": "reasoning", "content": value}, "assistant", marks)
    return []


def _is_tool_message(message: dict[str, Value], role: str) -> bool:
    named = message.get("tool_call_id") or message.get("toolCallId")
    content = message.get("content")
    return (
        role == "tool"
        and bool(named)
        and not (
            isinstance(content, list)
            and any(
                isinstance(e, dict) and text_of(e.get("type")).lower() in RESULTS for e in content
            )
        )
    )


def _tool_message(message: dict[str, Value], marks: Marks) -> Part:
    content = message.get("content", message.get("text", message.get("contents")))
    error = message.get("is_error", message.get("isError"))
    return Part(
        "result",
        marks.render(result_text(content)),
        call_id=clean_id(message.get("tool_call_id") or message.get("toolCallId"), marks),
        tool=text_of(message.get("name")),
        is_error=bool(error) if error is not None else None,
        sealed=sealed_in(message, marks),
    )


def _tool_calls(message: dict[str, Value], role: str, marks: Marks) -> list[Part]:
    calls, _ = load(message.get("tool_calls", message.get("toolCalls")))
    single = message.get("function_call")
    entries = calls if isinstance(calls, list) else [single] if isinstance(single, dict) else []
    out: list[Part] = []
    for entry in entries:
        if isinstance(entry, dict):
            inner = entry.get("tool_call")
            shape = {**entry, **inner} if isinstance(inner, dict) else dict(entry)
            shape.pop("tool_call", None)
            out += read_part({**shape, "type": "tool_call"}, role, marks)
    return out
