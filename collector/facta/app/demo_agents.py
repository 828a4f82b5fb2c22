"""Two small agents for the demo, as telemetry tells of them: made by the OpenTelemetry SDK itself.

They know nothing of Facta: a tracer provider, an OTLP/HTTP exporter, GenAI attributes. Models and
tools are played; the sealed values are fresh Fernet tokens, since a real provider's cannot be had
without one, and none lies in this package.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from cryptography.fernet import Fernet
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

Message = dict[str, Any]
_SCOPE = ("demo.instrumentation.genai", "1.0")


@contextmanager
def sending(service: str, endpoint: str) -> Iterator[Tracer]:
    """A tracer of one service that sends each span to `endpoint` as OTLP/HTTP."""
    provider = TracerProvider(resource=Resource.create({"service.name": service}))
    exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    try:
        yield provider.get_tracer(*_SCOPE)
    finally:
        provider.shutdown()


def sealed(size: int) -> str:
    """A sealed reasoning item of about `size` characters: opaque, and different each time."""
    return Fernet(Fernet.generate_key()).encrypt(b"\x00" * (size * 3 // 4 - 80)).decode()


@dataclass(slots=True)
class Conversation:
    """One agent run: the history that each request carries, and the turns counted."""

    tracer: Tracer
    agent: str
    session: str
    model: str
    messages: list[Message] = field(default_factory=list)
    turns: int = 0

    def ask(self, text: str) -> None:
        """A user's message."""
        self.messages.append({"role": "user", "parts": [{"type": "text", "content": text}]})

    def turn(self, parts: list[Message], reasoning_tokens: int) -> None:
        """One model request with its response."""
        self.turns += 1
        answer = {"role": "assistant", "parts": parts, "finish_reason": "stop"}
        calls = any(part["type"] == "tool_call" for part in parts)
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": self.model,
            "gen_ai.response.model": self.model,
            "gen_ai.response.id": f"resp_{self.session[-6:]}{self.turns:02}",
            "gen_ai.agent.name": self.agent,
            "gen_ai.response.finish_reasons": ["tool_calls" if calls else "stop"],
            "gen_ai.usage.input_tokens": 120 * self.turns,
            "gen_ai.usage.output_tokens": 40 + reasoning_tokens,
            "gen_ai.usage.reasoning.output_tokens": reasoning_tokens,
            "gen_ai.input.messages": json.dumps(self.messages),
            "gen_ai.output.messages": json.dumps([answer]),
        }
        with self.tracer.start_as_current_span(
            f"chat {self.model}", kind=SpanKind.CLIENT, attributes=attributes
        ):
            self.messages.append(answer)

    @contextmanager
    def tool(self, name: str, call_id: str, arguments: str, result: str) -> Iterator[Span]:
        """One tool execution; spans made inside are its effects."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": arguments,
            "gen_ai.tool.call.result": result,
        }
        with self.tracer.start_as_current_span(
            f"execute_tool {name}", attributes=attributes
        ) as span:
            yield span
        part = {"type": "tool_call_response", "id": call_id, "response": result}
        self.messages.append({"role": "tool", "parts": [part]})

    @contextmanager
    def run(self) -> Iterator[None]:
        """The agent's own span, which names the session."""
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self.agent,
            "gen_ai.conversation.id": self.session,
        }
        with self.tracer.start_as_current_span(f"invoke_agent {self.agent}", attributes=attributes):
            yield


def _reasoning(summary: str, size: int) -> Message:
    return {"type": "reasoning", "content": summary, "encrypted_content": sealed(size)}


def _call(name: str, call_id: str, arguments: str) -> Message:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def _http(tracer: Tracer, method: str, url: str, status: int) -> None:
    attributes: dict[str, Any] = {
        "http.request.method": method,
        "url.full": url,
        "http.response.status_code": status,
    }
    with tracer.start_as_current_span(method, kind=SpanKind.CLIENT, attributes=attributes) as span:
        if status >= 400:  # noqa: PLR2004  # HTTP
            span.set_status(Status(StatusCode.ERROR))


