"""Vercel AI SDK 6, and 7 with its legacy telemetry: `ai.*` attributes.

`ai.generateText` and `ai.streamText` wrap the steps of a loop; the model request is the inner
`doGenerate` or `doStream`. Reasoning parts are joined with line breaks; sealed values show only in
the next request's `providerOptions`.
Source: vercel/ai content/docs/03-ai-sdk-core/60-telemetry.mdx.
"""

from facta.conventions.genai import fact, unquoted
from facta.conventions.messages import read_items
from facta.conventions.parts import clean_id, read_part, truncated
from facta.conventions.table import fill
from facta.conventions.values import Attrs, elapsed, load, load_list, text_of
from facta.model.facts import Call, Fact, Item, Part, Turn
from facta.model.records import STATUS_ERROR, Record

NAME = "vercel.ai"
_KEYS = {
    "ai.prompt", "ai.prompt.messages", "ai.prompt.tools", "ai.response.text", "ai.response.reasoning",
    "ai.response.toolCalls", "ai.response.object", "ai.toolCall.args", "ai.toolCall.result",
}  # fmt: skip


def applies(_record: Record, attrs: Attrs) -> bool:
    """Every span of the SDK names its operation."""
    return "ai.operationId" in attrs


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _KEYS


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """A turn from a `do…` span, a call from a tool span, an aggregate from what wraps them."""
    operation = text_of(attrs.get("ai.operationId"))
    if operation == "ai.toolCall":
        return [fact(_call(record, attrs), "tool_span", record)]
    turn = _turn(record, attrs)
    if ".do" in operation:
        return [fact(turn, "response", record)]
    turn.role = "aggregate"
    return [fact(turn, "later_request", record)]


def _turn(record: Record, attrs: Attrs) -> Turn:
    marks = record.marks
    turn = fill(Turn(), attrs)
    messages, cut = load_list(attrs.get("ai.prompt.messages"))
    if messages:
        turn.input = read_items(messages, marks)
    elif isinstance(prompt := load(attrs.get("ai.prompt"))[0], dict):
        turn.instructions = marks.render(text_of(prompt.get("system")))
        turn.input = read_items(prompt.get("messages") or prompt.get("prompt"), marks)
    if cut:
        turn.flags += truncated("request", attrs.get("ai.prompt.messages"), marks)
    if attrs.get("ai.prompt.tools"):
        turn.tools = marks.render(text_of(attrs["ai.prompt.tools"]))
    turn.output = _output(record, attrs)
    return turn


def _output(record: Record, attrs: Attrs) -> list[Item] | None:
    marks = record.marks
    parts: list[Part] = []
    reasoning = attrs.get("ai.response.reasoning")
    if isinstance(reasoning, str):
        text = "" if not reasoning.strip() else marks.render(reasoning)
        parts.append(Part("reasoning", text, sealed=marks.find(reasoning)))
    for key in ("ai.response.text", "ai.response.object"):
        if attrs.get(key):
            parts += read_part({"type": "text", "text": text_of(attrs[key])}, "assistant", marks)
    for call in load_list(attrs.get("ai.response.toolCalls"))[0]:
        if isinstance(call, dict):
            parts += read_part({**call, "type": "tool-call"}, "assistant", marks)
    if not parts and "ai.response.finishReason" not in attrs:
        return None
    return [Item("assistant", parts)]


def _call(record: Record, attrs: Attrs) -> Call:
    marks = record.marks
    arguments, result = attrs.get("ai.toolCall.args"), attrs.get("ai.toolCall.result")
    failed = record.status == STATUS_ERROR
    return Call(
        call_id=clean_id(attrs.get("ai.toolCall.id"), marks),
        tool=marks.render(text_of(attrs.get("ai.toolCall.name"))),
        arguments=None if arguments is None else marks.render(text_of(arguments)),
        result=None if result is None else marks.render(unquoted(record, result)),
        status="error" if failed else "ok",
        error=marks.render(record.status_message) if failed else "",
        duration_ns=elapsed(record),
    )
