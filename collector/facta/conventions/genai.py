"""OpenTelemetry GenAI conventions: span attributes, span events and log events, old and new names.

Read so are also the libraries that write these attributes in dialects of their own: Traceloop,
pydantic-ai, Logfire, Vercel AI SDK 7, the providers' own SDKs, Gemini CLI.
Source: open-telemetry/semantic-conventions-genai (Development), docs/gen-ai.
"""

from facta.conventions.messages import read_item, read_items
from facta.conventions.parts import clean_id, result_text, truncated
from facta.conventions.table import fill
from facta.conventions.values import (
    Attrs,
    attributes_of,
    count,
    elapsed,
    event_name,
    load,
    load_list,
    nest,
    number,
    text_of,
)
from facta.model.facts import Body, Call, Evaluation, Fact, Item, Observer, Transition, Turn
from facta.model.records import CLIENT, STATUS_ERROR, Event, Record, Value

NAME = "otel.genai"
AGENT_OPERATIONS = {
    "invoke_agent", "invoke_workflow", "create_agent", "agent_step", "plan", "workflow", "task", "agent",
}  # fmt: skip
_MODEL_OPERATIONS = {
    "chat",
    "text_completion",
    "generate_content",
    "completion",
    "messages",
    "responses",
}
_DETAILS = "gen_ai.client.inference.operation.details"
_FRAGMENTS = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "choice",
    "gen_ai.content.prompt": "prompt",
    "gen_ai.content.completion": "completion",
}
_CONTENT_KEYS = {
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions",
    "gen_ai.tool.definitions", "pydantic_ai.all_messages", "all_messages_events",
    "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.prompt", "gen_ai.completion",
    "gen_ai.usage.raw", "model_request_parameters", "tool_arguments", "tool_response",
}  # fmt: skip
CONTENT_PREFIXES = ("gen_ai.prompt.", "gen_ai.completion.", "llm.request.functions.")


def applies(record: Record, attrs: Attrs) -> bool:
    """Whether a record speaks this convention at all."""
    if any(key.startswith(("gen_ai.", "traceloop.", "llm.request.")) for key in attrs):
        return True
    return event_name(record, attrs).startswith("gen_ai.")


def consumed(key: str) -> bool:
    """Whether the facts hold what this attribute says."""
    return key in _CONTENT_KEYS or key.startswith(CONTENT_PREFIXES)


def facts(record: Record, attrs: Attrs) -> list[Fact]:
    """All that a span or log event says: its own fact first, then those of its events."""
    out: list[Fact] = []
    if record.signal == "log":
        body = _event(event_name(record, attrs), _with_body(attrs, record.body), record)
        return [body] if body else []
    if (own := _span(record, attrs)) is not None:
        out.append(own)
    told = (_event(e.name, attributes_of(e.attributes), record, e) for e in record.events)
    return [*out, *_told_on(own, record, attrs, [one for one in told if one is not None])]


def _told_on(own: Fact | None, record: Record, attrs: Attrs, told: list[Fact]) -> list[Fact]:
    """The facts of a span's events by what the span is: messages make a turn on a model's only.

    On a tool's span they are its arguments and its result, on an agent's they repeat its turns'.
    """
    operation = text_of(attrs.get("gen_ai.operation.name")).lower()
    messages = [f for f in told if isinstance(f.body, Turn) and f.body.role == "fragment"]
    if own is not None and isinstance(own.body, Call):
        _of_events(own.body, record)
        return [f for f in told if f not in messages]
    if operation and operation not in _MODEL_OPERATIONS:
        for message in messages:
            if isinstance(message.body, Turn):
                message.body.role, message.observer = "aggregate", "later_request"
    return told


def _of_events(call: Call, record: Record) -> None:
    """Arguments and result of a call from the events of its span, where attributes have none."""
    render = record.marks.render
    for event in record.events:
        told = attributes_of(event.attributes)
        if event.name == "gen_ai.tool.message" and call.arguments is None and "content" in told:
            call.arguments = render(text_of(told["content"]))
        elif event.name == "gen_ai.choice" and call.result is None and "message" in told:
            call.result = render(result_text(load(told["message"])[0]))


def event_consumed(name: str, key: str) -> bool:
    """Whether the facts hold what this attribute of an event says."""
    return name in _FRAGMENTS and key in ("content", "message", "tool_calls")


def _with_body(attrs: Attrs, body: Value) -> Attrs:
    return {**body, **attrs, "body": body} if isinstance(body, dict) else attrs


