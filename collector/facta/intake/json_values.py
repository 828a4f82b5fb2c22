"""OTLP/JSON nodes to records and values, strictly: whatever would lose something is refused."""

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

from facta.intake.errors import Refused
from facta.intake.limits import Allowance
from facta.intake.wire_salvage import SPAN_ID, STRING_TABLE, TRACE_ID, WRONG_LENGTH
from facta.model.records import Attributes, Event, Record, Scope, Value

Node = dict[str, Any]

_INTEGER = re.compile(r"-?[0-9]{1,20}")
_HEX = re.compile(r"[0-9A-Fa-f]*")
_INT64 = range(-(1 << 63), 1 << 63)
_UINT64 = range(1 << 64)
_INT32 = range(-(1 << 31), 1 << 31)
# Above this a JSON number with a fraction sign is no longer an exact integer (RFC 8259 section 6).
_EXACT = float(1 << 53)
_URL_SAFE = str.maketrans("-_", "+/")

KINDS = {
    f"SPAN_KIND_{name}": number
    for number, name in enumerate(
        ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
    )
}
STATUSES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def node_of(value: Any) -> Node:
    """`value` as an object; null is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused("not an object")
    return value


def list_of(value: Any) -> list[Any]:
    """`value` as a list; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise Refused("not a list")
    return value


def text(value: Any) -> str:
    """`value` as a string; null is ""."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Refused("not a string")
    return value


def integer(value: Any, allowed: Sequence[int] = _INT64) -> int:
    """`value` as an integer in a range: a number, or a string of digits."""
    if (isinstance(value, str) and _INTEGER.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer() and abs(value) <= _EXACT
    ):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value not in allowed:
        raise Refused("not an integer of 64 bits" if allowed is not _INT32 else "not an enum")
    return value


def nanoseconds(value: Any) -> int:
    """A time; null is 0."""
    return 0 if value is None else integer(value, _UINT64)


def enum(value: Any, names: dict[str, int]) -> int:
    """An enum's number, from its number or name; null is 0."""
    if value is None:
        return 0
    if isinstance(value, str) and value in names:
        return names[value]
    return integer(value, _INT32)


def kind(value: Any) -> int:
    """A span kind."""
    return enum(value, KINDS)


def status(value: Any) -> tuple[int, str]:
    """A span's status: code and message."""
    node = node_of(value)
    return enum(node.get("code"), STATUSES), text(node.get("message"))


def hex_id(value: Any, size: int) -> str:
    """An id of `size` bytes in lower case, "" for an absent or zero one; raises Refused."""
    digits = text(value).lower()
    if not _HEX.fullmatch(digits) or len(digits) not in {0, 2 * size}:
        raise Refused(WRONG_LENGTH if _HEX.fullmatch(digits) else "not an id: not hex")
    return digits if digits.strip("0") else ""


def trace_id(value: Any) -> str:
    """A trace id, "" for an absent or zero one."""
    return hex_id(value, TRACE_ID)


def span_id(value: Any) -> str:
    """A span id, "" for an absent or zero one."""
    return hex_id(value, SPAN_ID)


def span(node: Node, scope: Scope, allowance: Allowance) -> Record:
    """A span with nothing wrong in it."""
    code, message = status(node.get("status"))
    events, links = list_of(node.get("events")), list_of(node.get("links"))
    if max(len(events), len(links)) > allowance.limits.events:
        raise Refused("too many events or links")
    trace, own = link(node)
    return Record(
        signal="span",
        scope=scope,
        trace_id=trace,
        span_id=own,
        parent_span_id=span_id(node.get("parentSpanId")),
        name=text(node.get("name")),
        kind=kind(node.get("kind")),
        start_ns=nanoseconds(node.get("startTimeUnixNano")),
        end_ns=nanoseconds(node.get("endTimeUnixNano")),
        status=code,
        status_message=message,
        attributes=attributes(node.get("attributes"), allowance),
        events=[event(entry, allowance) for entry in events],
        links=[link(entry) for entry in links],
    )


