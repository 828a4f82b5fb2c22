"""One reader for the parts of messages, whoever wrote them.

Every provider and instrumentation has its own shape for the same five things (text, reasoning,
call, result, sealed state). They are told apart by shape, since type labels lie both ways: the
shapes of OTel GenAI, OpenAI Chat and Responses, Anthropic Messages, Gemini, the AI SDK, Bedrock's
Converse and OpenInference are all read here, so that a new mixture of them needs no new code.
"""

from facta.conventions.values import dump, load, strings, text_of
from facta.model.facts import Part
from facta.model.records import Value
from facta.model.sealed import Marks, Sealed

Shape = dict[str, Value]

REASONING = {
    "reasoning", "thinking", "redacted_thinking", "reasoning_text", "summary_text",
    "reasoning-delta", "reasoningcontent", "reasoning_content", "reasoning.text",
    "reasoning.summary", "reasoning.encrypted", "thought",
}  # fmt: skip
CALLS = {
    "tool_call", "function_call", "tool_use", "tool-call", "server_tool_use", "server_tool_call",
    "custom_tool_call", "mcp_call", "function", "tool_call_request",
}  # fmt: skip
RESULTS = {
    "tool_call_response", "function_call_output", "tool_result", "tool-result",
    "server_tool_call_response", "custom_tool_call_output", "tool_response", "function_response",
}  # fmt: skip
TEXTS = {"text", "input_text", "output_text", "refusal"}
_SUMMARY_KEYS = ("summary", "content", "text", "thinking", "reasoning", "reasoningText", "thought")


def sealed_in(value: Value, marks: Marks) -> list[Sealed]:
    """The sealed values marked anywhere in a value, in order, each place once."""
    return [sealed for text in strings(value) for sealed in marks.find(text)]


def truncated(side: str, value: Value, marks: Marks) -> list[str]:
    """The flags of a request or response whose text came cut: that it was, and how long it came."""
    text = text_of(value)
    sealed = sum(s.size - len(s.label()) for s in marks.find(text))
    return [f"{side}_truncated", f"{side}_truncated_to:{len(marks.render(text)) + sealed}"]


def clean_id(value: Value, marks: Marks) -> str:
    """An id without what was packed into it: LiteLLM's `<id>__thought__<signature>` is cut at the mark."""
    text = text_of(value)
    if "\ue000" in text:
        text = text.split("\ue000", 1)[0].removesuffix("__thought__")
    return marks.render(text)


def read_part(part: Value, role: str, marks: Marks) -> list[Part]:
    """The parts that one entry of a message's content holds (mostly one)."""
    if isinstance(part, str):
        return [Part("text", marks.render(part), sealed=marks.find(part))] if part else []
    if not isinstance(part, dict):
        return (
            []
            if part is None
            else [Part("other", marks.render(dump(part)), sealed=sealed_in(part, marks))]
        )
    kind = text_of(part.get("type")).lower()
    for reader in (_reasoning, _call, _result, _compaction, _text):
        if (read := reader(part, kind, role, marks)) is not None:
            return read
    return [Part("other", marks.render(dump(part)), sealed=sealed_in(part, marks))]


def _reasoning(part: Shape, kind: str, _role: str, marks: Marks) -> list[Part] | None:
    if part.get("reasoningContent") is not None:
        inner = part["reasoningContent"]
        inner = inner if isinstance(inner, dict) else {"text": inner}
        return [Part("reasoning", summary_text(inner, marks), sealed=sealed_in(part, marks))]
    if not (kind in REASONING or part.get("thought") is True):
        return None
    texts = summary_texts(part, marks)
    head = Part("reasoning", texts[0] if texts else "", sealed=sealed_in(part, marks))
    return [head, *(Part("reasoning", text) for text in texts[1:])]


def summary_texts(part: Shape, marks: Marks) -> list[str]:
    """The readable texts of a reasoning part: one per summary part, none where all is sealed."""
    for key in _SUMMARY_KEYS:
        value = part.get(key)
        if value is None or value == [] or isinstance(value, bool):
            continue
        return _readable(value, marks)
    return []


def summary_text(part: Shape, marks: Marks) -> str:
    """All readable text of a reasoning part as one."""
    return "\n".join(summary_texts(part, marks))