def _span(record: Record, attrs: Attrs) -> Fact | None:
    operation = text_of(attrs.get("gen_ai.operation.name") or attrs.get("llm.request.type")).lower()
    kind = text_of(attrs.get("traceloop.span.kind"))
    called = "gen_ai.tool.call.id" in attrs and operation not in _MODEL_OPERATIONS
    if operation == "execute_tool" or kind == "tool" or called:
        return fact(call_of(record, attrs), "tool_span", record)
    if operation in AGENT_OPERATIONS or kind in AGENT_OPERATIONS:
        turn = turn_of(record, attrs)
        turn.role = "aggregate"
        return fact(turn, "later_request", record)
    modelled = operation in _MODEL_OPERATIONS or "gen_ai.response.id" in attrs
    if modelled or (
        "gen_ai.request.model" in attrs
        and ("gen_ai.output.messages" in attrs or record.kind == CLIENT)
    ):
        return fact(turn_of(record, attrs), "response", record)
    if "pydantic_ai.all_messages" in attrs or "gen_ai.input.messages" in attrs:
        turn = turn_of(record, attrs)
        turn.role = "aggregate"
        return fact(turn, "later_request", record)
    return None


def fact(body: Body, observer: Observer, record: Record, event: Event | None = None) -> Fact:
    """A fact with the times of its record (of its event where it has one)."""
    if event is not None and event.time_ns:
        return Fact(body, observer, event.time_ns, event.time_ns)
    return Fact(body, observer, record.start_ns, record.end_ns)


def turn_of(record: Record, attrs: Attrs) -> Turn:
    """A turn from the flat attributes of a span or an operation event."""
    marks = record.marks
    turn = fill(Turn(), attrs)
    if attrs.get("logfire.span_type") == "log" and record.name.startswith("streaming response"):
        turn.flags.append(
            "streamed_apart"
        )  # Logfire: the response in a span, and trace, of its own
    for key in ("gen_ai.input.messages", "pydantic_ai.all_messages", "all_messages_events"):
        if key in attrs:
            turn.input = _messages(attrs[key], record, turn, "request")
            break
    else:
        turn.input = _indexed(attrs, "gen_ai.prompt", record)
    if "gen_ai.output.messages" in attrs:
        turn.output = _messages(attrs["gen_ai.output.messages"], record, turn, "response")
    else:
        turn.output = _indexed(attrs, "gen_ai.completion", record)
    system = attrs.get("gen_ai.system_instructions")
    if system is not None:
        items = read_items(load_list(system)[0], marks, "system")
        turn.instructions = "\n".join(p.text for item in items for p in item.parts if p.text)
    if attrs.get("gen_ai.tool.definitions"):
        turn.tools = marks.render(text_of(attrs["gen_ai.tool.definitions"]))
    if attrs.get("gen_ai.conversation.compacted") is True:
        turn.flags.append("compacted")
    if isinstance(raw := load(attrs.get("gen_ai.usage.raw"))[0], dict):
        _raw_usage(raw, turn)
    return turn


def _raw_usage(raw: dict[str, Value], turn: Turn) -> None:
    """Logfire keeps the provider's usage object: the only place of its reasoning tokens."""
    for inner in (raw, *(v for v in raw.values() if isinstance(v, dict))):
        for key in ("reasoning_tokens", "thinking_tokens"):
            amount = count(inner.get(key))
            if amount is not None:
                turn.usage.setdefault("reasoning_tokens", amount)


def _messages(value: Value, record: Record, turn: Turn, side: str) -> list[Item]:
    entries, cut = load_list(value)
    if cut:
        turn.flags += truncated(side, value, record.marks)
    role = "assistant" if side == "response" else "user"
    return read_items(entries, record.marks, role)


def _indexed(attrs: Attrs, prefix: str, record: Record) -> list[Item] | None:
    """Old numbered attributes (`gen_ai.prompt.0.role`), or one JSON text under the bare name."""
    entries = nest(attrs, prefix)
    if not entries and prefix in attrs:
        entries = load_list(attrs[prefix])[0]
    if not entries:
        return None
    return read_items(entries, record.marks, "user" if prefix.endswith("prompt") else "assistant")


