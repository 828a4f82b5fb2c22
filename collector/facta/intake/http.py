"""OTLP/HTTP (https://opentelemetry.io/docs/specs/otlp/#otlphttp) as plain Starlette routes."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message as Header

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from facta.intake.answers import CODES, MEDIA_TYPES, Form, Signal, accepted, encode, failed
from facta.intake.decompress import ACCEPTED, codings
from facta.intake.errors import BodyTooLarge, DecodeFailed, Unsupported
from facta.intake.limits import Limits
from facta.intake.receiving import LARGE, Accept, Delivery, Receiver, log_failure
from facta.model.errors import Unavailable
from facta.model.identity import Denied, Identity, Outcome
from facta.model.records import Refusal

Authorize = Callable[[Mapping[str, str]], Identity]

UNAUTHORIZED = 401
BAD_REQUEST = 400
_CHARSETS = {"", "utf-8", "utf8", "us-ascii"}


def routes(accept: Accept, limits: Limits, authorize: Authorize) -> list[Route]:
    """The routes /v1/traces, /v1/logs and /v1/metrics, with threads of their own.

    `accept` blocks until a batch is on stable storage; it runs in a worker thread and raises
    Unavailable when nothing can be taken. `authorize` gets the request's headers and raises Denied.
    """
    return receiver_routes(Receiver(accept, limits), authorize)


def receiver_routes(receiver: Receiver, authorize: Authorize) -> list[Route]:
    """The same for a receiver that gRPC uses as well."""
    signals: tuple[Signal, ...] = ("traces", "logs", "metrics")
    return [
        Route(f"/v1/{signal}", endpoint=_Endpoint(signal, receiver, authorize), name=signal)
        for signal in signals
    ]


@dataclass(slots=True)
class _Failure(Exception):  # noqa: N818 - an answer, not an error of the program
    """An error answer."""

    status: int
    message: str
    headers: dict[str, str]
    retry_after: int = 0


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """One signal's endpoint, an ASGI application of its own so that it answers every method."""

    signal: Signal
    receiver: Receiver
    authorize: Authorize

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        form: Form = "protobuf"
        try:
            form = _form(request.headers.get("content-type", ""), request.method)
            outcome = await self._export(request, form)
            content = encode(accepted(self.signal, outcome), form)
            response = Response(content, media_type=MEDIA_TYPES[form])
        except ClientDisconnect:
            return
        except _Failure as failure:
            response = _error(failure, _likely_form(request))
        except Exception as error:  # noqa: BLE001 - a server's traceback would hold the payload
            log_failure(error)
            message = "The request could not be handled; the log says where."
            response = _error(_Failure(500, message, {}), form)
        await response(scope, receive, send)

    async def _export(self, request: Request, form: Form) -> Outcome:
        try:
            identity = self.authorize(request.headers)
            coding = codings(request.headers.get("content-encoding", ""))
            return await self._take(request, form, coding, identity)
        except Denied as denied:
            challenge = {"WWW-Authenticate": "Bearer"} if denied.status == UNAUTHORIZED else {}
            raise _Failure(denied.status, denied.message, challenge) from None
        except Unsupported as unsupported:
            raise _Failure(415, str(unsupported), {"Accept-Encoding": ACCEPTED}) from None
        except BodyTooLarge as large:
            raise _Failure(413, str(large), {}) from None
        except DecodeFailed as bad:
            raise _Failure(400, str(bad), {}) from None
        except TimeoutError:
            message = "The body did not arrive in time. Send smaller batches."
            raise _Failure(408, message, {"Connection": "close"}) from None
        except Unavailable as full:
            seconds = max(1, full.retry_after)
            message = f"Nothing can be taken now. Send again after {seconds} s."
            raise _Failure(503, message, {"Retry-After": str(seconds)}, seconds) from None

    async def _take(self, request: Request, form: Form, coding: str, identity: Identity) -> Outcome:
        body = _Body(request, self.receiver, identity)
        try:
            await body.read()
            if self.signal == "metrics":
                return Outcome()
            delivery = Delivery(self.signal, form, coding, body.chunks, identity)
            return await self.receiver.receive(delivery)
        finally:
            body.release()


class _Body:
    """A request's body while it arrives."""

    def __init__(self, request: Request, receiver: Receiver, identity: Identity) -> None:
        self.chunks: list[bytes] = []
        self._request = request
        self._receiver = receiver
        self._identity = identity
        self._size = 0
        self._held = False

    async def read(self) -> None:
        """Read it all; raises BodyTooLarge, TimeoutError, ClientDisconnect.

        A declared length over the limit is believed before anything is read; the server reads and
        drops what still comes, so that the sender gets the answer and not a broken connection.
        """
        declared = self._request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self._receiver.limits.body:
            await self._too_large(int(declared))
        async with asyncio.timeout(self._receiver.limits.read_seconds) as timer:
            async for chunk in self._request.stream():
                self._size += len(chunk)
                if self._size > self._receiver.limits.body:
                    break
                self.chunks.append(chunk)
                if self._size > LARGE and not self._held:
                    await self._hold(timer)
        if self._size > self._receiver.limits.body:
            self.chunks.clear()
            await self._too_large(self._size)

    async def _hold(self, timer: asyncio.Timeout) -> None:
        """Wait until one more large body may be held; the sender's time stands still."""
        timer.reschedule(None)
        await self._receiver.large_bodies.acquire()
        self._held = True
        timer.reschedule(asyncio.get_running_loop().time() + self._receiver.limits.read_seconds)

    def release(self) -> None:
        """Give back the place of a large body."""
        if self._held:
            self._receiver.large_bodies.release()
            self._held = False

    async def _too_large(self, size: int) -> None:
        limit = self._receiver.limits.body
        reason = f"over the limit of {limit} bytes for a body, not read"
        # No digest: the bytes were not all seen.
        await self._receiver.refuse(Refusal(reason, "body", size, ""), self._identity)
        raise BodyTooLarge(limit)


def _likely_form(request: Request) -> Form:
    header = request.headers.get("content-type", "")
    return "json" if header.strip().lower().startswith("application/json") else "protobuf"


def _form(content_type: str, method: str) -> Form:
    """The form of a request's body."""
    if method != "POST":
        raise _Failure(405, "Send telemetry with POST.", {"Allow": "POST"})
    header = Header()
    header["Content-Type"] = content_type or "-"
    for form, media_type in MEDIA_TYPES.items():
        if header.get_content_type() == media_type:
            charset = header.get_param("charset", "")
            if form == "json" and str(charset).lower() not in _CHARSETS:
                break
            return form
    expected = " or ".join(MEDIA_TYPES.values())
    raise _Failure(415, f"Send {expected}; JSON in UTF-8.", {})


def _error(failure: _Failure, form: Form) -> Response:
    status = failed(
        CODES[failure.status],
        failure.message,
        bad=failure.status == BAD_REQUEST,
        retry_after=failure.retry_after,
    )
    return Response(
        encode(status, form), failure.status, failure.headers, media_type=MEDIA_TYPES[form]
    )
