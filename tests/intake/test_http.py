"""OTLP/HTTP over a real server: every answer that the specification names."""

import gzip
import json
import socket
import zlib
from collections.abc import Callable, Iterator

import pytest
from backports import zstd
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from tests.intake.conftest import IDENTITY, Recorder, Served
from tests.intake.samples import attribute, json_request, json_span, request, span, string

from facta.model.errors import Unavailable
from facta.model.identity import Denied, Identity, Outcome

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
ONE = request([span(attribute(b"k", string(b"v")))])
ONE_JSON = json_request([json_span()])


def status(content: bytes) -> Status:
    return Status.FromString(content)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", ONE),
        ("identity", ONE),
        ("gzip", gzip.compress(ONE, mtime=0)),
        ("deflate", zlib.compress(ONE)),
        ("deflate", zlib.compress(ONE)[2:-4]),
        ("zstd", zstd.compress(ONE)),
    ],
    ids=["none", "identity", "gzip", "zlib", "raw deflate", "zstd"],
)
def test_codings(server: Served, coding: str, body: bytes) -> None:
    answer = server.post("/v1/traces", body, content_encoding=coding)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == PROTOBUF
    assert [record.attributes for record in server.recorder.records] == [[("k", "v")]]
    assert server.recorder.identities == [IDENTITY]