def event(value: Any, allowance: Allowance) -> Event:
    """A span event."""
    node = node_of(value)
    allowance.take(1)
    return Event(
        name=text(node.get("name")),
        time_ns=nanoseconds(node.get("timeUnixNano")),
        attributes=attributes(node.get("attributes"), allowance),
    )


def link(value: Any) -> tuple[str, str]:
    """A link's ids, or a span's own: both must be there."""
    node = node_of(value)
    trace, own = trace_id(node.get("traceId")), span_id(node.get("spanId"))
    if not trace or not own:
        raise Refused("ids missing or zero")
    return trace, own


def log_record(node: Node, scope: Scope, allowance: Allowance) -> Record:
    """A log record with nothing wrong in it."""
    time = nanoseconds(node.get("timeUnixNano")) or nanoseconds(node.get("observedTimeUnixNano"))
    return Record(
        signal="log",
        scope=scope,
        trace_id=trace_id(node.get("traceId")),
        span_id=span_id(node.get("spanId")),
        name=text(node.get("eventName")),
        start_ns=time,
        end_ns=time,
        attributes=attributes(node.get("attributes"), allowance),
        body=any_value(node.get("body"), allowance),
    )


def scope(resource: Node, part: Node, allowance: Allowance) -> Scope:
    """A scope with its resource."""
    owner, own = node_of(resource.get("resource")), node_of(part.get("scope"))
    return Scope(
        name=text(own.get("name")),
        version=text(own.get("version")),
        schema_url=text(part.get("schemaUrl")) or text(resource.get("schemaUrl")),
        resource=attributes(owner.get("attributes"), allowance),
        attributes=attributes(own.get("attributes"), allowance),
    )


def attributes(value: Any, allowance: Allowance) -> Attributes:
    """All attributes of a list."""
    pairs = list_of(value)
    if len(pairs) > allowance.limits.attributes:
        raise Refused("too many attributes")
    return [pair(entry, allowance) for entry in pairs]


def pair(entry: Any, allowance: Allowance) -> tuple[str, Value]:
    """One KeyValue."""
    node = node_of(entry)
    allowance.take(1)
    return allowance.key(text(node.get("key"))), any_value(node.get("value"), allowance)


def any_value(value: Any, allowance: Allowance, depth: int = 0) -> Value:
    """The Python value of an AnyValue; null and an empty one are None."""
    node = node_of(value)
    present = [(name, held) for name, held in node.items() if held is not None and name in _VALUES]
    if not present:
        return None
    if len(present) > 1:
        raise Refused("more than one value")
    name, held = present[0]
    return _VALUES[name](held, allowance, depth)


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused("not a boolean")
    return value


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Refused("not a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Refused("not a number of 64 bits") from None


def _bytes(value: Any) -> bytes:
    plain = text(value).translate(_URL_SAFE).rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Refused("not base64") from None


def _list(value: Any, allowance: Allowance, depth: int) -> Value:
    depth = allowance.enter(depth)
    held = list_of(node_of(value).get("values"))
    allowance.take(len(held))
    return [any_value(entry, allowance, depth) for entry in held]


def _map(value: Any, allowance: Allowance, depth: int) -> Value:
    depth = allowance.enter(depth)
    held = list_of(node_of(value).get("values"))
    allowance.take(len(held))
    found: dict[str, Value] = {}
    for entry in held:
        node = node_of(entry)
        key = allowance.key(text(node.get("key")))
        found[key] = any_value(node.get("value"), allowance, depth)
    if len(found) < len(held):
        allowance.repeats(len(held) - len(found))
    return found


def _string_table(_value: Any, _allowance: Allowance, _depth: int) -> Value:
    raise Refused(STRING_TABLE)


_VALUES: dict[str, Callable[[Any, Allowance, int], Value]] = {
    "stringValue": lambda value, _, __: text(value),
    "boolValue": lambda value, _, __: _boolean(value),
    "intValue": lambda value, _, __: integer(value),
    "doubleValue": lambda value, _, __: _double(value),
    "bytesValue": lambda value, _, __: _bytes(value),
    "arrayValue": _list,
    "kvlistValue": _map,
    "stringValueStrindex": _string_table,
}
