"""Small requests as an instrumented agent sends them: one model request and one tool call each."""

import json
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

PROTOBUF = "application/x-protobuf"
SECOND = 1_000_000_000
SESSIONS = 7


def trace_of(number: int) -> str:
    """The trace of a request, as hex."""
    return f"{number + 1:032x}"


def body(number: int, *, service: str = "agent", text: str = "") -> bytes:
    """Request `number`: a span of a model and one of a tool, of one of a few sessions."""
    call = f"call_{number}"
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"question {number} {text}"}]}]
    arguments = {"number": number}
    part = {"type": "tool_call", "id": call, "name": "look_up", "arguments": arguments}
    answered = [{"role": "assistant", "parts": [part], "finish_reason": "tool_call"}]
    turn = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "model-1",
        "gen_ai.response.id": f"resp_{number}",
        "gen_ai.conversation.id": f"conversation-{number % SESSIONS}",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(answered),
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look_up",
        "gen_ai.tool.call.id": call,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": f"result {number}",
    }
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.append(attribute("service.name", service))
    scope = resource.scope_spans.add()
    scope.scope.name = "opentelemetry.instrumentation.openai"
    for place, (name, attributes) in enumerate((("chat model-1", turn), ("execute_tool", tool))):
        span = scope.spans.add()
        span.trace_id = bytes.fromhex(trace_of(number))
        span.span_id = (2 * number + place + 1).to_bytes(8)
        span.name = name
        span.start_time_unix_nano = (1_700_000_000 + number) * SECOND + place
        span.end_time_unix_nano = span.start_time_unix_nano + SECOND
        span.attributes.extend(attribute(key, value) for key, value in attributes.items())
    return request.SerializeToString()


def attribute(key: str, value: Any) -> KeyValue:
    """An attribute of text."""
    return KeyValue(key=key, value=AnyValue(string_value=value))
