"""Real payloads as records, and every text that a record still holds."""

import base64
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from facta.model.records import Attributes, Event, Record, Scope, Value

DATA = Path(__file__).parents[1] / "data" / "otlp"
EXPECT: dict[str, Any] = json.loads((DATA / "EXPECT.json").read_text())


def _value(value: AnyValue) -> Value:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [_value(item) for item in value.array_value.values]
    if which == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return getattr(value, which) if which else None


def _pairs(attributes: Any) -> Attributes:
    return [(pair.key, _value(pair.value)) for pair in attributes]


def _scope(resource: Resource, scope: InstrumentationScope) -> Scope:
    return Scope(
        scope.name, scope.version, "", _pairs(resource.attributes), _pairs(scope.attributes)
    )


def _span(span: Span, scope: Scope) -> Record:
    events = [Event(e.name, e.time_unix_nano, _pairs(e.attributes)) for e in span.events]
    return Record(
        "span",
        scope,
        span.trace_id.hex(),
        span.span_id.hex(),
        name=span.name,
        status_message=span.status.message,
        attributes=_pairs(span.attributes),
        events=events,
    )


def _log(log: LogRecord, scope: Scope) -> Record:
    return Record(
        "log",
        scope,
        log.trace_id.hex(),
        log.span_id.hex(),
        name=log.event_name,
        attributes=_pairs(log.attributes),
        body=_value(log.body),
    )


def read(path: Path) -> list[Record]:
    """The records of one payload, decoded with OpenTelemetry's own classes."""
    if path.name.startswith("logs"):
        logs = ExportLogsServiceRequest.FromString(path.read_bytes())
        return [
            _log(log, _scope(resource.resource, scope.scope))
            for resource in logs.resource_logs
            for scope in resource.scope_logs
            for log in scope.log_records
        ]
    spans = ExportTraceServiceRequest.FromString(path.read_bytes())
    return [
        _span(span, _scope(resource.resource, scope.scope))
        for resource in spans.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def texts(value: object) -> Iterator[str]:
    """Every string in a value, keys included; bytes as latin-1 and as hex."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("latin-1")
        yield value.hex()
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def all_text(record: Record) -> str:
    """All text of a record but its marks' facts."""
    parts: list[object] = [record.attributes, record.body, record.name, record.status_message]
    parts += [[event.name, event.attributes] for event in record.events]
    scope = record.scope
    parts += [scope.resource, scope.attributes, scope.name, scope.version, record.links]
    return "\n".join(texts(parts))


@pytest.fixture
def span() -> Callable[..., Record]:
    def make(*attributes: tuple[str, Value], **fields: Any) -> Record:
        return Record("span", Scope(), "0" * 32, "0" * 16, attributes=list(attributes), **fields)

    return make


def random_bytes(size: int, seed: str, head: bytes = b"") -> bytes:
    """Bytes as even as ciphertext, the same for the same seed, after a head of their own."""
    return head + random.Random(seed).randbytes(size - len(head))


def base64_text(size: int, seed: str, *, head: bytes = b"", url: bool = False) -> str:
    """A text of `size` characters as a provider makes it: base64 of evenly spread bytes, padded."""
    raw = random_bytes(size * 3 // 4, seed, head)
    return (base64.urlsafe_b64encode(raw) if url else base64.b64encode(raw)).decode()


@dataclass(frozen=True)
class Blobs:
    """Sealed values with the looks of each provider, by seed."""

    def openai(self, size: int = 1316, seed: str = "o") -> str:
        return base64_text(size, seed, head=b"\x80\x00\x00\x00\x00\x69\x2c\x11\x22", url=True)

    def anthropic(self, size: int = 752, seed: str = "a") -> str:
        """Fields as in a real signature: header, nonces, ciphertext, and a version at the end."""
        header = b"\x08\x05\x18\x02\x22\x40" + random_bytes(64, seed + "h")
        inner = b"\x0a" + bytes([len(header)]) + header
        for number in (0x12, 0x1A):
            inner += bytes([number, 12]) + random_bytes(12, f"{seed}{number}")
        rest = size * 3 // 4 - len(inner) - 8
        inner += b"\x2a" + _varint(rest) + random_bytes(rest, seed + "c")
        return base64.b64encode(b"\x12" + _varint(len(inner)) + inner + b"\x18\x01").decode()

    def gemini(self, size: int = 1064, seed: str = "g") -> str:
        body = b"\x01\xd1\xed\x8a\x6b" + random_bytes(size * 3 // 4 - 9, seed)
        return base64.b64encode(b"\x0a" + _varint(len(body)) + body).decode()

    def random(self, size: int, seed: str = "r") -> str:
        return base64_text(size, seed)

    def xai(self, size: int = 1731, seed: str = "x") -> str:
        """No head, no padding, and a length that is no multiple of four."""
        return "WjtnR" + base64_text(2 * size, seed).replace("=", "")[: size - 5]

    def mantle(self, size: int = 1200, seed: str = "m") -> str:
        return "rsn_" + base64_text(size - 4, seed, url=True)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


@pytest.fixture(scope="session")
def blobs() -> Blobs:
    return Blobs()


def no_window(text: str, value: str | bytes) -> bool:
    """Whether no 16 characters of a sealed value stand in the text, in any of its forms."""
    raw = value if isinstance(value, bytes) else value.encode()
    forms = [raw.hex(), raw.decode("latin-1")]
    if isinstance(value, str):
        forms += [value.translate(str.maketrans("+/", "-_")), value.replace("/", "\\/")]
    return not any(form[at : at + 16] in text for form in forms for at in range(len(form) - 15))


@pytest.fixture(scope="session")
def assert_gone() -> Callable[[Record, str | bytes], None]:
    """Fails where a piece of the value is left in the record, without showing either."""

    def check(record: Record, value: str | bytes) -> None:
        __tracebackhide__ = True
        if not no_window(all_text(record), value):
            pytest.fail("a piece of a sealed value is left in the record", pytrace=False)

    return check


@pytest.fixture(scope="session")
def text_of() -> Callable[[Record], str]:
    return all_text


@pytest.fixture(scope="session")
def records_of() -> Callable[[str], list[Record]]:
    return lambda run: [r for path in sorted((DATA / run).glob("*.binpb")) for r in read(path)]
