"""What holds for every request: all ways of reading say the same, and damage stays where it is."""

import base64
import os
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.intake.samples import json_request, request

from facta.intake import json, outline, protobuf
from facta.intake.errors import DecodeFailed
from facta.intake.limits import Limits
from facta.model.records import Batch

pytestmark = pytest.mark.fuzz

LIMITS = Limits()
# A structure costs as much as twenty mutated bodies: 100 of each kind, and 5,000 in `make fuzz`.
EXAMPLES = settings(max_examples=max(100, int(os.environ.get("FUZZ_CASES", "2000")) // 20))


def comparable(batch: Batch) -> Any:
    """A batch as text: NaN is equal to itself there, and the marks' nonces are left out."""
    for record in batch.records:
        record.marks.nonce = ""
    return repr(batch)


def as_json(body: bytes, signal: str) -> bytes:
    """OTLP/JSON of a request: protobuf's mapping with hex ids."""
    maker = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest

    def with_hex(node: Any) -> Any:
        if isinstance(node, list):
            return [with_hex(entry) for entry in node]
        if not isinstance(node, dict):
            return node
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64decode(held).hex() if key in ids else with_hex(held)
            for key, held in node.items()
        }

    return orjson.dumps(with_hex(MessageToDict(maker.FromString(body))))


def all_ways(body: bytes, text: bytes, signal: protobuf.Signal) -> list[Any]:
    """Strictly and salvaged, from protobuf and from JSON."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for slice_size, at_once in [(outline.SLICE, 4 << 20), (0, 0)]:
            patch.setattr(outline, "SLICE", slice_size)
            patch.setattr(json, "_AT_ONCE", at_once)
            found.append(comparable(protobuf.decode(body, signal, LIMITS)))
            found.append(comparable(json.decode(text, signal, LIMITS)))
    return found


def test_every_real_payload_reads_the_same_in_every_way(payloads: dict[str, bytes]) -> None:
    assert len(payloads) > 50
    for name, body in payloads.items():
        signal: protobuf.Signal = "logs" if "/logs" in name else "traces"
        first, *others = all_ways(body, as_json(body, signal), signal)
        assert all(other == first for other in others), name
        assert "Refusal" not in first, name


SCALARS = st.one_of(
    st.builds(lambda text: AnyValue(string_value=text), st.text()),
    st.builds(lambda number: AnyValue(int_value=number), st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda number: AnyValue(double_value=number), st.floats()),
    st.builds(lambda flag: AnyValue(bool_value=flag), st.booleans()),
    st.builds(lambda raw: AnyValue(bytes_value=raw), st.binary(max_size=20)),
    st.just(AnyValue()),
)


def a_list(values: list[AnyValue]) -> AnyValue:
    made = AnyValue()
    made.array_value.values.extend(values)
    return made


def a_map(values: dict[str, AnyValue]) -> AnyValue:
    made = AnyValue()
    made.kvlist_value.values.extend(KeyValue(key=key, value=held) for key, held in values.items())
    return made


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(a_list),
        st.dictionaries(st.text(max_size=5), inner, max_size=3).map(a_map),
    ),
    max_leaves=8,
)
PAIRS = st.lists(
    st.builds(lambda key, held: KeyValue(key=key, value=held), st.text(max_size=8), VALUES),
    max_size=4,
)
TIMES = st.integers(0, 2**64 - 1)
SPANS = st.builds(
    Span,
    trace_id=st.binary(min_size=16, max_size=16).filter(any),
    span_id=st.binary(min_size=8, max_size=8).filter(any),
    parent_span_id=st.sampled_from([b"", b"parentid", bytes(8)]),
    name=st.text(),
    kind=st.integers(0, 5),
    start_time_unix_nano=TIMES,
    end_time_unix_nano=TIMES,
    attributes=PAIRS,
    events=st.lists(
        st.builds(Span.Event, name=st.text(), time_unix_nano=TIMES, attributes=PAIRS), max_size=2
    ),
)


@EXAMPLES
@given(st.lists(SPANS, max_size=4))
def test_generated_spans_read_the_same_in_every_way(spans: list[Span]) -> None:
    body = request(span.SerializeToString() for span in spans)
    first, *others = all_ways(body, as_json(body, "traces"), "traces")
    assert all(other == first for other in others)
    assert len(protobuf.decode(body, "traces", LIMITS).records) == len(spans)


@EXAMPLES
@given(st.data(), SPANS, SPANS)
def test_a_mutated_span_never_touches_its_neighbours(
    data: st.DataObject, one: Span, two: Span
) -> None:
    good = [one.SerializeToString(), two.SerializeToString()]
    bad = bytearray(data.draw(SPANS).SerializeToString())
    for _ in range(data.draw(st.integers(1, 5))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    batch = protobuf.decode(request([good[0], bytes(bad), good[1]]), "traces", LIMITS)
    clean = protobuf.decode(request(good), "traces", LIMITS)
    kept = [batch.records[0], batch.records[-1]]
    assert comparable(Batch(records=kept)) == comparable(clean)
    assert len(batch.records) + batch.rejected == 3


@EXAMPLES
@given(st.data(), SPANS, SPANS)
def test_a_json_span_with_broken_text_inside_never_touches_its_neighbours(
    data: st.DataObject, one: Span, two: Span
) -> None:
    texts = []
    for span in (one, two):
        text = as_json(request([span.SerializeToString()]), "traces").decode()
        texts.append(text[text.index('"spans":[') + 9 : -6])
    # Brackets and quotes are what a text is split by: only they can reach beyond a span.
    odd = data.draw(st.text(st.characters(exclude_characters='"[]{}', exclude_categories=["Cs"])))
    bad = '{"traceId":' + odd + "}"
    batch = json.decode(json_request([texts[0], bad, texts[1]]), "traces", LIMITS)
    clean = json.decode(json_request(texts), "traces", LIMITS)
    assert batch.rejected == 1
    assert comparable(Batch(records=batch.records)) == comparable(clean)


@EXAMPLES
@given(st.binary(max_size=300), st.sampled_from(["traces", "logs"]))
def test_any_bytes_are_decoded_or_refused(body: bytes, signal: protobuf.Signal) -> None:
    for decode in (protobuf.decode, json.decode):
        try:
            batch = decode(body, signal, LIMITS)
        except DecodeFailed:
            continue
        assert batch.rejected == 0 or batch.refusals
