"""Protobuf: what one broken part costs, and that it costs nothing else."""

import hashlib
import math
import struct
from typing import Any

import pytest
from tests.intake.samples import (
    SPAN,
    TRACE,
    attribute,
    field,
    length,
    nested,
    request,
    span,
    string,
)

from facta.intake.errors import DecodeFailed
from facta.intake.limits import Limits
from facta.intake.protobuf import decode
from facta.model.records import Value

LIMITS = Limits()
BEFORE = attribute(b"before", string(b"1"))
AFTER = attribute(b"after", string(b"2"))
PLAIN = span(BEFORE, own=b"neighbor")


def key_value(encoded: bytes) -> bytes:
    """What stands inside an attribute field with a one-byte tag and length."""
    return encoded[2 if encoded[1] < 0x80 else 3 :]


BROKEN_ATTRIBUTES: dict[str, tuple[bytes, str]] = {
    "bad utf-8 value": (attribute(b"k", string(b"\xff\xfe")), "invalid UTF-8"),
    "bad utf-8 key": (attribute(b"\xc3\x28", string(b"v")), "invalid UTF-8"),
    "encoded surrogate": (attribute(b"k", string(b"\xed\xa0\x80")), "invalid UTF-8"),
    "overlong": (attribute(b"k", string(b"\xc0\x80")), "invalid UTF-8"),
    "bad utf-8 in a list": (attribute(b"k", field(5, field(1, string(b"\xff")))), "invalid UTF-8"),
    "bad utf-8 in a map key": (
        attribute(b"k", field(6, field(1, field(1, b"\xff")))),
        "invalid UTF-8",
    ),
    "nested too deep": (attribute(b"k", nested(65)), "nested deeper than 64"),
    "length beyond the end": (field(9, b"\x0a\x7fk"), "the encoding breaks off"),
    "wire type 7": (field(9, b"\x0f"), "the encoding breaks off"),
    "field 0": (field(9, b"\x02\x00"), "the encoding breaks off"),
    "value breaks off": (
        field(9, field(1, b"k") + field(2, b"\x0a\x05x")),
        "the encoding breaks off",
    ),
    "endless varint": (field(9, b"\x08" + b"\xff" * 11), "the encoding breaks off"),
    "string table": (
        attribute(b"k", b"\x40\x01"),
        "refers to a string table, which only profiles have",
    ),
    "long key": (
        attribute(b"k" * 65_537, string(b"v")),
        "key over the limit of 65536 characters",
    ),
}


@pytest.mark.parametrize("name", BROKEN_ATTRIBUTES)
def test_one_bad_attribute_costs_only_itself(name: str) -> None:
    encoded, reason = BROKEN_ATTRIBUTES[name]
    batch = decode(request([PLAIN, span(BEFORE, encoded, AFTER), PLAIN]), "traces", LIMITS)
    assert (batch.rejected, batch.refusals) == (0, [])
    assert [record.span_id for record in batch.records] == [
        b"neighbor".hex(),
        SPAN.hex(),
        b"neighbor".hex(),
    ]
    record = batch.records[1]
    assert record.attributes == [("before", "1"), ("after", "2")]
    (refusal,) = record.refusals
    assert (refusal.reason, refusal.place) == (reason, "span attribute 1")
    raw = encoded[len(encoded) - refusal.size :]
    assert refusal.sha256 == hashlib.sha256(raw).hexdigest()
    assert encoded == field(9, raw)
    assert not batch.records[0].refusals
    assert not batch.records[2].refusals


IDS = {
    "no ids": b"",
    "no span id": field(1, TRACE),
    "no trace id": field(2, SPAN),
    "short trace id": field(1, TRACE[:15]) + field(2, SPAN),
    "long span id": field(1, TRACE) + field(2, SPAN + b"\0"),
    "zero trace id": field(1, bytes(16)) + field(2, SPAN),
    "zero span id": field(1, TRACE) + field(2, bytes(8)),
}


@pytest.mark.parametrize("name", IDS)
def test_a_span_is_refused_only_for_its_ids(name: str) -> None:
    bad = IDS[name] + BEFORE
    batch = decode(request([PLAIN, bad, PLAIN]), "traces", LIMITS)
    assert batch.rejected == 1
    assert len(batch.records) == 2
    (refusal,) = batch.refusals
    assert refusal.place == "span 1"
    assert refusal.reason == "trace or span id missing, zero or of the wrong length"
    assert (refusal.size, refusal.sha256) == (len(bad), hashlib.sha256(bad).hexdigest())


