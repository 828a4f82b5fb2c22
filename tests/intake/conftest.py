"""A real server on a free port with a recording `accept`, real payloads, and bytes by hand."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import uvicorn
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette

from facta.intake.grpc import serve
from facta.intake.http import receiver_routes
from facta.intake.limits import Limits
from facta.intake.receiving import Receiver
from facta.model.identity import Denied, Identity, Outcome
from facta.model.records import Batch, Record

OTLP = Path(__file__).parents[1] / "data" / "otlp"
IDENTITY = Identity("tenant", "producer", frozenset({"ingest"}))


@dataclass
class Recorder:
    """Takes batches as the collector would, and keeps them."""

    batches: list[Batch] = field(default_factory=list)
    identities: list[Identity] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    error: Exception | None = None
    denied: Denied | None = None
    before: Callable[[Batch], None] = lambda _batch: None

    def accept(self, batch: Batch, identity: Identity) -> Outcome:
        self.before(batch)
        if self.error:
            raise self.error
        self.batches.append(batch)
        self.identities.append(identity)
        return self.outcome

    def authorize(self, headers: Mapping[str, str]) -> Identity:
        if self.denied:
            raise self.denied
        token = headers.get("authorization", "")
        return Identity(token.removeprefix("Bearer "), "producer") if token else IDENTITY

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records]


class Served:
    """The intake's routes behind uvicorn, in a thread."""

    def __init__(self, limits: Limits) -> None:
        self.recorder = Recorder()
        receiver = Receiver(self.recorder.accept, limits)
        app = Starlette(routes=receiver_routes(receiver, self.recorder.authorize))
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        self.port: int = listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.receiver = receiver
        self._server = uvicorn.Server(uvicorn.Config(app, log_config=None))
        self._thread = threading.Thread(target=self._server.run, args=([listening],))
        listening.listen()
        self._thread.start()

    def post(self, path: str, body: bytes, **headers: str) -> httpx.Response:
        named = {"content-type": "application/x-protobuf"}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx.post(self.url + path, content=body, headers=named, timeout=100)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join()
        self.receiver.close()


class GrpcServed:
    """The gRPC server on an event loop in a thread, and a channel to it."""

    def __init__(self, limits: Limits) -> None:
        self.recorder = Recorder()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        starting = serve(self.recorder.accept, limits, self.recorder.authorize, "127.0.0.1:0")
        self._server, self.port = asyncio.run_coroutine_threadsafe(starting, self._loop).result(10)
        options = [("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{self.port}", options=options)

    def call(self, method: str, body: bytes, **options: Any) -> bytes:
        answer: bytes = self._channel.unary_unary(method)(body, timeout=20, **options)
        return answer

    def fail(self, method: str, body: bytes, **options: Any) -> tuple[grpc.StatusCode, Status]:
        with pytest.raises(grpc.RpcError) as raised:
            self.call(method, body, **options)
        error: Any = raised.value
        details = dict(error.trailing_metadata()).get("grpc-status-details-bin", b"")
        return error.code(), Status.FromString(details)

    def stop(self) -> None:
        self._channel.close()
        asyncio.run_coroutine_threadsafe(self._server.stop(0), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def shared_server() -> Iterator[Served]:
    server = Served(Limits())
    yield server
    server.stop()


@pytest.fixture
def server(shared_server: Served) -> Served:
    """The module's server with nothing recorded yet."""
    fresh = Recorder()
    vars(shared_server.recorder).update(vars(fresh))
    return shared_server


@pytest.fixture
def served() -> Iterator[Callable[..., Served]]:
    """Makes servers with limits of their own."""
    started: list[Served] = []

    def serve(**limits: float) -> Served:
        started.append(Served(Limits(**limits)))  # type: ignore[arg-type]
        return started[-1]

    yield serve
    for each in started:
        each.stop()


@pytest.fixture(scope="session")
def payloads() -> dict[str, bytes]:
    """Every real request body in protobuf, by "run/name"."""
    return {
        f"{path.parent.name}/{path.stem}": path.read_bytes()
        for path in sorted(OTLP.glob("*/*.binpb"))
    }


@pytest.fixture(scope="session")
def json_payloads() -> dict[str, bytes]:
    """Every real request body in JSON, by "run/name"."""
    return {
        f"{path.parent.name}/{path.name.split('.')[0]}": path.read_bytes()
        for path in sorted(OTLP.glob("*/*.otlp.json"))
    }
