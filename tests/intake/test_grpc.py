"""OTLP/gRPC over a real server: the same salvage, and the codes that the specification names."""

import gzip
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.intake.conftest import GrpcServed, Recorder
from tests.intake.samples import attribute, request, span, string

from facta.intake.limits import Limits
from facta.model.errors import Unavailable
from facta.model.identity import Denied, Identity

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
METRICS = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
LIMIT = 1 << 20
ONE = request([span(attribute(b"k", string(b"v")))])


@pytest.fixture(scope="module")
def shared() -> Iterator[GrpcServed]:
    served = GrpcServed(Limits(body=LIMIT))
    yield served
    served.stop()


@pytest.fixture
def server(shared: GrpcServed) -> GrpcServed:
    vars(shared.recorder).update(vars(Recorder()))
    return shared


@pytest.mark.parametrize(
    "compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate]
)
def test_compression(server: GrpcServed, compression: grpc.Compression) -> None:
    body = request([span(attribute(b"k", string(b"v" * 5000)))])
    assert server.call(TRACES, body, compression=compression) == b""
    assert [record.attributes for record in server.recorder.records] == [[("k", "v" * 5000)]]


def test_one_bad_attribute_and_one_bad_span_cost_only_themselves(server: GrpcServed) -> None:
    body = request([span(attribute(b"k", string(b"\xff"))), span(own=b"short"), span()])
    told = ExportTraceServiceResponse.FromString(server.call(TRACES, body)).partial_success
    assert told.rejected_spans == 1
    assert "invalid UTF-8 (1)" in told.error_message
    assert len(server.recorder.records) == 2


def test_logs_and_metrics(server: GrpcServed) -> None:
    answer = server.call(LOGS, request([b"", b"\x2a\x03\x0a\x01\xff"]))
    told = ExportLogsServiceResponse.FromString(answer).partial_success
    assert (told.rejected_log_records, len(server.recorder.records)) == (0, 2)
    assert server.call(METRICS, b"anything") == b""
    assert len(server.recorder.batches) == 1


def test_an_empty_message_is_an_empty_request(server: GrpcServed) -> None:
    assert server.call(TRACES, b"") == b""
    assert server.call(LOGS, b"", compression=grpc.Compression.Gzip) == b""
    assert server.recorder.batches == []


def test_nothing_decodable_is_invalid_argument(server: GrpcServed) -> None:
    code, status = server.fail(TRACES, b"\xffgarbage")
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    details = BadRequest()
    assert status.details[0].Unpack(details)
    assert "garbage" not in str(status)


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (bytes(LIMIT + 1), {}),
        (bytes(LIMIT * 30), {"compression": grpc.Compression.Gzip}),
        (gzip.compress(bytes(LIMIT * 30)), {}),
    ],
)
def test_too_large_is_not_to_be_sent_again(
    server: GrpcServed, body: bytes, options: dict[str, Any]
) -> None:
    code, status = server.fail(TRACES, body, **options)
    assert code == grpc.StatusCode.INVALID_ARGUMENT
    assert str(LIMIT) in status.message


def test_far_too_large_is_refused_by_grpc_itself_without_retry_info(server: GrpcServed) -> None:
    code, status = server.fail(TRACES, bytes(LIMIT * 3))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert list(status.details) == []


def test_full_is_unavailable_and_says_when_to_come_back(server: GrpcServed) -> None:
    server.recorder.error = Unavailable(9)
    code, status = server.fail(TRACES, ONE)
    assert code == grpc.StatusCode.UNAVAILABLE
    details = RetryInfo()
    assert status.details[0].Unpack(details)
    assert details.retry_delay.seconds == 9


@pytest.mark.parametrize(
    ("denied", "code"),
    [
        (Denied(401, "No token."), grpc.StatusCode.UNAUTHENTICATED),
        (Denied(403, "Not ingest."), grpc.StatusCode.PERMISSION_DENIED),
    ],
)
@pytest.mark.parametrize("method", [TRACES, LOGS, METRICS])
def test_denied(server: GrpcServed, denied: Denied, code: grpc.StatusCode, method: str) -> None:
    server.recorder.denied = denied
    found, status = server.fail(method, ONE)
    assert (found, status.message) == (code, denied.message)


def test_the_identity_is_the_tokens(server: GrpcServed) -> None:
    server.call(TRACES, ONE, metadata=[("authorization", "Bearer other")])
    assert server.recorder.identities == [Identity("other", "producer")]


def test_a_program_error_is_internal_without_its_text(
    server: GrpcServed, caplog: pytest.LogCaptureFixture
) -> None:
    server.recorder.error = KeyError("CANARY")
    code, status = server.fail(TRACES, ONE)
    assert code == grpc.StatusCode.INTERNAL
    assert "CANARY" not in str(status)
    assert "CANARY" not in caplog.text
    assert "KeyError at conftest.py:" in caplog.text
