"""Records from JSON that does not parse, or holds what OTLP does not allow: read member by member.

Each part that cannot be read (a lone surrogate, invalid UTF-8, a value of the wrong type, nesting,
a text that breaks off, a limit) is refused alone. A span is refused as a whole only when its ids
cannot be read.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from facta.intake import json_values as values
from facta.intake.errors import RecordRefused, Refused
from facta.intake.json_text import Handler, count_values, entries, members, parse, value_end
from facta.intake.limits import Allowance
from facta.intake.outline import SLICE, Notes, ResourcePart, ScopePart
from facta.intake.wire import Damaged
from facta.intake.wire_salvage import BREAKS_OFF, NO_IDS
from facta.model.records import Attributes, Event, Record, Refusal, Scope, Value

T = TypeVar("T")

_SPAN = [
    "traceId",
    "spanId",
    "parentSpanId",
    "name",
    "kind",
    "startTimeUnixNano",
    "endTimeUnixNano",
    "status",
    "attributes",
    "events",
    "links",
]
_LOG_RECORD = [
    "timeUnixNano",
    "observedTimeUnixNano",
    "body",
    "attributes",
    "traceId",
    "spanId",
    "eventName",
]


def scope(
    resource: ResourcePart, part: ScopePart, allowance: Allowance
) -> tuple[Scope, list[Refusal]]:
    """A scope with its resource, and what could not be read of them."""
    allowance.strict = False
    of_resource = _Salvage(resource.resource, allowance, "resource", ["attributes"])
    own = _Salvage(part.scope, allowance, "scope", ["name", "version", "attributes"])
    schema_url = part.schema_url or resource.schema_url or b"null"
    salvaged = Scope(
        name=own.read("name", "name", values.text, ""),
        version=own.read("version", "version", values.text, ""),
        schema_url=own.notes.attempt("schema URL", schema_url, own.reader(values.text), ""),
        resource=of_resource.attributes(),
        attributes=own.attributes(),
    )
    return salvaged, of_resource.notes.found() + own.notes.found()


def span(raw: bytes, scope: Scope, allowance: Allowance) -> Record:
    """A span; raises RecordRefused when its ids cannot be read."""
    salvage = _Salvage(raw, allowance, "span", _SPAN)
    trace_id = salvage.own_id("traceId", values.trace_id)
    span_id = salvage.own_id("spanId", values.span_id)
    if not trace_id or not span_id:
        raise RecordRefused(NO_IDS, damaged=salvage.damaged)
    status, message = salvage.read("status", "status", values.status, (0, ""))
    record = Record(
        signal="span",
        scope=scope,
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=salvage.read("parentSpanId", "parent span id", values.span_id, ""),
        name=salvage.read("name", "name", values.text, ""),
        kind=salvage.read("kind", "kind", values.kind, 0),
        start_ns=salvage.read("startTimeUnixNano", "start time", values.nanoseconds, 0),
        end_ns=salvage.read("endTimeUnixNano", "end time", values.nanoseconds, 0),
        status=status,
        status_message=message,
        attributes=salvage.attributes(),
        events=salvage.events(),
        links=salvage.links(),
    )
    record.refusals = salvage.notes.found()
    return record


def log_record(raw: bytes, scope: Scope, allowance: Allowance) -> Record:
    """A log record; raises RecordRefused when nothing of it can be read."""
    salvage = _Salvage(raw, allowance, "log record", _LOG_RECORD)
    if not salvage.found and salvage.damaged:
        raise RecordRefused(BREAKS_OFF, damaged=True)
    time = salvage.read("timeUnixNano", "time", values.nanoseconds, 0)
    observed = salvage.read("observedTimeUnixNano", "observed time", values.nanoseconds, 0)
    record = Record(
        signal="log",
        scope=scope,
        trace_id=salvage.read("traceId", "trace id", values.trace_id, ""),
        span_id=salvage.read("spanId", "span id", values.span_id, ""),
        name=salvage.read("eventName", "event name", values.text, ""),
        start_ns=time or observed,
        end_ns=time or observed,
        attributes=salvage.attributes(),
        body=salvage.read("body", "body", salvage.any_value, None),
    )
    record.refusals = salvage.notes.found()
    return record


class _Salvage:
    """Reads the members of one object, noting what it has to leave out."""

    def __init__(
        self, raw: bytes, allowance: Allowance, owner: str, names: list[str], place: str = ""
    ) -> None:
        self.found: dict[str, bytes] = {}
        self.damaged = False
        self.notes = Notes(allowance, owner)
        self._allowance = allowance
        self._place = place
        self._collect(raw, names)

    def _collect(self, raw: bytes, names: list[str]) -> None:
        def keeper(name: str) -> Handler:
            def keep(at: int) -> int:
                # What breaks off is kept too: the first entries of a list may be whole.
                self.found[name] = raw[at:]
                end = value_end(raw, at, self._allowance.steps)
                self.found[name] = raw[at:end]
                return end

            return keep

        if raw and not raw.startswith((b"{", b"null")):
            self.damaged = True
            self.notes.add("not an object", self._place, raw)
            return
        try:
            if raw:
                members(raw, 0, {name: keeper(name) for name in names}, self._allowance.steps)
        except Damaged as damage:
            self.damaged = True
            self.notes.add(damage.reason, self._place, raw[damage.at :])

    def reader(self, convert: Callable[[Any], T]) -> Callable[[bytes], T]:
        """`convert` after parsing."""
        return lambda raw: convert(self._parse(raw))

    def _parse(self, raw: bytes) -> Any:
        if len(raw) > SLICE and count_values(raw) > self._allowance.values:
            raise Refused(f"over the limit of {self._allowance.limits.values} values in a request")
        return parse(raw)

    def read(self, name: str, place: str, convert: Callable[[Any], T], default: T) -> T:
        """One member converted, or `default` where it is absent or refused."""
        raw = self.found.get(name)
        if raw is None:
            return default
        return self.notes.attempt(self._at(place), raw, self.reader(convert), default)

    def _at(self, place: str) -> str:
        return f"{self._place} {place}".strip()

    def own_id(self, name: str, convert: Callable[[Any], str]) -> str:
        """One of a span's own ids, "" where it cannot be read."""
        try:
            return convert(self._parse(self.found.get(name, b"null")))
        except Refused:
            return ""

    def any_value(self, value: Any) -> Value:
        """An AnyValue."""
        return values.any_value(value, self._allowance)

    def _pair(self, value: Any) -> tuple[str, Value]:
        return values.pair(value, self._allowance)

    def attributes(self) -> Attributes:
        """The readable attributes."""
        raws = self._entries("attributes", self._allowance.limits.attributes)
        return self.notes.attributes(self._at("attribute"), raws, self.reader(self._pair))

    def events(self) -> list[Event]:
        """The readable events."""
        raws = self._entries("events", self._allowance.limits.events)
        kept = [self._event(raw, f"event {index}") for index, raw in enumerate(raws)]
        return [event for event in kept if event is not None]

    def _event(self, raw: bytes, place: str) -> Event | None:
        try:
            self._allowance.take(1)
        except Refused as refused:
            self.notes.add(refused.reason, place, raw)
            return None
        names = ["name", "timeUnixNano", "attributes"]
        inner = _Salvage(b"", self._allowance, "", [], place)
        inner.notes = self.notes
        inner._collect(raw, names)
        return Event(
            name=inner.read("name", "name", values.text, ""),
            time_ns=inner.read("timeUnixNano", "time", values.nanoseconds, 0),
            attributes=inner.attributes(),
        )

    def links(self) -> list[tuple[str, str]]:
        """The readable links."""
        raws = self._entries("links", self._allowance.limits.events)
        read = self.reader(values.link)
        kept = [
            self.notes.attempt(f"link {index}", raw, read, ("", ""))
            for index, raw in enumerate(raws)
        ]
        return [link for link in kept if link[0]]

    def _entries(self, name: str, keep: int) -> list[bytes]:
        """The entries of a list, `keep` at most; the rest and any damage noted."""
        raw = self.found.get(name, b"null")
        if not raw.startswith(b"["):
            if raw != b"null":
                self.notes.add("not a list", self._at(name), raw)
            return []
        kept: list[bytes] = []
        beyond = [0, 0]

        def hold(at: int) -> int:
            end = value_end(raw, at, self._allowance.steps)
            if len(kept) < keep:
                kept.append(raw[at:end])
            else:
                beyond[0] += 1
                beyond[1] = beyond[1] or at
            return end

        try:
            entries(raw, 0, hold, self._allowance.steps)
        except Damaged as damage:
            self.notes.add(damage.reason, self._at(name), raw[damage.at :])
        if beyond[0]:
            self.notes.over(keep, self._at(name), beyond[0], memoryview(raw)[beyond[1] :])
        return kept
