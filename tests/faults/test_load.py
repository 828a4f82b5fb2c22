"""Load over real sockets: large bodies, slow senders, many at once, every coding, real exporters."""

import gzip
import signal
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest
from backports import zstd
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from tests.evidence.ground_truth import sessions_of
from tests.faults.lives import Life, Nursery
from tests.faults.payloads import PROTOBUF, body, trace_of
from tests.faults.test_lost_answers import requests_of
from tests.faults.test_store_away import export

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

MIB = 1024 * 1024
BODY = 64 * MIB
# What a small request may take while a large one is read. On a machine that is busy with other
# things even one that comes alone is slow; then that counts.
DELAY_SECONDS = 1.0
RUNS = (
    "otel-openai-responses",
    "openinference-anthropic",
    "pydantic-ai-openai",
    "codex-cli",
    "claude-code",
)
SERVICE = "/opentelemetry.proto.collector.{0}.v1.{1}Service/Export"


@contextmanager
def living(nursery: Nursery, data: Path) -> Iterator[Life]:
    life = nursery.start(data)
    try:
        yield life
    finally:
        life.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Iterator[Life]:
    with living(nursery, tmp_path_factory.mktemp("load") / "data") as made:
        yield made


def large() -> bytes:
    """A body of just under 64 MiB: many spans of ordinary size."""
    text = "word " * 4_000
    count = (BODY - 1) // len(body(1_099_999, text=text))
    return b"".join(body(1_000_000 + number, text=text) for number in range(count))


def _timed(life: Life, number: int) -> float:
    began = time.monotonic()
    assert life.post(body(number))[0] == 200
    return time.monotonic() - began


@pytest.fixture(scope="module")
def large_body() -> bytes:
    return large()


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_a_large_body_does_not_hold_up_small_ones(
    life: Life, large_body: bytes, coding: str
) -> None:
    alone = max(_timed(life, number) for number in range(30))
    data = gzip.compress(large_body, 1) if coding else large_body
    answers: list[int] = []
    headers = {"Content-Encoding": coding} if coding else {}
    sender = threading.Thread(target=lambda: answers.append(life.post(data, headers=headers)[0]))
    sender.start()
    delays: list[float] = []
    number = 100 if coding else 10_100
    while sender.is_alive() and len(delays) < 500:
        number += 1
        delays.append(_timed(life, number))
    sender.join()
    assert answers == [200]
    assert max(delays) < max(DELAY_SECONDS, 4 * alone), (sorted(delays)[-5:], alone)


def test_a_sender_that_is_slow_holds_up_nobody(life: Life) -> None:
    data = body(20_000)
    with socket.create_connection(("127.0.0.1", life.http)) as slow:
        head = f"POST /v1/traces HTTP/1.1\r\nHost: f\r\nContent-Type: {PROTOBUF}\r\nContent-Length: {len(data)}\r\n\r\n"
        slow.sendall(head.encode() + data[:10])
        assert life.post(body(20_001))[0] == 200
        slow.sendall(data[10:-1])
        assert life.post(body(20_002))[0] == 200
        slow.sendall(data[-1:])
        assert slow.recv(100).startswith(b"HTTP/1.1 200")


def test_a_hundred_at_once(life: Life) -> None:
    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(lambda n: life.post(body(n))[0], range(30_000, 30_100)))
    assert answers == [200] * 100
    told = life.json("/check")
    assert told["found"] == []
    assert all(told["traces"][trace_of(n)] == 2 for n in range(30_000, 30_100))


@pytest.mark.parametrize(
    ("coding", "compress"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstd.compress),
        ("identity", bytes),
    ],
)
@pytest.mark.parametrize("chunked", [False, True])
def test_codings_and_the_type_of_the_answer(
    life: Life, coding: str, compress: object, chunked: bool
) -> None:
    assert callable(compress)
    number = 40_000 + 2 * len(coding) + ord(coding[0]) * 100 + chunked
    data: bytes = compress(body(number))
    headers = {"Content-Type": PROTOBUF, "Content-Encoding": coding}
    connection = HTTPConnection("127.0.0.1", life.http, timeout=60)
    given: object = iter([data[:7], data[7:]]) if chunked else data
    connection.request("POST", "/v1/traces", given, headers, encode_chunked=chunked)  # type: ignore[arg-type]
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == PROTOBUF
    told = ExportTraceServiceResponse.FromString(answer.read())
    assert not told.partial_success.rejected_spans
    connection.request(
        "POST", "/v1/traces", b'{"resourceSpans":[]}', {"Content-Type": "application/json"}
    )
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.read().startswith(b"{")
    connection.close()
    assert life.json("/check")["traces"][trace_of(number)] == 2


def counts(life: Life) -> tuple[int, int]:
    """Sessions and tool calls that the API shows when nothing waits."""
    assert life.json("/check")["found"] == []
    sessions = life.json("/api/v1/sessions?limit=1000")["items"]
    calls = life.json("/api/v1/tool-calls?limit=1000")["items"]
    named = [c for c in calls if "ARGCANARY" in (c["arguments"] or "")]
    return len(sessions), len(named)


def calls_of(run: str) -> int:
    """How many calls a run's payloads name."""
    text = b"".join(data for _, _, data in requests_of(run))
    return sum(f"ARGCANARY-{n}".encode() in text for n in "123")


@pytest.mark.parametrize("run", RUNS)
def test_captured_runs_over_http_and_grpc(tmp_path: Path, nursery: Nursery, run: str) -> None:
    wanted = (sessions_of(run), calls_of(run))
    with living(nursery, tmp_path / "http") as life:
        for path, kind, data in requests_of(run):
            assert life.post(data, path, {"Content-Type": kind})[0] == 200
        assert counts(life) == wanted
    if any(kind != PROTOBUF for _, kind, _ in requests_of(run)):
        return  # captured as JSON: gRPC has no such form
    with living(nursery, tmp_path / "grpc") as life:
        for path, _, data in requests_of(run):
            method = SERVICE.format(*(("logs", "Logs") if "logs" in path else ("trace", "Trace")))
            export(life.grpc, data, method=method)
        assert counts(life) == wanted


def _exporters(life: Life) -> dict[str, SpanExporter]:
    return {
        "http": HttpSpans(endpoint=f"http://127.0.0.1:{life.http}/v1/traces"),
        "grpc": GrpcSpans(endpoint=f"http://127.0.0.1:{life.grpc}", insecure=True),
    }


def test_real_exporters(tmp_path: Path, nursery: Nursery) -> None:
    with living(nursery, tmp_path / "data") as life:
        for name, exporter in _exporters(life).items():
            provider = TracerProvider(resource=Resource({"service.name": f"by-{name}"}))
            provider.add_span_processor(SimpleSpanProcessor(exporter))
            tracer = provider.get_tracer("opentelemetry.instrumentation.openai")
            with tracer.start_as_current_span("chat model-1") as span:
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.request.model", "model-1")
                with tracer.start_as_current_span("execute_tool") as tool:
                    tool.set_attribute("gen_ai.operation.name", "execute_tool")
                    tool.set_attribute("gen_ai.tool.name", "look_up")
                    tool.set_attribute("gen_ai.tool.call.id", "call_1")
            provider.shutdown()
        assert life.json("/check")["found"] == []
        sessions = life.json("/api/v1/sessions")["items"]
        assert sorted((s["service"], s["turns"], s["calls"]) for s in sessions) == [
            ("by-grpc", 1, 1),
            ("by-http", 1, 1),
        ]
