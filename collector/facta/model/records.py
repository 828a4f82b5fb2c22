"""Telemetry as it was received, before anything has looked at its content.

`intake` makes these from OTLP (https://opentelemetry.io/docs/specs/otlp/), `sealing` returns them
with every sealed value replaced by a mark, `conventions` turns them into facts. Values are plain
Python: str, bytes, int, float, bool, None, list, dict. Ids are lower-case hex, times are
nanoseconds since 1970 as the sender's clock had them. Attributes keep their order; of a repeated
key all values are kept (`Attributes` is a list of pairs).
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, Union

from facta.model.sealed import Marks

Value: TypeAlias = Union[str, bytes, int, float, bool, "list[Value]", "dict[str, Value]", None]
STATUS_ERROR = 2  # opentelemetry.proto.trace.v1.Status.StatusCode
SERVER, CLIENT, PRODUCER, CONSUMER = 2, 3, 4, 5  # opentelemetry.proto.trace.v1.Span.SpanKind

Attributes: TypeAlias = list[tuple[str, Value]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that could not be read: a visible gap, never a silent loss.

    `place` names where (for example "span attribute 3"), never with text from the payload;
    `size` is in bytes, `sha256` is the lower-case hex digest of the raw bytes.
    """

    reason: str
    place: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Scope:
    """The instrumentation scope, its resource, and the schema URL that was seen."""

    name: str = ""
    version: str = ""
    schema_url: str = ""
    resource: Attributes = field(default_factory=list)
    attributes: Attributes = field(default_factory=list)


@dataclass(slots=True)
class Event:
    """A span event."""

    name: str
    time_ns: int
    attributes: Attributes


@dataclass(slots=True)
class Record:
    """One span or one log record.

    For a span `name` is its name, `start_ns` and `end_ns` its times, `status` its OTLP status code
    (0 unset, 1 ok, 2 error). For a log record `name` is the LogRecord's own event name, `body` its
    body, and both times are its time (or its observed time where that is 0).
    `links` are (trace id, span id). `refusals` are the parts of this record that could not be read.
    `marks` is filled by `sealing`.
    """

    signal: Literal["span", "log"]
    scope: Scope
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    status: int = 0
    status_message: str = ""
    attributes: Attributes = field(default_factory=list)
    body: Value = None
    events: list[Event] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    marks: Marks = field(default_factory=Marks)


@dataclass(slots=True)
class Batch:
    """All that one request held: the readable records, and what was refused beside them.

    `rejected` counts whole records that were refused (the number for OTLP's partialSuccess);
    attributes that were refused inside a kept record are in that record's `refusals`.
    """

    records: list[Record] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    rejected: int = 0
