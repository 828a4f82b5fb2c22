"""Records from protobuf that the generated parser refuses: read field by field.

Each part that cannot be read (invalid UTF-8, nesting, an encoding that breaks off, a limit) is
refused alone. A span is refused as a whole only when its ids cannot be read.
"""

from collections.abc import Callable

from facta.intake.errors import RecordRefused, Refused
from facta.intake.limits import Allowance
from facta.intake.outline import Notes, ResourcePart, ScopePart
from facta.intake.wire import BYTES, FIXED64, VARINT, Damaged, Message, double, fields, signed
from facta.intake.wire import message as collect
from facta.model.records import Attributes, Event, Record, Refusal, Scope, Value

TRACE_ID = 16
SPAN_ID = 8
STRING_TABLE = "refers to a string table, which only profiles have"
BREAKS_OFF = "the encoding breaks off"
NOT_UTF8 = "invalid UTF-8"
WRONG_LENGTH = "not an id: wrong length"
NO_IDS = "trace or span id missing, zero or of the wrong length"


def scope(
    resource: ResourcePart, part: ScopePart, allowance: Allowance
) -> tuple[Scope, list[Refusal]]:
    """A scope with its resource, and what could not be read of them."""
    of_resource = _Salvage(resource.resource, allowance, "resource")
    resource_attributes = of_resource.attributes(of_resource.collected(1), 1)
    of_scope = _Salvage(part.scope, allowance, "scope")
    found = of_scope.collected(3)
    schema_url = part.schema_url or resource.schema_url
    salvaged = Scope(
        name=of_scope.text(found, 1, "name"),
        version=of_scope.text(found, 2, "version"),
        schema_url=of_scope.notes.attempt("schema URL", schema_url, utf8, ""),
        resource=resource_attributes,
        attributes=of_scope.attributes(found, 3),
    )
    return salvaged, of_resource.notes.found() + of_scope.notes.found()


def span(raw: bytes, scope: Scope, allowance: Allowance) -> Record:
    """A span; raises RecordRefused when its ids cannot be read."""
    salvage = _Salvage(raw, allowance, "span")
    found = salvage.collected(9, 11, 13)
    trace_id = readable_id(found.bytes_at(1), TRACE_ID)
    span_id = readable_id(found.bytes_at(2), SPAN_ID)
    if not trace_id or not span_id:
        raise RecordRefused(NO_IDS, damaged=found.damage is not None)
    status, message = salvage.status(found)
    record = Record(
        signal="span",
        scope=scope,
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=salvage.optional_id(found, 4, SPAN_ID, "parent span id"),
        name=salvage.text(found, 5, "name"),
        kind=signed(found.number_at(6, VARINT), 32),
        start_ns=found.number_at(7, FIXED64),
        end_ns=found.number_at(8, FIXED64),
        status=status,
        status_message=message,
        attributes=salvage.attributes(found, 9),
        events=salvage.events(found),
        links=salvage.links(found),
    )
    record.refusals = salvage.notes.found()
    return record


def log_record(raw: bytes, scope: Scope, allowance: Allowance) -> Record:
    """A log record; raises RecordRefused when nothing of it can be read."""
    salvage = _Salvage(raw, allowance, "log record")
    found = salvage.collected(6)
    if found.damage and not found.last and not found.repeated[6]:
        raise RecordRefused(BREAKS_OFF, damaged=True)
    body = found.bytes_at(5)
    time = found.number_at(1, FIXED64) or found.number_at(11, FIXED64)
    record = Record(
        signal="log",
        scope=scope,
        trace_id=salvage.optional_id(found, 9, TRACE_ID, "trace id"),
        span_id=salvage.optional_id(found, 10, SPAN_ID, "span id"),
        name=salvage.text(found, 12, "event name"),
        start_ns=time,
        end_ns=time,
        attributes=salvage.attributes(found, 6),
        body=None if body is None else salvage.notes.attempt("body", body, salvage.value, None),
    )
    record.refusals = salvage.notes.found()
    return record


def readable_id(raw: bytes | None, size: int) -> str:
    """An id as hex, "" for one that is missing, zero or of the wrong length."""
    return raw.hex() if raw and len(raw) == size and raw.strip(b"\0") else ""