def call_of(record: Record, attrs: Attrs) -> Call:
    """A call from the attributes of its tool span."""
    marks = record.marks
    arguments = _first(
        attrs,
        "gen_ai.tool.call.arguments",
        "tool_arguments",
        "traceloop.entity.input",
        "input-json",
        "input",
    )
    result = _first(
        attrs,
        "gen_ai.tool.call.result",
        "tool_response",
        "traceloop.entity.output",
        "output-json",
        "output",
    )
    failed = record.status == STATUS_ERROR or "error.type" in attrs
    return Call(
        call_id=clean_id(_first(attrs, "gen_ai.tool.call.id", "gen_ai.tool.call_id"), marks),
        tool=marks.render(text_of(_first(attrs, "gen_ai.tool.name", "traceloop.entity.name"))),
        arguments=None if arguments is None else marks.render(text_of(arguments)),
        result=None if result is None else marks.render(unquoted(record, result)),
        status="error" if failed else "ok",
        error=marks.render(text_of(attrs.get("error.type")) or record.status_message)
        if failed
        else "",
        duration_ns=elapsed(record),
    )


def unquoted(record: Record, value: Value) -> str:
    """A tool's result; the AI SDK's scopes write a text as a JSON string, which is undone."""
    text = text_of(value)
    if record.scope.name in ("ai", "gen_ai") and text[:1] == '"':
        opened, cut = load(text)
        if isinstance(opened, str) and not cut:
            return opened
    return text


def _first(attrs: Attrs, *keys: str) -> Value:
    for key in keys:
        if attrs.get(key) is not None:
            return attrs[key]
    return None


def _event(name: str, attrs: Attrs, record: Record, event: Event | None = None) -> Fact | None:
    if name == _DETAILS:
        return fact(turn_of(record, attrs), "response", record, event)
    if name in _FRAGMENTS:
        return _fragment(_FRAGMENTS[name], attrs, record, event)
    if name == "gen_ai.evaluation.result":
        return fact(_evaluation(attrs, record), "response", record, event)
    if name == "gen_ai.execution.state.changed":
        return fact(_transition(attrs, record), "response", record, event)
    return None


def _fragment(kind: str, attrs: Attrs, record: Record, event: Event | None) -> Fact:
    """One message as an event of its own (the conventions before 1.37)."""
    marks = record.marks
    turn = Turn(role="fragment", sequence=event.time_ns if event else record.start_ns)
    provider = attrs.get("gen_ai.system") or attrs.get("gen_ai.provider.name")
    if provider:
        turn.settings["provider"] = text_of(provider)
    if kind in ("prompt", "completion"):
        entries = load_list(attrs.get(f"gen_ai.{kind}"))[0]
        items = read_items(entries, marks, "user" if kind == "prompt" else "assistant")
        turn.input, turn.output = (items, None) if kind == "prompt" else (None, items)
        return fact(turn, "response", record, event)
    message: dict[str, Value] = {k: v for k, v in attrs.items() if not k.startswith("gen_ai.")}
    if kind == "choice":
        inner = load(message.get("message"))[0]
        shape: Value = (
            inner if isinstance(inner, dict) else {**message, "content": _opened(message)}
        )
        turn.output = [read_item(shape, marks, "assistant")]
        turn.finish_reasons = (
            [text_of(message["finish_reason"])] if message.get("finish_reason") else []
        )
        return fact(turn, "response", record, event)
    message["role"] = text_of(message.get("role")) or kind
    if kind == "tool" and "tool_call_id" not in message:
        message["tool_call_id"] = message.pop("id", "")
    message["content"] = _opened(message)
    message.pop("body", None)
    turn.input = [read_item(message, marks, kind)]
    return fact(turn, "response", record, event)


def _opened(message: dict[str, Value]) -> Value:
    content = message.get("content", message.get("message"))
    opened, _ = load(content)
    return opened if isinstance(opened, list) else content


def _evaluation(attrs: Attrs, record: Record) -> Evaluation:
    score = number(attrs.get("gen_ai.evaluation.score.value"))
    return Evaluation(
        name=record.marks.render(text_of(attrs.get("gen_ai.evaluation.name"))),
        score=float(score) if score is not None else None,
        label=record.marks.render(text_of(attrs.get("gen_ai.evaluation.score.label"))),
        explanation=record.marks.render(text_of(attrs.get("gen_ai.evaluation.explanation"))),
        response_id=text_of(attrs.get("gen_ai.response.id")),
    )


def _transition(attrs: Attrs, record: Record) -> Transition:
    render = record.marks.render
    return Transition(
        name=render(
            text_of(_first(attrs, "gen_ai.execution.state.name", "gen_ai.execution.name", "name"))
        ),
        before=render(
            text_of(_first(attrs, "gen_ai.execution.state.previous", "previous", "before"))
        ),
        after=render(
            text_of(
                _first(attrs, "gen_ai.execution.state", "gen_ai.execution.state.current", "after")
            )
        ),
    )


__all__ = ["NAME", "applies", "call_of", "consumed", "fact", "facts", "turn_of", "unquoted"]
