"""OTLP requests in protobuf (https://opentelemetry.io/docs/specs/otlp/) to records.

The body is split at the wire level; each record then goes through the generated parser, and what
the parser refuses is salvaged field by field (`facta.intake.wire_salvage`).
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from facta.intake import wire_salvage
from facta.intake.errors import Refused
from facta.intake.limits import Allowance, Limits
from facta.intake.outline import SLICE, Outline, ResourcePart, ScopePart, slices, whole
from facta.intake.wire import BYTES, Damaged, fields
from facta.intake.wire_salvage import SPAN_ID, TRACE_ID
from facta.model.records import Attributes, Batch, Event, Record, Refusal, Scope, Value

Signal = Literal["traces", "logs"]


def decode(body: bytes, signal: Signal, limits: Limits) -> Batch:
    """The records of an ExportTraceServiceRequest or ExportLogsServiceRequest.

    Raises DecodeFailed when nothing in the body can be decoded.
    """
    return whole(decode_slices(body, signal, limits))


def decode_slices(body: bytes, signal: Signal, limits: Limits) -> Iterator[Batch]:
    """The same a slice at a time; DecodeFailed comes at the end."""
    allowance = Allowance(limits)
    outline = Outline(body, limits.records, allowance.steps)
    _split_request(outline)
    if signal == "traces":
        return slices(outline, _Spans(), "span", allowance)
    return slices(outline, _LogRecords(), "log record", allowance)


# The same field numbers hold for traces and logs, on each of the levels above a record.
_OWNER, _PARTS, _SCHEMA_URL = 1, 2, 3


def _split_request(outline: Outline) -> None:
    end = len(outline.data)
    try:
        for number, kind, start, stop in fields(outline.data, 0, end, outline.steps):
            if number == 1 and kind == BYTES:
                _split_resource(outline, start, stop)
    except Damaged as damage:
        if damage.number == 1:
            _split_resource(outline, damage.start, end)
        outline.broken(damage)


def _split_resource(outline: Outline, at: int, end: int) -> None:
    part = ResourcePart()
    outline.parts.append(part)
    try:
        for number, kind, start, stop in fields(outline.data, at, end, outline.steps):
            if kind != BYTES:
                continue
            if number == _OWNER:
                # Messages that come in pieces are merged, which is what joining their bytes does.
                part.resource += outline.data[start:stop]
            elif number == _PARTS:
                _split_scope(outline, part, start, stop)
            elif number == _SCHEMA_URL:
                part.schema_url = outline.data[start:stop]
    except Damaged as damage:
        if damage.number == _PARTS:
            _split_scope(outline, part, damage.start, end)
        outline.broken(damage)


def _split_scope(outline: Outline, resource: ResourcePart, at: int, end: int) -> None:
    part = ScopePart()
    resource.scopes.append(part)
    beyond = 0
    try:
        for number, kind, start, stop in fields(outline.data, at, end, outline.steps):
            if kind != BYTES:
                continue
            if number == _PARTS:
                if outline.room():
                    part.records.append((start, stop))
                else:
                    beyond = beyond or start
            elif number == _OWNER:
                part.scope += outline.data[start:stop]
            elif number == _SCHEMA_URL:
                part.schema_url = outline.data[start:stop]
    except Damaged as damage:
        if damage.number == _PARTS and outline.room():
            part.records.append((damage.start, end))
        outline.broken(damage)
    if beyond:
        outline.beyond(beyond, end)


class _Scopes:
    def scope(
        self, resource: ResourcePart, part: ScopePart, allowance: Allowance
    ) -> tuple[Scope, list[Refusal]]:
        allowance.strict = True
        try:
            return _scope(resource, part, allowance), []
        except Refused:
            allowance.strict = False
            return wire_salvage.scope(resource, part, allowance)


class _Spans(_Scopes):
    def strict(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        try:
            message = Span.FromString(raw)
        except DecodeError:
            raise Refused("not a span") from None
        return _span(message, scope, allowance)

    def salvage(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return wire_salvage.span(raw, scope, allowance)


class _LogRecords(_Scopes):
    def strict(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        try:
            message = LogRecord.FromString(raw)
        except DecodeError:
            raise Refused("not a log record") from None
        return _log_record(message, scope, allowance)

    def salvage(self, raw: bytes, scope: Scope, allowance: Allowance) -> Record:
        return wire_salvage.log_record(raw, scope, allowance)


def _scope(resource: ResourcePart, part: ScopePart, allowance: Allowance) -> Scope:
    if len(resource.resource) + len(part.scope) > SLICE:
        raise Refused("large")
    try:
        owner = Resource.FromString(resource.resource)
        scope = InstrumentationScope.FromString(part.scope)
        schema_url = (part.schema_url or resource.schema_url).decode()
    except (DecodeError, UnicodeDecodeError):
        raise Refused("not a scope") from None
    return Scope(
        name=scope.name,
        version=scope.version,
        schema_url=schema_url,
        resource=_attributes(owner.attributes, allowance),
        attributes=_attributes(scope.attributes, allowance),
    )


def _id(raw: bytes, size: int, *, required: bool) -> str:
    """An id as hex; "" for an absent one where it is not required."""
    if len(raw) == size and raw.strip(b"\0"):
        return raw.hex()
    if required or (raw.strip(b"\0") or len(raw) not in {0, size}):
        raise Refused("not an id")
    return ""


def _span(message: Span, scope: Scope, allowance: Allowance) -> Record:
    trace_id = _id(message.trace_id, TRACE_ID, required=True)
    span_id = _id(message.span_id, SPAN_ID, required=True)
    limit = allowance.limits.events
    if len(message.events) > limit or len(message.links) > limit:
        raise Refused("too many events or links")
    return Record(
        signal="span",
        scope=scope,
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=_id(message.parent_span_id, SPAN_ID, required=False),
        name=message.name,
        kind=message.kind,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        status=message.status.code,
        status_message=message.status.message,
        attributes=_attributes(message.attributes, allowance),
        events=[_event(event, allowance) for event in message.events],
        links=[
            (_id(link.trace_id, TRACE_ID, required=True), _id(link.span_id, SPAN_ID, required=True))
            for link in message.links
        ],
    )


def _event(event: Span.Event, allowance: Allowance) -> Event:
    allowance.take(1)
    return Event(event.name, event.time_unix_nano, _attributes(event.attributes, allowance))


def _log_record(message: LogRecord, scope: Scope, allowance: Allowance) -> Record:
    time = message.time_unix_nano or message.observed_time_unix_nano
    return Record(
        signal="log",
        scope=scope,
        trace_id=_id(message.trace_id, TRACE_ID, required=False),
        span_id=_id(message.span_id, SPAN_ID, required=False),
        name=message.event_name,
        start_ns=time,
        end_ns=time,
        attributes=_attributes(message.attributes, allowance),
        body=_value(message.body, 0, allowance),
    )


def _attributes(pairs: Iterable[KeyValue], allowance: Allowance) -> Attributes:
    kept: Attributes = [(pair.key, _value(pair.value, 0, allowance)) for pair in pairs]
    if len(kept) > allowance.limits.attributes:
        raise Refused("too many attributes")
    allowance.take(len(kept))
    for key, _ in kept:
        allowance.key(key)
    return kept


def _value(value: AnyValue, depth: int, allowance: Allowance) -> Value:
    """The Python value of an AnyValue. Raises Refused where it would lose something."""
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return value.string_value
    if kind is None:
        return None
    if kind == "array_value":
        depth = allowance.enter(depth)
        allowance.take(len(value.array_value.values))
        return [_value(entry, depth, allowance) for entry in value.array_value.values]
    if kind == "kvlist_value":
        depth = allowance.enter(depth)
        pairs = value.kvlist_value.values
        allowance.take(len(pairs))
        entries = {allowance.key(pair.key): _value(pair.value, depth, allowance) for pair in pairs}
        if len(entries) < len(pairs):
            allowance.repeats(len(pairs) - len(entries))
        return entries
    if kind == "string_value_strindex":
        raise Refused(wire_salvage.STRING_TABLE)
    scalar: Value = getattr(value, kind)
    return scalar
