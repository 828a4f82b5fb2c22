"""OTLP/JSON: its spellings, and what one broken part costs."""

import hashlib
import math
from typing import Any

import orjson
import pytest
from tests.intake.samples import SPAN, TRACE, json_attribute, json_request, json_span

from facta.intake import json
from facta.intake.errors import DecodeFailed
from facta.intake.json import decode
from facta.intake.limits import Limits
from facta.model.records import Value

LIMITS = Limits()
BEFORE = json_attribute("before", {"stringValue": "1"})
AFTER = json_attribute("after", {"stringValue": "2"})
PLAIN = json_span(f"[{BEFORE}]", span_id="AB" * 8)


@pytest.fixture(params=["at once", "split"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading a request must say the same."""
    if request.param == "split":
        monkeypatch.setattr(json, "_AT_ONCE", 0)
    return str(request.param)


SURROGATE = '{"key":"k","value":{"stringValue":"\\ud800"}}'
BROKEN_ATTRIBUTES: dict[str, tuple[str, str]] = {
    "lone surrogate": (SURROGATE, "lone surrogate"),
    "lone low surrogate": (SURROGATE.replace("d800", "dc00"), "lone surrogate"),
    "surrogate key": ('{"key":"\\ud800","value":{}}', "lone surrogate"),
    "raw surrogate": ('{"key":"k","value":{"stringValue":"\ud800"}}', "invalid UTF-8"),
    "not json": ('{"key":k}', "not JSON"),
    "not an object": ("5", "not an object"),
    "key of the wrong type": ('{"key":5,"value":{}}', "not a string"),
    "string of the wrong type": (json_attribute("k", {"stringValue": 5}), "not a string"),
    "boolean of the wrong type": (json_attribute("k", {"boolValue": "yes"}), "not a boolean"),
    "integer of the wrong type": (
        json_attribute("k", {"intValue": True}),
        "not an integer of 64 bits",
    ),
    "integer text": (json_attribute("k", {"intValue": "5x"}), "not an integer of 64 bits"),
    "integer of 65 bits": (
        json_attribute("k", {"intValue": str(2**63)}),
        "not an integer of 64 bits",
    ),
    "huge integer": ('{"key":"k","value":{"intValue":' + "9" * 5000 + "}}", "not JSON"),
    "fraction": (json_attribute("k", {"intValue": 1.5}), "not an integer of 64 bits"),
    "double text": (json_attribute("k", {"doubleValue": "five"}), "not a number of 64 bits"),
    "double of the wrong type": (json_attribute("k", {"doubleValue": [1]}), "not a number"),
    "bytes": (json_attribute("k", {"bytesValue": "***"}), "not base64"),
    "two values": (json_attribute("k", {"stringValue": "a", "intValue": 1}), "more than one value"),
    "list of the wrong type": (json_attribute("k", {"arrayValue": {"values": {}}}), "not a list"),
    "nested text": ('{"key":"k","value":' + "[" * 5000 + "]" * 5000 + "}", "nested too deep"),
}


@pytest.mark.parametrize("name", BROKEN_ATTRIBUTES)
def test_one_bad_attribute_costs_only_itself(name: str, way: str) -> None:
    text, reason = BROKEN_ATTRIBUTES[name]
    body = json_request([PLAIN, json_span(f"[{BEFORE}, {text} ,{AFTER}]"), PLAIN])
    batch = decode(body, "traces", LIMITS)
    assert (batch.rejected, batch.refusals, len(batch.records)) == (0, [], 3)
    record = batch.records[1]
    assert record.attributes == [("before", "1"), ("after", "2")]
    (refusal,) = record.refusals
    raw = text.encode("utf-8", "surrogatepass")
    assert (refusal.reason, refusal.place) == (reason, "span attribute 1")
    assert (refusal.size, refusal.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    for neighbour in (batch.records[0], batch.records[2]):
        assert neighbour.attributes == [("before", "1")]
        assert neighbour.refusals == []
        assert neighbour.span_id == "ab" * 8


def deep(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(depth):
        value = {"arrayValue": {"values": [value]}}
    return value


def inside(depth: int) -> Value:
    value: Value = "x"
    for _ in range(depth):
        value = [value]
    return value


VALUES: dict[str, tuple[Any, Value]] = {
    "empty": ({}, None),
    "null": (None, None),
    "null value": ({"stringValue": None}, None),
    "unknown": ({"laterValue": 5}, None),
    "string": ({"stringValue": "a\0\u202e"}, "a\0\u202e"),
    "integer": ({"intValue": 2**53 + 1}, 2**53 + 1),
    "integer as text": ({"intValue": "-9223372036854775808"}, -(2**63)),
    "whole double": ({"intValue": 5.0}, 5),
    "double": ({"doubleValue": 1.5}, 1.5),
    "double from integer": ({"doubleValue": 1}, 1.0),
    "double from text": ({"doubleValue": "-Infinity"}, -math.inf),
    "boolean": ({"boolValue": False}, False),
    "bytes": ({"bytesValue": "//79AA=="}, b"\xff\xfe\xfd\x00"),
    "bytes in the other alphabet, unpadded": ({"bytesValue": "__79AA"}, b"\xff\xfe\xfd\x00"),
    "list": ({"arrayValue": {"values": [{"intValue": "1"}, {}]}}, [1, None]),
    "empty list": ({"arrayValue": {}}, []),
    "map": ({"kvlistValue": {"values": [{"key": "a", "value": {"boolValue": True}}]}}, {"a": True}),
    "empty map": ({"kvlistValue": {"values": None}}, {}),
    "64 deep": (deep(64), inside(64)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_through_verbatim(name: str, way: str) -> None:
    value, expected = VALUES[name]
    body = json_request([json_span(f"[{json_attribute('k', value)}]")])
    (record,) = decode(body, "traces", LIMITS).records
    assert record.attributes == [("k", expected)]
    assert type(record.attributes[0][1]) is type(expected)
    assert record.refusals == []


def test_nan_literals_infinities_and_control_characters_are_taken(way: str) -> None:
    text = (
        '[{"key":"nan","value":{"doubleValue":NaN}},'
        '{"key":"inf","value":{"doubleValue":-Infinity}},'
        '{"key":"big","value":{"doubleValue":1e400}},'
        '{"key":"raw\ttab","value":{"stringValue":"a\nb\0"}},'
        '{"key":"zero","value":{"doubleValue":-0.0}}]'
    )
    (record,) = decode(json_request([json_span(text)]), "traces", LIMITS).records
    found = dict(record.attributes)
    assert record.refusals == []
    assert isinstance(found["nan"], float)
    assert math.isnan(found["nan"])
    assert (found["inf"], found["big"]) == (-math.inf, math.inf)
    assert found["raw\ttab"] == "a\nb\0"
    assert math.copysign(1.0, found["zero"]) == -1.0  # type: ignore[arg-type]


def test_over_deep_values_are_refused(way: str) -> None:
    body = json_request([json_span(f"[{json_attribute('k', deep(65))},{AFTER}]")])
    (record,) = decode(body, "traces", LIMITS).records
    assert record.attributes == [("after", "2")]
    assert [refusal.reason for refusal in record.refusals] == ["nested deeper than 64"]


def test_duplicates_keep_order_and_count_and_maps_say_what_they_drop(way: str) -> None:
    pairs = [{"key": "a", "value": {"intValue": at}} for at in range(3)]
    text = ",".join([BEFORE, json_attribute("k", {"kvlistValue": {"values": pairs}}), BEFORE])
    (record,) = decode(json_request([json_span(f"[{text}]")]), "traces", LIMITS).records
    assert record.attributes == [("before", "1"), ("k", {"a": 2}), ("before", "1")]
    assert [refusal.reason for refusal in record.refusals] == [
        "repeated keys in a map, 2 earlier values left out"
    ]


def test_everything_a_span_can_say(way: str) -> None:
    span = {
        "traceId": TRACE.hex().upper(),
        "spanId": SPAN.hex().upper(),
        "parentSpanId": "FF" * 8,
        "name": "n",
        "kind": "SPAN_KIND_CLIENT",
        "startTimeUnixNano": "18446744073709551615",
        "endTimeUnixNano": 7,
        "status": {"code": "STATUS_CODE_ERROR", "message": "m"},
        "events": [{"name": "e", "timeUnixNano": "5", "attributes": [orjson.loads(BEFORE)]}],
        "links": [{"traceId": TRACE.hex(), "spanId": SPAN.hex(), "unknown": {}}],
        "unknownField": {"anything": [1, 2]},
    }
    scope = {"name": "s", "version": "1", "attributes": [orjson.loads(AFTER)], "later": 1}
    request = {
        "resourceSpans": [
            {
                "schemaUrl": "outer",
                "scopeSpans": [{"spans": [span], "scope": scope}],
                "resource": {"attributes": [orjson.loads(BEFORE)]},
            }
        ],
        "other": None,
    }
    (record,) = decode(orjson.dumps(request), "traces", LIMITS).records
    assert (record.trace_id, record.span_id) == (TRACE.hex(), SPAN.hex())
    assert (record.parent_span_id, record.name, record.kind) == ("ff" * 8, "n", 3)
    assert (record.start_ns, record.end_ns) == (2**64 - 1, 7)
    assert (record.status, record.status_message) == (2, "m")
    assert [(e.name, e.time_ns, e.attributes) for e in record.events] == [
        ("e", 5, [("before", "1")])
    ]
    assert record.links == [(TRACE.hex(), SPAN.hex())]
    assert (record.scope.name, record.scope.version, record.scope.schema_url) == ("s", "1", "outer")
    assert record.scope.resource == [("before", "1")]
    assert record.scope.attributes == [("after", "2")]
    assert record.refusals == []


FIELDS: dict[str, tuple[str, str]] = {
    "name": (',"name":"\\ud800"', "span name"),
    "kind": (',"kind":"SPAN_KIND_ODD"', "span kind"),
    "start": (',"startTimeUnixNano":-1', "span start time"),
    "status": (',"status":{"code":"ODD"}', "span status"),
    "parent": (',"parentSpanId":"xyz"', "span parent span id"),
    "attributes": (',"attributes":{}', "span attributes"),
    "events": (',"events":5', "span events"),
    "event": (',"events":[5]', "span event 0"),
    "event name": (',"events":[{"name":5}]', "span event 0 name"),
    "event attribute": (',"events":[{"attributes":[5]}]', "span event 0 attribute 0"),
    "link": (',"links":[{"traceId":"00"}]', "span link 0"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_other_parts_cost_only_themselves_too(name: str, way: str) -> None:
    more, place = FIELDS[name]
    batch = decode(json_request([json_span(f"[{BEFORE}]", more), PLAIN]), "traces", LIMITS)
    assert (batch.rejected, len(batch.records)) == (0, 2)
    assert [refusal.place for refusal in batch.records[0].refusals] == [place]
    if name != "attributes":
        assert batch.records[0].attributes == [("before", "1")]


@pytest.mark.parametrize("bad", ["", "ab", "zz" * 8, "00" * 8, "AAAAAAAAAAA=", "ab cd ef ab cd ef"])
def test_a_span_is_refused_only_for_its_ids(bad: str, way: str) -> None:
    batch = decode(json_request([PLAIN, json_span(span_id=bad), PLAIN]), "traces", LIMITS)
    assert (batch.rejected, len(batch.records)) == (1, 2)
    (refusal,) = batch.refusals
    assert (refusal.place, refusal.size) == ("span 1", len(json_span(span_id=bad)))


def test_log_records_are_kept_with_or_without_ids(way: str) -> None:
    records: list[Any] = [
        {},
        {"body": {"stringValue": "b"}, "timeUnixNano": "5", "observedTimeUnixNano": "6"},
        {"traceId": "short", "spanId": SPAN.hex(), "eventName": "e"},
        {"body": {"intValue": "x"}, "observedTimeUnixNano": "6"},
    ]
    request = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    batch = decode(orjson.dumps(request), "logs", LIMITS)
    assert [record.body for record in batch.records] == [None, "b", None, None]
    assert [record.start_ns for record in batch.records] == [0, 5, 0, 6]
    assert [record.span_id for record in batch.records] == ["", "", SPAN.hex(), ""]
    places = [[refusal.place for refusal in record.refusals] for record in batch.records]
    assert places == [[], [], ["log record trace id"], ["log record body"]]


def test_a_bad_resource_attribute_costs_no_span(way: str) -> None:
    text = json_request([PLAIN, PLAIN]).decode()
    text = text.replace(
        '{"scopeSpans"', f'{{"resource":{{"attributes":[{SURROGATE},{BEFORE}]}},"scopeSpans"'
    )
    batch = decode(text.encode(), "traces", LIMITS)
    assert len(batch.records) == 2
    assert [refusal.place for refusal in batch.refusals] == ["resource attribute 0"]
    assert batch.records[0].scope.resource == [("before", "1")]


def test_spans_over_the_limit_are_rejected_and_counted(way: str) -> None:
    batch = decode(json_request([PLAIN] * 10), "traces", Limits(records=4))
    assert (len(batch.records), batch.rejected) == (4, 6)
    (refusal,) = batch.refusals
    assert refusal.reason == "over the limit of 4 records in a request"
    assert refusal.size == 6 * len(PLAIN) + 5 + 1


def test_attributes_over_the_limit_are_refused_and_counted(way: str) -> None:
    text = f"[{','.join([BEFORE] * 30)}]"
    (record,) = decode(json_request([json_span(text)]), "traces", Limits(attributes=10)).records
    assert len(record.attributes) == 10
    assert [refusal.reason for refusal in record.refusals] == [
        "over the limit of 10 attributes (20 more)"
    ]


def test_cut_anywhere_the_spans_before_the_cut_are_kept() -> None:
    spans = [json_span(f"[{BEFORE},{AFTER}]", span_id=f"{at:016x}") for at in (1, 2, 3)]
    body = json_request(spans)
    ends = [body.index(text.encode()) + len(text) for text in spans]
    for cut in range(1, len(body) - 1):
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


def test_attributes_before_a_cut_are_kept() -> None:
    text = json_request([json_span(f"[{BEFORE},{AFTER},{BEFORE}]")])
    cut = text.index(AFTER.encode()) + len(AFTER) + 5
    (record,) = decode(text[:cut], "traces", LIMITS).records
    assert record.attributes == [("before", "1"), ("after", "2")]
    assert record.refusals


@pytest.mark.parametrize(
    "body",
    [b"x", b"[]", b"5", b"null", b"{", b'{"a"', b"\xff\xfe{\0}\0", b" ", b"{} {}", b"[" * 10**6],
)
def test_nothing_decodable_is_a_failure(body: bytes, way: str) -> None:
    with pytest.raises(DecodeFailed):
        decode(body, "traces", LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b" {}\n",
        b"\xef\xbb\xbf{}",
        b'{"resourceSpans":null}',
        b'{"later":[1]}',
        b'{"resourceSpans":[{}]}',
    ],
)
def test_nothing_at_all_is_an_empty_request(body: bytes, way: str) -> None:
    batch = decode(body, "traces", LIMITS)
    assert (batch.records, batch.refusals, batch.rejected) == ([], [], 0)


def test_braces_and_escapes_inside_strings_are_text(way: str) -> None:
    held = '}]"\\{[' + "\\" * 9001 + '"'
    text = f"[{json_attribute('k', {'stringValue': held})}]"
    body = json_request([json_span(text), json_span(f"[{SURROGATE}]"), PLAIN])
    batch = decode(body, "traces", LIMITS)
    assert batch.records[0].attributes == [("k", held)]
    assert len(batch.records) == 3
