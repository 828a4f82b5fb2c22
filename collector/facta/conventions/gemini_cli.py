"""Gemini CLI: log events `gemini_cli.*` with whole request and response texts, beside GenAI events.

`gemini_cli.api_request` opens a turn, `gemini_cli.api_response` closes it; `prompt_id` tells them
apart from those of other prompts. Its spans and `gen_ai.*` events are read as GenAI.
Source: google-gemini/gemini-cli docs/cli/telemetry.md.
"""

from facta.conventions import genai
from facta.conventions.bodies import read_request, read_response
from facta.conventions.genai import fact
from facta.conventions.messages import read_items
from facta.conventions.table import fill
from facta.conventions.values import Attrs, event_name, load, milliseconds, text_of
from facta.model.facts import Call, Fact, Turn
from facta.model.records import Record

NAME = "gemini-cli"
_KEYS = {"request_text", "response_text", "function_args"}


def applies(record: Record, attrs: Attrs) -> bool:
    """By the scope that Gemini CLI exports under, or its event names."""
    return "gemini-cli" in record.scope.name or event_name(record, attrs).startswith("gemini_cli.")


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _KEYS or genai.consumed(key)


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """The fact of one log event; spans and GenAI events as GenAI has them."""
    name = event_name(record, attrs) if record.signal == "log" else ""
    if name == "gemini_cli.tool_call":
        return [fact(_call(record, attrs), "tool_span", record)]
    if name in ("gemini_cli.api_request", "gemini_cli.api_response", "gemini_cli.api_error"):
        return [fact(_member(name, record, attrs), "response", record)]
    told = genai.facts(record, attrs)
    for one in told:
        if isinstance(one.body, Turn) and one.body.role == "whole":
            # They repeat what the stream tells, and a request's event adds nothing to it.
            if one.body.output is None and not one.body.response_id:
                one.body.role, one.observer = "aggregate", "later_request"
            else:
                one.body.flags.append("twin")
    return told


def _member(name: str, record: Record, attrs: Attrs) -> Turn:
    turn = Turn(
        role="member",
        group=f"{text_of(attrs.get('session.id'))}/{text_of(attrs.get('prompt_id'))}",
        sequence=record.start_ns,
        settings={"provider": "google"},
    )
    marks = record.marks
    if name == "gemini_cli.api_request":
        turn.opens = "this"
        if not read_request(attrs.get("request_text"), turn, marks):
            opened, _ = load(attrs.get("request_text"))
            turn.input = read_items(opened, marks) if opened else None
    elif name == "gemini_cli.api_response":
        read_response(attrs.get("response_text"), turn, marks)
    else:
        turn.error = text_of(attrs.get("error_type") or attrs.get("error.type")) or "error"
    return fill(turn, attrs)


def _call(record: Record, attrs: Attrs) -> Call:
    render = record.marks.render
    failed = attrs.get("success") in (False, "false")
    arguments = attrs.get("function_args")
    return Call(
        tool=render(text_of(attrs.get("function_name"))),
        arguments=None if arguments is None else render(text_of(arguments)),
        status="error" if failed else "ok",
        error=render(text_of(attrs.get("error"))) if failed else "",
        duration_ns=milliseconds(attrs.get("duration_ms")),
        decision=render(text_of(attrs.get("decision"))),
    )
