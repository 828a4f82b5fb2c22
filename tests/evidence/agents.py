"""An agent and what it acts upon, as processes that send telemetry with the OpenTelemetry SDK."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode
from tests.evidence.harness import append_of, exact
from tests.evidence.making import Seen, call, records_of, resolved, says

from facta.model.observation import Append

CALL = "call_8fKq3LmZ0aBcDeFgHiJk"


@dataclass
class Service:
    """A process that sends telemetry with the SDK."""

    name: str
    spans: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    logs: InMemoryLogRecordExporter = field(default_factory=InMemoryLogRecordExporter)

    def __post_init__(self) -> None:
        resource = Resource({"service.name": self.name})
        tracing = TracerProvider(resource=resource)
        tracing.add_span_processor(SimpleSpanProcessor(self.spans))
        self.tracer = tracing.get_tracer("agent.library", "1.0")
        logging = LoggerProvider(resource=resource)
        logging.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.logger = logging.get_logger("agent.library")

    @contextmanager
    def span(
        self, name: str, kind: SpanKind = SpanKind.INTERNAL, *, error: bool = False, **told: Any
    ) -> Iterator[trace.Span]:
        """A span that is current while it lasts; attributes are named with `__` for dots."""
        attributes = {key.replace("__", "."): value for key, value in told.items()}
        with self.tracer.start_as_current_span(name, kind=kind, attributes=attributes) as span:
            if error:
                span.set_status(Status(StatusCode.ERROR))
            yield span

    def event(self, name: str, **told: Any) -> None:
        """A log event on the current span."""
        attributes = {key.replace("__", "."): value for key, value in told.items()}
        self.logger.emit(
            LogRecord(
                timestamp=1_796_040_000_000_000_000,
                event_name=name,
                attributes=attributes,
                severity_number=SeverityNumber.INFO,
                context=trace.set_span_in_context(trace.get_current_span()),
            )
        )

    def sent(self) -> list[Append]:
        """What the ledger is given: each span in a request of its own, in the order of its end."""
        out = [
            append_of(records_of(encode_spans([span]).SerializeToString()))
            for span in self.spans.get_finished_spans()
        ]
        logs = self.logs.get_finished_logs()
        if logs:
            out.append(append_of(records_of(encode_logs(logs).SerializeToString(), "logs")))
        return out


@dataclass
class World:
    """An agent, and what it acts upon."""

    agent: Service = field(default_factory=lambda: Service("agent"))
    target: Service = field(default_factory=lambda: Service("payments"))

    @contextmanager
    def model(self, name: str = "refund", call_id: str = CALL) -> Iterator[None]:
        """A model request that asks for one call."""
        asks = says("assistant", call(call_id, {"order": 7}, name))
        with self.agent.span(
            "chat",
            SpanKind.CLIENT,
            gen_ai__operation__name="chat",
            gen_ai__request__model="gpt-5.4",
            gen_ai__response__id="r1",
            gen_ai__input__messages=json.dumps([says("user", "Refund order 7.")]),
            gen_ai__output__messages=json.dumps([asks]),
        ):
            yield

    @contextmanager
    def tool(
        self, name: str = "refund", call_id: str = CALL, answer: str = "done"
    ) -> Iterator[None]:
        """The run of the call."""
        with self.agent.span(
            f"execute_tool {name}",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=name,
            gen_ai__tool__call__id=call_id,
            gen_ai__tool__call__result=answer,
        ):
            yield

    def seen(self) -> Seen:
        """What comes of it, in this order or the other."""
        sent = [*self.agent.sent(), *self.target.sent()]
        seen = resolved(*sent)
        assert exact(seen.tables) == exact(resolved(*sent[::-1]).tables)
        return seen
