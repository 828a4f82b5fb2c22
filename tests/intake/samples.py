"""Requests made by hand, well-formed and broken, for the tests of this folder."""

from collections.abc import Iterable
from typing import Any

import orjson

TRACE = bytes(range(1, 17))
SPAN = bytes(range(1, 9))


def length(size: int) -> bytes:
    """A varint."""
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return length(number << 3 | 2) + length(len(content)) + content


def attribute(key: bytes, value: bytes) -> bytes:
    """A span's attribute: `value` is an encoded AnyValue."""
    return field(9, field(1, key) + field(2, value))


def string(text: bytes) -> bytes:
    """An AnyValue of a string."""
    return field(1, text)


def nested(depth: int) -> bytes:
    """An AnyValue: arrays around a string."""
    value = string(b"x")
    for _ in range(depth):
        value = field(5, field(1, value))
    return value


def span(*parts: bytes, trace: bytes = TRACE, own: bytes = SPAN) -> bytes:
    """A span's content."""
    return field(1, trace) + field(2, own) + b"".join(parts)


def request(records: Iterable[bytes], resource: bytes = b"", scope: bytes = b"") -> bytes:
    """An export request around the contents of its records; traces and logs look the same."""
    part = field(1, scope) + b"".join(field(2, record) for record in records)
    return field(1, field(1, resource) + field(2, part))


def json_span(attributes: str = "[]", more: str = "", span_id: str = SPAN.hex()) -> str:
    """A span as JSON text, so that it may be broken."""
    return (
        f'{{"traceId":"{TRACE.hex()}","spanId":"{span_id}","name":"n",'
        f'"attributes":{attributes}{more}}}'
    )


def json_request(spans: Iterable[str]) -> bytes:
    """A trace request as JSON text."""
    text = f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{",".join(spans)}]}}]}}]}}'
    return text.encode("utf-8", "surrogatepass")


def json_attribute(key: str, value: Any) -> str:
    """One attribute as JSON text."""
    return orjson.dumps({"key": key, "value": value}).decode()
