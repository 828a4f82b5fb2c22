"""Payloads as a sender makes them, with OpenTelemetry's own classes: model spans, tool spans, logs."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from tests.evidence.harness import House, Signal, Tables, append_of

from facta.intake import protobuf
from facta.intake.limits import Limits
from facta.model.observation import Append
from facta.model.records import Record

SECOND = 1_000_000_000
NOON = 1_796_040_000 * SECOND
Message = dict[str, Any]
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-5.4"}
TOOL = {"gen_ai.operation.name": "execute_tool"}


def any_value(value: Any) -> AnyValue:
    """A value as OTLP has it."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, bytes):
        return AnyValue(bytes_value=value)
    if isinstance(value, Mapping):
        out = AnyValue()
        out.kvlist_value.values.extend(pairs(value))
        return out
    if isinstance(value, Sequence) and not isinstance(value, str):
        out = AnyValue()
        out.array_value.values.extend(any_value(entry) for entry in value)
        return out
    return AnyValue(string_value=str(value))


def pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    """Attributes as OTLP has them."""
    return [KeyValue(key=key, value=any_value(value)) for key, value in attributes.items()]


def number(text: str, size: int) -> bytes:
    """An id that stands for a name: the same name, the same id."""
    return hashlib.sha256(text.encode()).digest()[:size]


def span(
    name: str,
    attributes: Mapping[str, Any],
    *,
    trace: str,
    parent: str = "",
    at: float = 0,
    seconds: float = 1,
    kind: Span.SpanKind.ValueType = Span.SPAN_KIND_INTERNAL,
    error: bool = False,
) -> Span:
    """A span; `trace`, `name` and `parent` are names that stand for ids, `at` is seconds from noon."""
    start = NOON + int(at * SECOND)
    out = Span(
        trace_id=number(trace, 16),
        span_id=number(f"{trace}/{name}", 8),
        parent_span_id=number(f"{trace}/{parent}", 8) if parent else b"",
        name=name,
        kind=kind,
        start_time_unix_nano=start,
        end_time_unix_nano=start + int(seconds * SECOND),
        attributes=pairs(attributes),
    )
    if error:
        out.status.code = Status.STATUS_CODE_ERROR
    return out


def chat(
    name: str,
    request: list[Message],
    response: list[Message],
    *,
    trace: str,
    response_id: str = "",
    at: float = 0,
    parent: str = "",
    **attributes: Any,
) -> Span:
    """A model's span with its messages; attributes are named with `__` for dots."""
    told: dict[str, Any] = CHAT | {
        "gen_ai.input.messages": json.dumps(request),
        "gen_ai.output.messages": json.dumps(response),
    }
    told |= {"gen_ai.response.id": response_id} if response_id else {}
    told |= {key.replace("__", "."): value for key, value in attributes.items()}
    return span(name, told, trace=trace, at=at, parent=parent, kind=Span.SPAN_KIND_CLIENT)


def tool(
    name: str,
    tool_name: str,
    *,
    trace: str,
    parent: str = "",
    at: float = 0,
    **attributes: Any,
) -> Span:
    """A tool's span."""
    told = TOOL | {"gen_ai.tool.name": tool_name}
    told |= {f"gen_ai.tool.call.{key}": value for key, value in attributes.items()}
    return span(name, told, trace=trace, parent=parent, at=at)


def says(role: str, *parts: Message | str) -> Message:
    """A message; a text alone is a text part."""
    told = [{"type": "text", "content": p} if isinstance(p, str) else p for p in parts]
    return {"role": role, "parts": told}


def call(call_id: str, arguments: Any, tool_name: str = "look") -> Message:
    """A part that asks for a call."""
    return {"type": "tool_call", "id": call_id, "name": tool_name, "arguments": arguments}


def result(call_id: str, response: Any) -> Message:
    """A part that brings a result."""
    return {"type": "tool_call_response", "id": call_id, "response": response}


def thought(text: str, **more: Any) -> Message:
    """A part with reasoning."""
    return {"type": "reasoning", "content": text, **more}


def traces(
    spans: Iterable[Span], service: str = "agent", scope: str = "some.library", schema_url: str = ""
) -> bytes:
    """A request with spans."""
    out = ExportTraceServiceRequest()
    resource = out.resource_spans.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    inner = resource.scope_spans.add()
    inner.scope.name, inner.scope.version, inner.schema_url = scope, "1.2.3", schema_url
    inner.spans.extend(spans)
    return out.SerializeToString()


def logs(
    records: Iterable[LogRecord], service: str = "agent", scope: str = "some.library"
) -> bytes:
    """A request with log records."""
    out = ExportLogsServiceRequest()
    resource = out.resource_logs.add()
    resource.resource.attributes.extend(pairs({"service.name": service}))
    inner = resource.scope_logs.add()
    inner.scope.name = scope
    inner.log_records.extend(records)
    return out.SerializeToString()


def event(
    name: str,
    attributes: Mapping[str, Any],
    *,
    trace: str = "",
    on: str = "",
    at: float = 0,
    body: Any = None,
) -> LogRecord:
    """A log event, on a span where `on` names one."""
    out = LogRecord(
        time_unix_nano=NOON + int(at * SECOND), event_name=name, attributes=pairs(attributes)
    )
    if trace:
        out.trace_id = number(trace, 16)
        out.span_id = number(f"{trace}/{on}", 8) if on else b""
    if body is not None:
        out.body.CopyFrom(any_value(body))
    return out


def records_of(payload: bytes, signal: Signal = "traces") -> list[Record]:
    """The records of a request, none of them refused."""
    batch = protobuf.decode(payload, signal, Limits())
    assert batch.rejected == 0
    return batch.records


def sent(*spans: Span, service: str = "agent") -> Append:
    """What the ledger is given of some spans."""
    return append_of(records_of(traces(spans, service)))


def logged(*records: LogRecord, service: str = "agent", scope: str = "some.library") -> Append:
    """What the ledger is given of some log records."""
    return append_of(records_of(logs(records, service, scope), "logs"))


@dataclass
class Seen:
    """Resolved tables, asked for what tests ask."""

    tables: Tables
    sessions: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        turns = sorted(self.tables.get("evidence.turns", []), key=lambda t: t["ordinal"])
        self.sessions = {s["session_id"]: [] for s in self.rows("sessions")}
        for turn in turns:
            self.sessions[turn["session_id"]].append(turn["response_id"] or turn["turn_id"])

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table of the evidence lane."""
        return self.tables.get(f"evidence.{table}", [])

    def one(self, table: str) -> dict[str, Any]:
        """The only row of a table."""
        (row,) = self.rows(table)
        return row

    def grouped(self) -> list[list[str]]:
        """The response ids of each session, in its order; the sessions sorted."""
        return sorted(self.sessions.values())


def resolved(*appends: Append) -> Seen:
    """What comes of some appends, taken in one by one with resolving between them."""
    house = House()
    for append in appends:
        house.take(append)
        house.flush()
    return Seen(house.final())