def _readable(value: Value, marks: Marks) -> list[str]:
    """Strings of a summary: plain, a list of parts, or such a list as a JSON text (Traceloop)."""
    if isinstance(value, str):
        if marks.is_mark(value):
            return []
        opened, _ = load(value) if value[:2] in ("[{", "{'", '{"', "['") else (value, False)
        if isinstance(opened, str):
            return [marks.render(value)]
        value = opened
    if isinstance(value, dict):
        return summary_texts(value, marks)
    if isinstance(value, list):
        return [text for entry in value for text in _readable(entry, marks)]
    return []


def _call(part: Shape, kind: str, _role: str, marks: Marks) -> list[Part] | None:
    inner = _inner(part, "functionCall", "function_call", "toolUse", "tool_call")
    if inner is None and kind not in CALLS:
        return None
    shape: Shape = {**part, **inner} if inner is not None else part
    function = shape.get("function")
    if isinstance(function, dict):
        shape = {**shape, **function}
    if (
        kind not in CALLS
        and inner is not None
        and not ({"name", "args", "arguments", "input"} & shape.keys())
    ):
        return None
    arguments = _first(shape, "arguments", "args", "input", "server_tool_call", "parameters")
    call_id = _first(shape, "call_id", "id", "toolCallId", "toolUseId", "tool_call_id")
    return [
        Part(
            "call",
            marks.render(text_of(arguments)),
            call_id=clean_id(call_id, marks),
            tool=marks.render(text_of(_first(shape, "name", "toolName", "tool_name"))),
            sealed=sealed_in(part, marks),
        )
    ]


def _result(part: Shape, kind: str, _role: str, marks: Marks) -> list[Part] | None:
    inner = _inner(part, "functionResponse", "function_response", "toolResult")
    if inner is None and kind not in RESULTS and not kind.endswith("_tool_result"):
        return None
    shape: Shape = {**part, **inner} if inner is not None else part
    value = _first(shape, "response", "result", "output", "content", "server_tool_call_response")
    error = _first(shape, "is_error", "isError")
    if text_of(shape.get("status")) == "error":
        error = True
    return [
        Part(
            "result",
            marks.render(result_text(value)),
            call_id=clean_id(
                _first(
                    shape, "call_id", "tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "id"
                ),
                marks,
            ),
            tool=marks.render(text_of(_first(shape, "name", "toolName", "tool_name"))),
            is_error=bool(error) if error is not None else None,
            sealed=sealed_in(part, marks),
        )
    ]


def result_text(value: Value) -> str:
    """A result as its tool gave it: the one text in its wrapping, or compact JSON of it all.

    Wrappings that hold nothing else are undone: Anthropic's and Converse's one-element list of a
    text block, the AI SDK's `{"type": "text", "value": …}`, Gemini's `{"result": …}`.
    """
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        keys = value.keys() - {"type", "cache_control", "citations", "annotations"}
        if keys <= {"text"} and isinstance(value.get("text"), str):
            return text_of(value["text"])
        if keys in ({"value"}, {"result"}, {"output"}):
            (only,) = (value[key] for key in keys)
            return result_text(only)
    return text_of(value)


def _compaction(part: Shape, kind: str, _role: str, marks: Marks) -> list[Part] | None:
    if kind not in ("compaction", "compaction_summary"):
        return None
    text = _first(part, "content", "summary", "text")
    shown = "" if isinstance(text, str) and marks.is_mark(text) else marks.render(text_of(text))
    return [Part("compaction", shown, sealed=sealed_in(part, marks))]


def _text(part: Shape, kind: str, role: str, marks: Marks) -> list[Part] | None:
    text = _first(part, "text", "content", "refusal", "input_text", "output_text")
    if kind not in TEXTS and not (kind == "" and text is not None):
        return None
    if isinstance(text, (list, dict)):
        inner = text if isinstance(text, list) else [text]
        return [found for entry in inner for found in read_part(entry, role, marks)]
    shown = "" if isinstance(text, str) and marks.is_mark(text) else marks.render(text_of(text))
    return [Part("text", shown, sealed=sealed_in(part, marks))]


def _inner(part: Shape, *keys: str) -> Shape | None:
    for key in keys:
        value = part.get(key)
        if isinstance(value, dict):
            return value
    return None


def _first(shape: Shape, *keys: str) -> Value:
    for key in keys:
        if shape.get(key) is not None:
            return shape[key]
    return None