def utf8(raw: bytes) -> str:
    """`raw` as text; raises Refused."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise Refused(NOT_UTF8) from None


class _Salvage:
    """Reads the parts of one message, noting what it has to leave out."""

    def __init__(self, raw: bytes, allowance: Allowance, owner: str) -> None:
        self.raw = raw
        self.allowance = allowance
        self.notes = Notes(allowance, owner)

    def collected(self, attributes: int, *entries: int) -> Message:
        """The message's fields, its damage noted; the repeated ones are named."""
        limits = self.allowance.limits
        keep = {attributes: limits.attributes} | dict.fromkeys(entries, limits.events)
        return self._collect(self.raw, "", keep)

    def _collect(self, raw: bytes, place: str, keep: dict[int, int]) -> Message:
        found = collect(raw, 0, len(raw), keep, self.allowance.steps)
        if found.damage:
            self.notes.add(found.damage.reason, place, found.rest())
        return found

    def text(self, found: Message, number: int, place: str) -> str:
        return self.notes.attempt(place, found.bytes_at(number) or b"", utf8, "")

    def optional_id(self, found: Message, number: int, size: int, place: str) -> str:
        raw = found.bytes_at(number) or b""
        readable = readable_id(raw, size)
        if not readable and (raw.strip(b"\0") or len(raw) not in {0, size}):
            self.notes.add(WRONG_LENGTH, place, raw)
        return readable

    def status(self, found: Message) -> tuple[int, str]:
        status = self._collect(found.bytes_at(15) or b"", "status", {})
        return signed(status.number_at(3, VARINT), 32), self.text(status, 2, "status message")

    def attributes(self, found: Message, number: int, prefix: str = "") -> Attributes:
        raws = (found.data[start:end] for start, end in found.repeated[number])
        kept = self.notes.attributes(f"{prefix}attribute", raws, self.pair)
        self._over(found, number, f"{prefix}attributes", self.allowance.limits.attributes)
        return kept

    def events(self, found: Message) -> list[Event]:
        raws = (found.data[start:end] for start, end in found.repeated[11])
        kept = [self._event(raw, f"event {index}") for index, raw in enumerate(raws)]
        self._over(found, 11, "events", self.allowance.limits.events)
        return [event for event in kept if event is not None]

    def _event(self, raw: bytes, place: str) -> Event | None:
        try:
            self.allowance.take(1)
        except Refused as refused:
            self.notes.add(refused.reason, place, raw)
            return None
        found = self._collect(raw, place, {3: self.allowance.limits.attributes})
        return Event(
            name=self.text(found, 2, f"{place} name"),
            time_ns=found.number_at(1, FIXED64),
            attributes=self.attributes(found, 3, f"{place} "),
        )

    def links(self, found: Message) -> list[tuple[str, str]]:
        raws = (found.data[start:end] for start, end in found.repeated[13])
        kept = [
            self.notes.attempt(f"link {index}", raw, self._link, ("", ""))
            for index, raw in enumerate(raws)
        ]
        self._over(found, 13, "links", self.allowance.limits.events)
        return [link for link in kept if link[0]]

    def _link(self, raw: bytes) -> tuple[str, str]:
        found = self._whole(raw, 0, len(raw))
        trace_id = readable_id(found.bytes_at(1), TRACE_ID)
        span_id = readable_id(found.bytes_at(2), SPAN_ID)
        if not trace_id or not span_id:
            raise Refused(NO_IDS)
        return trace_id, span_id

    def _whole(self, raw: bytes, at: int, end: int) -> Message:
        found = collect(raw, at, end, {}, self.allowance.steps)
        if found.damage:
            raise Refused(found.damage.reason)
        return found

    def _over(self, found: Message, number: int, what: str, limit: int) -> None:
        if number in found.beyond:
            count, first = found.beyond[number]
            self.notes.over(limit, what, count, memoryview(found.data)[first : found.end])

    def pair(self, raw: bytes) -> tuple[str, Value]:
        """A KeyValue; raises Refused."""
        self.allowance.take(1)
        return self._pair(raw, 0, len(raw), 0)

    def _pair(self, raw: bytes, at: int, end: int, depth: int) -> tuple[str, Value]:
        found = self._whole(raw, at, end)
        key = self.allowance.key(utf8(found.bytes_at(1) or b""))
        place = found.last.get((2, BYTES))
        return key, None if place is None else self._value(raw, *place, depth)

    def value(self, raw: bytes) -> Value:
        """An AnyValue; raises Refused."""
        return self._value(raw, 0, len(raw), 0)

    def _value(self, raw: bytes, at: int, end: int, depth: int) -> Value:
        # Of a oneof the last field counts; the numbers are AnyValue's.
        value: Value = None
        try:
            for number, kind, start, stop in fields(raw, at, end, self.allowance.steps):
                reader = _READERS.get((number, kind))
                if reader:
                    value = reader(self, raw, start, stop, depth)
        except Damaged as damage:
            raise Refused(damage.reason) from None
        return value

    def _list(self, raw: bytes, at: int, end: int, depth: int) -> Value:
        depth = self.allowance.enter(depth)
        entries: list[Value] = []
        for number, kind, start, stop in fields(raw, at, end, self.allowance.steps):
            if number == 1 and kind == BYTES:
                self.allowance.take(1)
                entries.append(self._value(raw, start, stop, depth))
        return entries

    def _map(self, raw: bytes, at: int, end: int, depth: int) -> Value:
        depth = self.allowance.enter(depth)
        entries: dict[str, Value] = {}
        count = 0
        for number, kind, start, stop in fields(raw, at, end, self.allowance.steps):
            if number == 1 and kind == BYTES:
                self.allowance.take(1)
                count += 1
                key, value = self._pair(raw, start, stop, depth)
                entries[key] = value
        if count > len(entries):
            self.allowance.repeats(count - len(entries))
        return entries


_Reader = Callable[[_Salvage, bytes, int, int, int], Value]
_READERS: dict[tuple[int, int], _Reader] = {
    (1, BYTES): lambda _, raw, at, end, __: utf8(raw[at:end]),
    (2, VARINT): lambda _, __, number, *___: number != 0,
    (3, VARINT): lambda _, __, number, *___: signed(number),
    (4, FIXED64): lambda _, __, number, *___: double(number),
    (5, BYTES): _Salvage._list,  # noqa: SLF001 - the table stands beside its class
    (6, BYTES): _Salvage._map,  # noqa: SLF001
    (7, BYTES): lambda _, raw, at, end, __: raw[at:end],
    (8, VARINT): lambda *_: _string_table(),
}


def _string_table() -> Value:
    raise Refused(STRING_TABLE)