@pytest.mark.parametrize(
    "content_type", [JSON, "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_json_is_answered_in_json(server: Served, content_type: str) -> None:
    answer = server.post("/v1/traces", ONE_JSON, content_type=content_type)
    assert (answer.status_code, answer.content) == (200, b"{}")
    assert answer.headers["content-type"] == JSON
    assert len(server.recorder.records) == 1


@pytest.mark.parametrize(
    ("content_type", "answered"),
    [
        ("text/plain", PROTOBUF),
        ("application/grpc", PROTOBUF),
        ("application/jsonx", JSON),
        ("application/json; charset=utf-16", JSON),
        ("", PROTOBUF),
        ("nonsense", PROTOBUF),
        ("application/protobuf", PROTOBUF),
    ],
)
def test_other_content_types_are_415(server: Served, content_type: str, answered: str) -> None:
    answer = server.post("/v1/traces", ONE, content_type=content_type)
    assert answer.status_code == 415
    assert answer.headers["content-type"] == answered
    message = (
        json.loads(answer.content)["message"]
        if answered == JSON
        else status(answer.content).message
    )
    assert message == "Send application/x-protobuf or application/json; JSON in UTF-8."
    assert server.recorder.batches == []


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate, gzip"])
def test_other_codings_are_415(server: Served, coding: str) -> None:
    answer = server.post("/v1/traces", ONE, content_encoding=coding)
    assert answer.status_code == 415
    assert answer.headers["accept-encoding"] == "gzip, deflate, zstd, identity"


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/logs", "/v1/metrics"])
@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_an_empty_body_is_an_empty_request(server: Served, path: str, content_type: str) -> None:
    answer = server.post(path, b"", content_type=content_type)
    assert (answer.status_code, answer.content) == (200, b"{}" if content_type == JSON else b"")
    assert server.recorder.batches == []


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_405(server: Served, method: str) -> None:
    import httpx

    answer = httpx.request(method, server.url + "/v1/traces")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    if method != "HEAD":
        assert status(answer.content).message == "Send telemetry with POST."


def test_metrics_are_answered_and_not_kept(server: Served) -> None:
    answer = server.post("/v1/metrics", b"anything \xff", content_encoding="gzip")
    assert answer.status_code == 200
    assert ExportMetricsServiceResponse.FromString(answer.content) == ExportMetricsServiceResponse()
    assert server.recorder.batches == []


def test_logs(server: Served) -> None:
    answer = server.post("/v1/logs", request([b"", b"\x2a\x03\x0a\x01\xff"]))
    told = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, told.rejected_log_records) == (200, 0)
    assert told.error_message == "Could not be read: invalid UTF-8 (1)."
    assert [record.signal for record in server.recorder.records] == ["log", "log"]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_t16_three_of_a_hundred_spans_are_rejected_and_97_kept(
    server: Served, content_type: str
) -> None:
    if content_type == JSON:
        spans = [
            json_span(span_id="ab" if at in {5, 50, 99} else f"{at + 1:016x}") for at in range(100)
        ]
        body = json_request(spans)
    else:
        body = request(
            span(own=b"ab" if at in {5, 50, 99} else (at + 1).to_bytes(8, "big"))
            for at in range(100)
        )
    answer = server.post("/v1/traces", body, content_type=content_type)
    assert answer.status_code == 200
    reason = "trace or span id missing, zero or of the wrong length"
    message = f"3 span(s) refused. Could not be read: {reason} (3)."
    if content_type == JSON:
        assert json.loads(answer.content) == {
            "partialSuccess": {"rejectedSpans": "3", "errorMessage": message}
        }
    else:
        told = ExportTraceServiceResponse.FromString(answer.content).partial_success
        assert (told.rejected_spans, told.error_message) == (3, message)
    kept = {int(record.span_id, 16) - 1 for record in server.recorder.records}
    assert kept == set(range(100)) - {5, 50, 99}
    assert server.recorder.batches[0].rejected == 3


def test_what_accept_rejects_is_added(server: Served) -> None:
    server.recorder.outcome = Outcome(2, "Two were not wanted.")
    answer = server.post("/v1/traces", request([span(own=b""), span()]))
    told = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert told.rejected_spans == 3
    assert told.error_message.endswith("Two were not wanted.")


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize("coding", ["", "gzip", "zstd", "deflate"])
def test_a_body_of_which_nothing_can_be_decoded_is_400_and_leaves_a_gap(
    server: Served, content_type: str, coding: str
) -> None:
    import hashlib

    body = b"\xffgarbage"
    answer = server.post("/v1/traces", body, content_type=content_type, content_encoding=coding)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == content_type
    if content_type == JSON:
        told = json.loads(answer.content)
        assert told["code"] == 3
        assert told["details"][0]["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    else:
        details = BadRequest()
        assert status(answer.content).details[0].Unpack(details)
        assert details.field_violations[0].field == "body"
    assert b"garbage" not in answer.content
    (refusal,) = server.recorder.batches[0].refusals
    assert (refusal.size, refusal.sha256) == (len(body), hashlib.sha256(body).hexdigest())


def test_a_compressed_body_that_breaks_off_keeps_what_came_before(server: Served) -> None:
    import os

    body = request(
        span(attribute(b"k", string(os.urandom(300).hex().encode()))) for _ in range(500)
    )
    answer = server.post("/v1/traces", gzip.compress(body)[:-5000], content_encoding="gzip")
    told = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert answer.status_code == 200
    assert "the compressed body breaks off (1)" in told.error_message
    assert 400 < len(server.recorder.records) < 500


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
def test_503_says_when_to_come_back(server: Served, content_type: str) -> None:
    server.recorder.error = Unavailable(7)
    body = ONE_JSON if content_type == JSON else ONE
    answer = server.post("/v1/traces", body, content_type=content_type)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    if content_type == JSON:
        assert json.loads(answer.content)["details"][0]["retryDelay"] == "7s"
    else:
        details = RetryInfo()
        assert status(answer.content).details[0].Unpack(details)
        assert details.retry_delay.seconds == 7


@pytest.mark.parametrize(
    ("denied", "challenge"),
    [(Denied(401, "No token."), "Bearer"), (Denied(403, "Not ingest."), None)],
)
def test_denied(server: Served, denied: Denied, challenge: str | None) -> None:
    server.recorder.denied = denied
    answer = server.post("/v1/metrics", b"")
    assert answer.status_code == denied.status
    assert answer.headers.get("www-authenticate") == challenge
    assert status(answer.content).message == denied.message


def test_the_identity_is_the_tokens(server: Served) -> None:
    server.post("/v1/traces", ONE, authorization="Bearer other")
    assert server.recorder.identities == [Identity("other", "producer")]


def test_a_program_error_is_500_without_its_text(
    server: Served, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    server.recorder.error = KeyError("CANARY")
    answer = server.post("/v1/traces", ONE)
    assert answer.status_code == 500
    assert b"CANARY" not in answer.content
    assert "CANARY" not in caplog.text
    assert "KeyError at conftest.py:" in caplog.text
    assert "CANARY" not in "".join(capfd.readouterr())


LIMIT = 1 << 20


def chunked(size: int) -> Iterator[bytes]:
    for at in range(0, size, 1 << 16):
        yield bytes(min(1 << 16, size - at))


@pytest.fixture(scope="module")
def limited() -> Iterator[Served]:
    from facta.intake.limits import Limits

    served = Served(Limits(body=LIMIT))
    yield served
    served.stop()


def fill(size: int) -> bytes:
    """A request of exactly `size` bytes."""
    overhead = len(request([span(attribute(b"k", string(bytes(size - 100))))])) - (size - 100)
    body = request([span(attribute(b"k", string(b"v" * (size - overhead))))])
    assert len(body) == size
    return body


@pytest.mark.parametrize("coding", ["", "gzip", "deflate", "zstd"])
@pytest.mark.parametrize("over", [0, 1, LIMIT * 20])
def test_t14_a_body_over_the_limit_is_413(limited: Served, coding: str, over: int) -> None:
    vars(limited.recorder).update(vars(Recorder()))
    packers: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "zstd": zstd.compress,
    }
    body = packers[coding](fill(LIMIT + over))
    answer = limited.post("/v1/traces", body, content_encoding=coding)
    if over == 0:
        assert (answer.status_code, answer.content) == (200, b"")
        assert len(limited.recorder.records) == 1
        return
    assert answer.status_code == 413
    message = status(answer.content).message
    assert str(LIMIT) in message
    assert "Do not send it again" in message
    assert "retry-after" not in answer.headers
    (refusal,) = limited.recorder.batches[0].refusals
    assert refusal.size == len(body) if coding or over == 1 else refusal.size > LIMIT


def test_chunked_bodies(limited: Served) -> None:
    import httpx

    vars(limited.recorder).update(vars(Recorder()))

    def pieces() -> Iterator[bytes]:
        for at in range(0, len(ONE), 7):
            yield ONE[at : at + 7]

    headers = {"content-type": PROTOBUF}
    answer = httpx.post(limited.url + "/v1/traces", content=pieces(), headers=headers)
    assert (answer.status_code, len(limited.recorder.records)) == (200, 1)
    answer = httpx.post(limited.url + "/v1/traces", content=chunked(LIMIT * 5), headers=headers)
    assert answer.status_code == 413
    answer = httpx.post(limited.url + "/v1/metrics", content=chunked(LIMIT * 5), headers=headers)
    assert answer.status_code == 413


def test_a_declared_length_over_the_limit_is_answered_before_the_body(limited: Served) -> None:
    with socket.create_connection(("127.0.0.1", limited.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 99999999999\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_sender_that_goes_away_leaves_nothing(
    limited: Served, caplog: pytest.LogCaptureFixture
) -> None:
    vars(limited.recorder).update(vars(Recorder()))
    with socket.create_connection(("127.0.0.1", limited.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 1000\r\n\r\n" + ONE
        )
    assert limited.post("/v1/traces", ONE).status_code == 200
    assert len(limited.recorder.batches) == 1
    assert caplog.text == ""


def test_a_body_that_does_not_arrive_is_408(served: Callable[..., Served]) -> None:
    slow = served(read_seconds=0.2)
    with socket.create_connection(("127.0.0.1", slow.port), timeout=10) as connection:
        connection.sendall(
            b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            b"Content-Length: 1000\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 408 ")


def test_real_payloads(
    server: Served, payloads: dict[str, bytes], json_payloads: dict[str, bytes]
) -> None:
    names = [name for name in payloads if name.startswith(("claude-code", "strands-chat", "codex"))]
    assert names
    for name in names:
        path = "/v1/logs" if "/logs" in name else "/v1/traces"
        assert (
            server.post(path, gzip.compress(payloads[name]), content_encoding="gzip").content == b""
        )
    count = len(server.recorder.records)
    assert count > 20
    for name, body in json_payloads.items():
        path = "/v1/logs" if "/logs" in name else "/v1/traces"
        answer = server.post(path, body, content_type=JSON)
        assert (answer.status_code, answer.content) == (200, b"{}")
    assert len(server.recorder.records) == count + 31
