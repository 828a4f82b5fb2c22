"""Claude Code's own telemetry: log events in the order of `event.sequence`, and beta spans.

The request body event opens a turn; the events up to the next one tell the rest of it. Bodies are cut
at 60 KB; thinking text is withheld by the host, signatures are not. Spans know calls and usage.
Source: code.claude.com/docs/en/monitoring-usage.
"""

from facta.conventions.bodies import read_request, read_response
from facta.conventions.genai import fact
from facta.conventions.messages import read_items
from facta.conventions.table import fill
from facta.conventions.values import (
    Attrs,
    attributes_of,
    elapsed,
    event_name,
    milliseconds,
    number,
    text_of,
)
from facta.model.facts import Call, Fact, Item, Part, Turn
from facta.model.records import STATUS_ERROR, Record

NAME = "claude-code"
_WITHHELD = "<REDACTED>"
_KEYS = {"body", "tool_input", "response", "tool_parameters"}


def applies(record: Record, _attrs: Attrs) -> bool:
    """By the scopes that Claude Code exports under."""
    return record.scope.name.startswith("com.anthropic.claude_code")


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _KEYS


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """The fact of one log event or span."""
    if record.signal == "span":
        return _span(record, attrs)
    name = event_name(record, attrs).removeprefix("claude_code.")
    if name in ("tool_result", "tool_decision"):
        return [fact(_logged_call(name, record, attrs), "tool_span", record)]
    if name in (
        "user_prompt",
        "api_request_body",
        "api_request",
        "assistant_response",
        "api_response_body",
        "api_error",
    ):
        return [fact(_member(name, record, attrs), "response", record)]
    return []


def _member(name: str, record: Record, attrs: Attrs) -> Turn:
    sequence = number(attrs.get("event.sequence"))
    turn = Turn(
        role="member",
        group=f"{text_of(attrs.get('session.id'))}/{text_of(attrs.get('query_source')) or 'main'}",
        sequence=int(sequence) if sequence is not None else record.start_ns,
        settings={"provider": "anthropic"},
    )
    marks = record.marks
    if name == "user_prompt":
        turn.opens, turn.group = "next", f"{text_of(attrs.get('session.id'))}/sdk"
        turn.input = read_items(attrs.get("prompt"), marks)
    elif name == "api_request_body":
        turn.opens = "this"
        read_request(attrs.get("body"), turn, marks)
        _withheld(turn)
        if attrs.get("body_truncated") in (True, "true") and "request_truncated" not in turn.flags:
            turn.flags.append("request_truncated")
    elif name == "api_response_body":
        read_response(attrs.get("body"), turn, marks)
        _withheld(turn)
    elif name == "assistant_response" and attrs.get("response"):
        turn.output = [Item("assistant", [Part("text", marks.render(text_of(attrs["response"])))])]
    elif name == "api_error":
        turn.error = marks.render(
            text_of(attrs.get("error") or attrs.get("status_code")) or "error"
        )
    return fill(turn, attrs)


def _withheld(turn: Turn) -> None:
    """The host's own redaction of thinking is no summary: the text is dropped, the turn says so."""
    for item in [*(turn.input or []), *(turn.output or [])]:
        for part in item.parts:
            if part.kind == "reasoning" and part.text == _WITHHELD:
                part.text = ""
                if "withheld_by_host" not in turn.flags:
                    turn.flags.append("withheld_by_host")


def _logged_call(name: str, record: Record, attrs: Attrs) -> Call:
    render = record.marks.render
    call = Call(
        call_id=render(text_of(attrs.get("tool_use_id"))),
        tool=render(text_of(attrs.get("tool_name"))),
    )
    if name == "tool_decision":
        call.decision = render(text_of(attrs.get("decision")))
        return call
    if attrs.get("tool_input") is not None:
        call.arguments = render(text_of(attrs["tool_input"]))
    failed = attrs.get("success") in (False, "false")
    call.status = "error" if failed else "ok"
    call.error = render(text_of(attrs.get("error"))) if failed else ""
    call.duration_ns = milliseconds(attrs.get("duration_ms"))
    return call


def _span(record: Record, attrs: Attrs) -> list[Fact]:
    kind = text_of(attrs.get("span.type"))
    if kind == "llm_request":
        return [fact(_request_span(record, attrs), "response", record)]
    if kind == "tool":
        return [fact(_tool_span(record, attrs), "tool_span", record)]
    return []


def _request_span(record: Record, attrs: Attrs) -> Turn:
    turn = fill(Turn(settings={"provider": "anthropic"}), attrs)
    turn.flags.append("twin")
    if attrs.get("response.model_output"):
        text = record.marks.render(text_of(attrs["response.model_output"]))
        turn.output = [Item("assistant", [Part("text", text)])]
    return turn


def _tool_span(record: Record, attrs: Attrs) -> Call:
    render = record.marks.render
    call = Call(
        call_id=render(text_of(attrs.get("gen_ai.tool.call.id") or attrs.get("tool_use_id"))),
        tool=render(text_of(attrs.get("tool_name"))),
        status="error" if record.status == STATUS_ERROR else "",
        duration_ns=elapsed(record),
    )
    shown = text_of(attrs.get("tool_input"))
    if shown.startswith("[TOOL INPUT:") and "\n" in shown:
        call.arguments = render(shown.split("\n", 1)[1])
    for event in record.events:
        if event.name == "tool.output":
            told = attributes_of(event.attributes)
            if told.get("output") is not None:
                call.result = render(text_of(told["output"]))
    return call
