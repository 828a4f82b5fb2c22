"""What the sender is told, in the encoding in which it asked."""

from collections import Counter
from typing import Any, Literal

import orjson
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from facta.model.identity import Outcome
from facta.model.records import Batch

Form = Literal["protobuf", "json"]
Signal = Literal["traces", "logs", "metrics"]

MEDIA_TYPES: dict[Form, str] = {
    "protobuf": "application/x-protobuf",
    "json": "application/json",
}
_REASONS = 5


def accepted(signal: Signal, outcome: Outcome) -> Message:
    """The export response; partial success is set only where there is something to say."""
    if signal == "metrics":
        return ExportMetricsServiceResponse()
    told = bool(outcome.rejected or outcome.message)
    if signal == "traces":
        traces = ExportTraceServiceResponse()
        if told:
            traces.partial_success.rejected_spans = outcome.rejected
            traces.partial_success.error_message = outcome.message
        return traces
    logs = ExportLogsServiceResponse()
    if told:
        logs.partial_success.rejected_log_records = outcome.rejected
        logs.partial_success.error_message = outcome.message
    return logs


def failed(code: int, message: str, *, bad: bool = False, retry_after: int = 0) -> Status:
    """The Status of an error: `bad` data and the seconds to wait are in its details."""
    status = Status(code=code, message=message)
    details: list[Message] = []
    if bad:
        violation = BadRequest.FieldViolation(field="body", description=message)
        details.append(BadRequest(field_violations=[violation]))
    if retry_after:
        details.append(RetryInfo(retry_delay=Duration(seconds=retry_after)))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def encode(message: Message, form: Form) -> bytes:
    """A message in protobuf or in protobuf's JSON mapping."""
    if form == "protobuf":
        return message.SerializeToString()
    fields: dict[str, Any] = MessageToDict(message)
    return orjson.dumps(fields)


class Tally:
    """What became of a request's slices: what decoding refused and what came after it."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._reasons: Counter[str] = Counter()
        self._refused = 0
        self._rejected = 0
        self._messages: dict[str, None] = {}

    def add(self, batch: Batch, outcome: Outcome) -> None:
        """Count one slice."""
        self._refused += batch.rejected
        self._rejected += batch.rejected + outcome.rejected
        if outcome.message:
            self._messages[outcome.message] = None
        self._reasons.update(refusal.reason for refusal in batch.refusals)
        for record in batch.records:
            if record.refusals:
                self._reasons.update(refusal.reason for refusal in record.refusals)

    def outcome(self) -> Outcome:
        """The outcome of the whole request, in one line."""
        parts = []
        if self._refused:
            parts.append(f"{self._refused} {self._noun}(s) refused.")
        if self._reasons:
            most = self._reasons.most_common(_REASONS)
            named = ", ".join(f"{reason} ({count})" for reason, count in most)
            more = ", and more" if len(self._reasons) > _REASONS else ""
            parts.append(f"Could not be read: {named}{more}.")
        return Outcome(self._rejected, " ".join([*parts, *self._messages]))


CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    403: Code.PERMISSION_DENIED,
    405: Code.UNIMPLEMENTED,
    408: Code.DEADLINE_EXCEEDED,
    413: Code.INVALID_ARGUMENT,
    415: Code.INVALID_ARGUMENT,
    500: Code.INTERNAL,
    503: Code.UNAVAILABLE,
}