def refund(endpoint: str) -> None:
    """An agent that says it refunded an order; its tool replied so, and nothing went out."""
    with sending("refund-agent", endpoint) as tracer:
        agent = Conversation(tracer, "refunds", "demo-refund-000007", "gpt-5.6-sol")
        agent.ask("Check order 7 and refund it if the policy allows.")
        with agent.run():
            look = '{"order_id": "7"}'
            summary = "**Checking the order**\n\nThe refund policy allows orders under 50, so I look it up."
            agent.turn(
                [_reasoning(summary, 1100), _call("lookup_order", "call_9fK2lookup", look)], 128
            )
            with agent.tool(
                "lookup_order", "call_9fK2lookup", look, '{"status": "ok", "amount": 10.50}'
            ):
                _http(tracer, "GET", "http://orders-db.internal/orders/7", 200)
            pay = '{"order_id": "7", "amount": 10.50}'
            agent.turn([_reasoning("", 4800), _call("issue_refund", "call_4hQ8refund", pay)], 256)
            with agent.tool("issue_refund", "call_4hQ8refund", pay, '{"status": "refunded"}'):
                pass
            agent.model = "gpt-5.6-luna"
            text = {"type": "text", "content": "Order 7 was refunded (10.50)."}
            agent.turn([_reasoning("**Wrapping up**\n\nThe refund is confirmed.", 700), text], 384)


def transfer(endpoint: str) -> None:
    """An agent whose tool says ok where the target, another service, says it declined."""
    with sending("treasury-agent", endpoint) as tracer, sending("payments", endpoint) as payments:
        agent = Conversation(tracer, "treasury", "demo-transfer-0042", "gpt-5.6-sol")
        agent.ask("Pay invoice 42.")
        with agent.run():
            pay = '{"invoice": "42", "amount": 1200}'
            agent.turn(
                [_reasoning("I pay the invoice.", 900), _call("pay", "call_7mT3invoice", pay)], 64
            )
            with agent.tool("pay", "call_7mT3invoice", pay, '{"paid": true}'):
                attributes = {
                    "http.request.method": "POST",
                    "url.full": "http://payments.internal/transfers",
                }
                with tracer.start_as_current_span(
                    "POST", kind=SpanKind.CLIENT, attributes=attributes
                ) as out:
                    out.set_attribute("http.response.status_code", 200)
                    declined: dict[str, Any] = {
                        "http.request.method": "POST",
                        "server.address": "payments.internal",
                        "url.path": "/transfers",
                        "http.response.status_code": 402,
                    }
                    with payments.start_as_current_span(
                        "POST", kind=SpanKind.SERVER, attributes=declined
                    ):
                        pass
                rows = {"db.system.name": "postgresql", "db.operation.name": "INSERT", "db.namespace": "ledger",
                        "db.collection.name": "transfers"}  # fmt: skip
                with tracer.start_as_current_span("INSERT", kind=SpanKind.CLIENT, attributes=rows):
                    pass
            agent.turn([{"type": "text", "content": "Invoice 42 is paid."}], 0)


def lookups(endpoint: str) -> None:
    """A chat without any session id, each request a trace of its own: linked by what it carries."""
    with sending("helpdesk", endpoint) as tracer:
        agent = Conversation(tracer, "helpdesk", "no-session-000003", "gpt-5.6-luna")
        agent.ask("Is the printer on floor 3 online?")
        arguments = '{"floor": 3}'
        agent.turn([_call("printer_status", "call_2bW6printer", arguments)], 0)
        with agent.tool("printer_status", "call_2bW6printer", arguments, "offline since 09:12"):
            pass
        agent.turn([{"type": "text", "content": "No: it went offline at 09:12."}], 0)


AGENTS = (refund, transfer, lookups)
