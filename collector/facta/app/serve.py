"""`facta up`: HTTP, gRPC and the dashboard in front of one collector."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial

import grpc
import uvicorn

from facta.api.app import create_app
from facta.api.tokens import TokenError, Tokens, required
from facta.app.service import Facta
from facta.dashboard import dashboard_command, dashboard_environment
from facta.intake.grpc import serve_receiver
from facta.intake.http import receiver_routes
from facta.intake.limits import Limits
from facta.intake.receiving import Receiver
from facta.ledger import LedgerDamagedError, LedgerLockedError
from facta.model.identity import Denied, Identity
from facta.settings import Settings
from facta.store import StoreError

OPEN = Identity("default", "local", frozenset({"ingest", "evidence", "ux", "admin"}))
USAGE, UNFINISHED = 2, 3


def authorizer(tokens: Tokens | None) -> Callable[[Mapping[str, str]], Identity]:
    """Who sends telemetry, by the request's headers; raises Denied."""

    def authorize(headers: Mapping[str, str]) -> Identity:
        if tokens is None:
            return OPEN
        identity = tokens.identify(headers.get("authorization", ""))
        if "ingest" not in identity.scopes:
            raise Denied(403, "this token may not send: it lacks the scope ingest")
        return identity

    return authorize


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens on an address; port 0 takes a free one. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


class _Server(uvicorn.Server):
    """Tells when it has begun to listen."""

    ready: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.ready is not None:
            await asyncio.to_thread(self.ready)


def say(line: str) -> None:
    """Talk goes to stderr; stdout is for data."""
    sys.stderr.write(f"facta: {line}\n")
    sys.stderr.flush()


class Collector:
    """One collector with its listeners, to be started and stopped inside an event loop."""

    def __init__(self, settings: Settings, tokens: Tokens | None) -> None:
        self._settings = settings
        self._facta = Facta.open(settings)
        limits = Limits(body=settings.max_body_bytes)
        self._receiver = Receiver(self._facta.accept, limits)
        self._authorize = authorizer(tokens)
        self._socket = listening(settings.host, settings.http_port)
        app = create_app(
            self._facta.store, self._facta.status, tokens, settings, self._facta.metrics
        )
        app.router.routes.extend(receiver_routes(self._receiver, self._authorize))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5
        )
        self.server = _Server(config)
        self.http_port: int = self._socket.getsockname()[1]
        self.grpc_port = 0
        self._grpc: grpc.aio.Server | None = None

    @property
    def url(self) -> str:
        """Where HTTP is served, as seen from this machine."""
        host = self._settings.host if self._settings.on_loopback else "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.http_port}"

    async def serve(self, ready: Callable[["Collector"], None]) -> None:
        """Serve until the process is told to stop; `ready` is called when both listeners answer."""
        host = f"[{self._settings.host}]" if ":" in self._settings.host else self._settings.host
        self._grpc, self.grpc_port = await serve_receiver(
            self._receiver, self._authorize, f"{host}:{self._settings.grpc_port}"
        )
        self.server.ready = partial(ready, self)
        try:
            await self.server.serve(sockets=[self._socket])
        finally:
            await self._grpc.stop(5)
            self._receiver.close()
            self._facta.close()


def up(
    settings: Settings, *, dashboard: bool, then: Callable[[Collector], None] | None = None
) -> int:
    """Serve until a signal; the exit code. `then` runs beside, once it serves."""
    start_logging(settings)
    collector = open_collector(settings)
    if isinstance(collector, int):
        return collector
    pages: list[subprocess.Popen[bytes]] = []

    def ready(at: Collector) -> None:
        _announce(at, settings)
        if dashboard:
            pages.append(start_dashboard(at, settings))
        if then is not None:
            threading.Thread(target=then, args=(at,), daemon=True).start()

    try:
        asyncio.run(collector.serve(ready))
    except OSError as error:
        say(f"cannot listen ({error.strerror}): choose other ports")
        return USAGE
    finally:
        for page in pages:
            page.terminate()
            page.wait(10)
    return 0


def open_collector(settings: Settings) -> Collector | int:
    """A collector, or the exit code where it cannot be had (said in one line on stderr)."""
    try:
        tokens = required(settings.tokens, on_loopback=settings.on_loopback)
        return Collector(settings, tokens)
    except TokenError as error:
        say(f"{error}")
        return USAGE
    except (LedgerLockedError, LedgerDamagedError, StoreError) as error:
        say(f"{error}")
        return UNFINISHED
    except OSError as error:
        say(
            f"cannot start ({error.strerror or type(error).__name__}): look at FACTA_DATA and the ports"
        )
        return USAGE


def start_dashboard(at: Collector, settings: Settings) -> "subprocess.Popen[bytes]":
    """The dashboard in a process of its own: it reads the API like anybody else."""
    command = dashboard_command(settings.dashboard_port, settings.host)
    return subprocess.Popen(  # noqa: S603  # our own command
        command, env=dashboard_environment(at.url, settings.token), stdout=subprocess.DEVNULL
    )


def _announce(at: Collector, settings: Settings) -> None:
    say(f"OTLP/HTTP and API on {at.url}, OTLP/gRPC on port {at.grpc_port}, data in {settings.data}")
    if settings.tokens is None:
        say("no tokens: everybody on this machine may send and read everything")


def start_logging(settings: Settings) -> None:
    """Our lines to stderr. Debug lines of libraries could hold what they carry; ours never do."""
    logging.basicConfig(
        stream=sys.stderr,
        level=settings.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    for name in (
        "uvicorn",
        "asyncio",
        "grpc",
        "clickhouse_connect",
        "urllib3",
        "httpx",
        "httpcore",
    ):
        logging.getLogger(name).setLevel(logging.WARNING)