def test_all_spans_refused_for_their_ids_is_not_an_undecodable_body() -> None:
    batch = decode(request([span(own=b"short"), span(own=b"")]), "traces", LIMITS)
    assert (batch.rejected, batch.records) == (2, [])


OTHER_PARTS: dict[str, tuple[bytes, str, dict[str, Any]]] = {
    "name": (field(5, b"\xff"), "span name", {"name": ""}),
    "status message": (
        field(15, field(2, b"\xff") + b"\x18\x02"),
        "span status message",
        {"status": 2, "status_message": ""},
    ),
    "status": (field(15, b"\x12\x09x"), "span status", {"status": 0}),
    "parent": (field(4, b"abc"), "span parent span id", {"parent_span_id": ""}),
    "event": (field(11, b"\x0a\x7f"), "span event 0", {}),
    "event name": (field(11, field(2, b"\xff")), "span event 0 name", {}),
    "event attribute": (
        field(11, field(2, b"e") + field(3, field(1, b"\xff")) + field(3, field(1, b"k"))),
        "span event 0 attribute 0",
        {},
    ),
    "link": (field(13, field(1, TRACE)), "span link 0", {"links": []}),
    "end of the span": (b"\x2a\x50cut", "span", {"name": ""}),
}


@pytest.mark.parametrize("name", OTHER_PARTS)
def test_other_parts_cost_only_themselves_too(name: str) -> None:
    encoded, place, expected = OTHER_PARTS[name]
    batch = decode(request([span(BEFORE, AFTER, encoded), PLAIN]), "traces", LIMITS)
    assert (batch.rejected, len(batch.records)) == (0, 2)
    record = batch.records[0]
    assert record.attributes == [("before", "1"), ("after", "2")]
    assert [refusal.place for refusal in record.refusals] == [place]
    for attribute_name, value in expected.items():
        assert getattr(record, attribute_name) == value
    if name == "event attribute":
        assert record.events[0].attributes == [("k", None)]


def double(number: float) -> bytes:
    return b"\x21" + struct.pack("<d", number)


VALUES: dict[str, tuple[bytes, Value]] = {
    "empty": (b"", None),
    "empty string": (string(b""), ""),
    "NUL": (string(b"a\0b"), "a\0b"),
    "wide": (string("\U0001f600\u202e\u200b".encode()), "\U0001f600\u202e\u200b"),
    "2^53 + 1": (b"\x18" + length(2**53 + 1), 2**53 + 1),
    "largest": (b"\x18" + length(2**63 - 1), 2**63 - 1),
    "smallest": (b"\x18" + length(2**63), -(2**63)),
    "minus one": (b"\x18" + length(2**64 - 1), -1),
    "true": (b"\x10\x01", True),
    "false": (b"\x10\x00", False),
    "infinity": (double(math.inf), math.inf),
    "bytes": (field(7, b"\xff\x00"), b"\xff\x00"),
    "list": (
        field(5, field(1, string(b"a")) + field(1, b"") + field(1, b"\x18\x05")),
        ["a", None, 5],
    ),
    "empty list": (field(5, b""), []),
    "map": (field(6, field(1, field(1, b"a") + field(2, string(b"b")))), {"a": "b"}),
    "empty map": (field(6, b""), {}),
    "50 deep": (nested(49), None),
    "51 deep, over the parser's limit": (nested(51), None),
    "64 deep": (nested(64), None),
    "last of a oneof": (string(b"a") + b"\x18\x05", 5),
    "unknown field": (field(99, b"?") + string(b"a"), "a"),
}


