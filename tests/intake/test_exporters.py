"""The OpenTelemetry SDK's own exporters, unchanged, against the real servers."""

from collections.abc import Iterator

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from tests.intake.conftest import GrpcServed, Served

from facta.intake.limits import Limits
from facta.model.records import Record


def emit(exporter: SpanExporter) -> tuple[str, str]:
    """One trace of a parent and a child; their span ids."""
    provider = TracerProvider(resource=Resource.create({"service.name": "svc"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("lib", "1.2", schema_url="https://example.test/schema")
    with tracer.start_as_current_span("parent") as parent:
        parent.set_attribute("list", ["a", "b"])
        with tracer.start_as_current_span("child") as child:
            child.add_event("happened", {"n": 5})
            child.set_attribute("key", "value")
    provider.shutdown()
    return f"{parent.get_span_context().span_id:016x}", f"{child.get_span_context().span_id:016x}"


def check(records: list[Record], parent_id: str, child_id: str) -> None:
    child, parent = records
    assert (child.name, child.span_id, child.parent_span_id) == ("child", child_id, parent_id)
    assert child.attributes == [("key", "value")]
    assert [(event.name, event.attributes) for event in child.events] == [("happened", [("n", 5)])]
    assert child.start_ns <= child.events[0].time_ns <= child.end_ns
    assert (parent.name, parent.span_id, parent.parent_span_id) == ("parent", parent_id, "")
    assert parent.attributes == [("list", ["a", "b"])]
    assert ("service.name", "svc") in parent.scope.resource
    assert (parent.scope.name, parent.scope.version) == ("lib", "1.2")
    assert parent.scope.schema_url == "https://example.test/schema"


@pytest.mark.parametrize("compression", list(Compression))
def test_http(server: Served, compression: Compression) -> None:
    ids = emit(HttpExporter(f"{server.url}/v1/traces", compression=compression))
    check(server.recorder.records, *ids)


@pytest.fixture
def grpc_server() -> Iterator[GrpcServed]:
    served = GrpcServed(Limits())
    yield served
    served.stop()


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_grpc(grpc_server: GrpcServed, compression: str | None) -> None:
    import grpc

    recorder = grpc_server.recorder
    ids = emit(
        GrpcExporter(
            f"127.0.0.1:{grpc_server.port}",
            insecure=True,
            headers={"authorization": "Bearer mine"},
            compression=grpc.Compression.Gzip if compression else None,
        )
    )
    check(recorder.records, *ids)
    assert {identity.tenant for identity in recorder.identities} == {"mine"}
