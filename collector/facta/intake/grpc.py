"""OTLP/gRPC (https://opentelemetry.io/docs/specs/otlp/#otlpgrpc) over raw bytes.

gRPC's own deserializer would refuse a whole request for one bad attribute, and its own
decompression cannot be told from a failure of ours: both are left out, and the bytes go the same
way as those of HTTP.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.rpc.status_pb2 import Status

from facta.intake.answers import CODES, Signal, accepted, failed
from facta.intake.decompress import is_zlib
from facta.intake.errors import BodyTooLarge, DecodeFailed
from facta.intake.limits import Limits
from facta.intake.receiving import Accept, Delivery, Receiver, log_failure
from facta.model.errors import Unavailable
from facta.model.identity import Denied, Identity, Outcome

Authorize = Callable[[Mapping[str, str]], Identity]

_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
_GZIP = b"\x1f\x8b"


async def serve(
    accept: Accept, limits: Limits, authorize: Authorize, address: str
) -> tuple[grpc.aio.Server, int]:
    """A started server and its port. `address` is host:port, port 0 for a free one.

    `accept` and `authorize` are as for HTTP; the headers are the call's metadata.
    """
    return await serve_receiver(Receiver(accept, limits), authorize, address)


async def serve_receiver(
    receiver: Receiver, authorize: Authorize, address: str
) -> tuple[grpc.aio.Server, int]:
    """The same for a receiver that HTTP uses as well."""
    server = grpc.aio.server(
        options=[
            # Over the body limit we answer ourselves, as not to be sent again; gRPC's own answer,
            # RESOURCE_EXHAUSTED, is sent again by some exporters.
            ("grpc.max_receive_message_length", 2 * receiver.limits.body),
            ("grpc.per_message_decompression", 0),
            ("grpc.so_reuseport", 0),
        ]
    )
    for name, signal in _SERVICES.items():
        method = grpc.unary_unary_rpc_method_handler(_Export(signal, receiver, authorize).export)
        handler = grpc.method_handlers_generic_handler(name, {"Export": method})
        server.add_generic_rpc_handlers((handler,))
    port: int = server.add_insecure_port(address)
    await server.start()
    return server, port


class _Export:
    """One signal's Export method."""

    def __init__(self, signal: Signal, receiver: Receiver, authorize: Authorize) -> None:
        self._signal = signal
        self._receiver = receiver
        self._authorize = authorize

    async def export(self, body: bytes, context: Any) -> bytes:
        try:
            outcome = await self._export(body, context)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - gRPC would send and log the error's text
            status = _status(error)
        else:
            return accepted(self._signal, outcome).SerializeToString()
        details = (("grpc-status-details-bin", status.SerializeToString()),)
        await context.abort(_CODES[status.code], status.message, details)
        raise AssertionError

    async def _export(self, body: bytes, context: Any) -> Outcome:
        metadata = context.invocation_metadata() or ()
        headers = {key: value for key, value in metadata if isinstance(value, str)}
        identity = self._authorize(headers)
        if len(body) > self._receiver.limits.body:
            raise BodyTooLarge(self._receiver.limits.body)
        if self._signal == "metrics":
            return Outcome()
        delivery = Delivery(self._signal, "protobuf", _coding(body), [body], identity)
        return await self._receiver.receive(delivery)


def _coding(body: bytes) -> str:
    """How a message is compressed: gRPC does not tell a method that takes raw bytes.

    No protobuf begins as gzip does (0x1f would be a wire type that does not exist), and no export
    request as zlib does (0x78 would be a field 15, before the field 1 that all of it is in).
    """
    if body.startswith(_GZIP):
        return "gzip"
    return "deflate" if is_zlib(body[:2]) and body[:1] == b"\x78" else ""


_CODES = {code.value[0]: code for code in grpc.StatusCode}
_DENIED = {401, 403}


def _status(error: Exception) -> Status:
    if isinstance(error, Denied):
        return failed(CODES[error.status if error.status in _DENIED else 401], error.message)
    if isinstance(error, (BodyTooLarge, DecodeFailed)):
        return failed(CODES[400], str(error), bad=True)
    if isinstance(error, Unavailable):
        seconds = max(1, error.retry_after)
        message = f"Nothing can be taken now. Send again after {seconds} s."
        return failed(CODES[503], message, retry_after=seconds)
    log_failure(error)
    return failed(CODES[500], "The request could not be handled; the log says where.")