@pytest.mark.parametrize("broken_neighbour", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_values_come_through_verbatim(name: str, broken_neighbour: bool) -> None:
    encoded, expected = VALUES[name]
    if "deep" in name:
        expected = "x"
        for _ in range(int(name.split(maxsplit=1)[0]) - (name == "50 deep")):
            expected = [expected]
    # A broken neighbour sends the span through the salvage: the values must be the same.
    broken = attribute(b"\xff", string(b"")) if broken_neighbour else b""
    batch = decode(request([span(broken, attribute(b"k", encoded))]), "traces", LIMITS)
    (record,) = batch.records
    assert record.attributes == [("k", expected)]
    assert type(record.attributes[0][1]) is type(expected)
    assert len(record.refusals) == broken_neighbour


@pytest.mark.parametrize("broken", [b"", attribute(b"\xff", string(b""))])
def test_not_a_number_and_minus_zero(broken: bytes) -> None:
    encoded = attribute(b"nan", double(math.nan)) + attribute(b"zero", double(-0.0))
    (record,) = decode(request([span(broken, encoded)]), "traces", LIMITS).records
    (_, nan), (_, zero) = record.attributes
    assert isinstance(nan, float)
    assert math.isnan(nan)
    assert isinstance(zero, float)
    assert math.copysign(1.0, zero) == -1.0


def test_duplicate_and_hostile_keys_keep_order_and_count() -> None:
    keys = [b"a", b"b", b"a", b"", b"__proto__", b"__class__", b"a.b", b"\0", b"a", b"k" * 65_536]
    encoded = b"".join(attribute(key, string(b"%d" % at)) for at, key in enumerate(keys))
    (record,) = decode(request([span(encoded)]), "traces", LIMITS).records
    assert record.attributes == [(key.decode(), str(at)) for at, key in enumerate(keys)]
    assert record.refusals == []


def test_repeated_keys_in_a_map_keep_the_last_and_say_so() -> None:
    pairs = b"".join(
        field(1, field(1, key) + field(2, string(value)))
        for key, value in [(b"a", b"1"), (b"b", b"2"), (b"a", b"3")]
    )
    encoded = attribute(b"k", field(6, pairs))
    (record,) = decode(request([span(encoded, AFTER)]), "traces", LIMITS).records
    assert record.attributes == [("k", {"a": "3", "b": "2"}), ("after", "2")]
    (refusal,) = record.refusals
    assert refusal.reason == "repeated keys in a map, 1 earlier values left out"
    assert refusal.place == "span attribute 0"


LOGS: dict[str, tuple[bytes, dict[str, Any], list[str]]] = {
    "nothing": (b"", {"trace_id": "", "span_id": "", "body": None, "start_ns": 0}, []),
    "body": (field(5, string(b"b")), {"body": "b"}, []),
    "bad body": (field(5, string(b"\xff")), {"body": None}, ["log record body"]),
    "short id": (field(9, b"abc"), {"trace_id": ""}, ["log record trace id"]),
    "zero ids": (field(9, bytes(16)) + field(10, bytes(8)), {"trace_id": "", "span_id": ""}, []),
    "ids": (
        field(9, TRACE) + field(10, SPAN),
        {"trace_id": TRACE.hex(), "span_id": SPAN.hex()},
        [],
    ),
    "name": (field(12, b"event"), {"name": "event"}, []),
    "time": (b"\x09" + struct.pack("<Q", 5) + b"\x59" + struct.pack("<Q", 7), {"start_ns": 5}, []),
    "observed": (b"\x59" + struct.pack("<Q", 2**64 - 1), {"end_ns": 2**64 - 1}, []),
    "attribute": (field(6, field(1, b"\xff")), {"attributes": []}, ["log record attribute 0"]),
}


@pytest.mark.parametrize("name", LOGS)
def test_log_records_are_kept_with_or_without_ids(name: str) -> None:
    encoded, expected, places = LOGS[name]
    batch = decode(request([field(12, b"one"), encoded]), "logs", LIMITS)
    assert (batch.rejected, len(batch.records)) == (0, 2)
    record = batch.records[1]
    assert record.signal == "log"
    assert {name: getattr(record, name) for name in expected} == expected
    assert [refusal.place for refusal in record.refusals] == places


def test_a_bad_resource_or_scope_attribute_costs_no_span() -> None:
    resource = field(1, field(1, b"service.name") + field(2, string(b"svc"))) + field(
        1, field(1, b"\xff")
    )
    scope = field(1, b"\xff") + field(2, b"1.0") + field(3, field(1, b"k"))
    batch = decode(request([PLAIN, PLAIN], resource, scope), "traces", LIMITS)
    assert len(batch.records) == 2
    assert {refusal.place for refusal in batch.refusals} == {"resource attribute 1", "scope name"}
    own = batch.records[0].scope
    assert own.resource == [("service.name", "svc")]
    assert (own.name, own.version, own.attributes) == ("", "1.0", [("k", None)])


def test_the_scopes_schema_url_stands_before_the_resources() -> None:
    body = field(1, field(2, field(2, PLAIN) + field(3, b"inner")) + field(3, b"outer"))
    assert decode(body, "traces", LIMITS).records[0].scope.schema_url == "inner"
    body = field(1, field(2, field(2, PLAIN)) + field(3, b"outer"))
    assert decode(body, "traces", LIMITS).records[0].scope.schema_url == "outer"


@pytest.mark.parametrize(
    ("limits", "spans", "kept", "rejected"),
    [
        (Limits(records=3), 3, 3, 0),
        (Limits(records=3), 5, 3, 2),
        (Limits(records=1), 100, 1, 99),
    ],
)
def test_spans_over_the_limit_are_rejected_and_counted(
    limits: Limits, spans: int, kept: int, rejected: int
) -> None:
    batch = decode(request([PLAIN] * spans), "traces", limits)
    assert (len(batch.records), batch.rejected) == (kept, rejected)
    assert len(batch.refusals) == (rejected > 0)
    if rejected:
        raw = request([PLAIN] * spans)[-(len(field(2, PLAIN)) * rejected - 2) :]
        assert batch.refusals[0].sha256 == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize(("count", "refused"), [(10, 0), (11, 1), (500, 490)])
def test_attributes_over_the_limit_are_refused_and_counted(count: int, refused: int) -> None:
    limits = Limits(attributes=10)
    encoded = [attribute(b"k", string(b"%d" % at)) for at in range(count)]
    (record,) = decode(request([span(*encoded)]), "traces", limits).records
    assert [value for _, value in record.attributes] == [str(at) for at in range(10)]
    reasons = [refusal.reason for refusal in record.refusals]
    expected = [f"over the limit of 10 attributes ({refused} more)"] if refused else []
    assert reasons == expected


def test_events_links_and_values_have_limits_too() -> None:
    event, link = field(11, field(2, b"e")), field(13, field(1, TRACE) + field(2, SPAN))
    (record,) = decode(request([span(event * 5, link * 5)]), "traces", Limits(events=3)).records
    assert (len(record.events), len(record.links), len(record.refusals)) == (3, 3, 2)
    values = attribute(b"list", field(5, field(1, b"\x10\x01") * 50))
    (record,) = decode(request([span(values, AFTER)]), "traces", Limits(values=20)).records
    assert [refusal.reason for refusal in record.refusals] == [
        "over the limit of 20 values in a request",
        "1 more that could not be read",
    ]


def test_what_lies_beyond_the_steps_is_refused_unseen() -> None:
    broken = span(attribute(b"\xff", b""), *[BEFORE] * 50)
    batch = decode(request([PLAIN, broken, PLAIN]), "traces", Limits(steps=30))
    assert len(batch.records) == 3
    reasons = {refusal.reason for refusal in batch.records[1].refusals}
    assert "over the limit of steps for a request, not looked at" in reasons
    assert batch.records[2].refusals == []


def test_cut_anywhere_the_spans_before_the_cut_are_kept() -> None:
    spans = [span(BEFORE, AFTER, own=bytes([at]) * 8) for at in range(1, 4)]
    body = request(spans)
    ends = [body.index(content) + len(content) for content in spans]
    for cut in range(1, len(body)):
        whole = sum(end <= cut for end in ends)
        try:
            batch = decode(body[:cut], "traces", LIMITS)
        except DecodeFailed:
            assert whole == 0
            continue
        assert len(batch.records) >= whole
        assert batch.refusals, cut
        for record in batch.records[:whole]:
            assert record.attributes == [("before", "1"), ("after", "2")]


@pytest.mark.parametrize(
    "body", [b"\xff", b"\x0a", b"\x0a\x05", b"garbage!", b"{}", b"\x0f", request([b"\xff\xff"])]
)
def test_nothing_decodable_is_a_failure(body: bytes) -> None:
    with pytest.raises(DecodeFailed) as raised:
        decode(body, "traces", LIMITS)
    assert "garbage" not in str(raised.value)


@pytest.mark.parametrize("body", [b"", field(99, b"unknown"), request([]), b"\x0b\x08\x01\x0c"])
def test_nothing_at_all_is_an_empty_request(body: bytes) -> None:
    batch = decode(body, "traces", LIMITS)
    assert (batch.records, batch.refusals, batch.rejected) == ([], [], 0)
