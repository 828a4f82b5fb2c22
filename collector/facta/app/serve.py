"""`facta up`: HTTP, gRPC and the dashboard in front of one collector."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType

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
from facta.ledger.files import Lock
from facta.model.errors import Unavailable
from facta.model.identity import Denied, Identity
from facta.settings import Settings
from facta.store import StoreError

OPEN = Identity("default", "local", frozenset({"ingest", "evidence", "ux", "admin"}))
USAGE, UNFINISHED = 2, 3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_BACKLOG = 2048
# A stop takes at most so long: answering what is in hand, reading what came, then whatever it is.
_GRACE_SECONDS = 1
_READ_SECONDS = 1.0
_STOP_SECONDS = 4.5


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


def listening(host: str, port: int, setting: str) -> socket.socket:
    """A socket that listens on an address; port 0 takes a free one. Raises PortError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or "not an address"
        raise PortError(
            f"cannot listen on {host}:{port} ({reason}): set FACTA_HOST or {setting}"
        ) from None
    return sock


def _port(settings: Settings) -> socket.socket:
    """The socket for HTTP, when the port for gRPC is free too. Raises PortError."""
    try:
        sock = listening(settings.host, settings.http_port, "FACTA_HTTP_PORT")
        try:
            listening(settings.host, settings.grpc_port, "FACTA_GRPC_PORT").close()
        except PortError:
            sock.close()
            raise
    except PortError:
        lock = settings.data / "ledger" / "lock"
        if lock.exists():
            Lock(lock).release()  # raises LedgerLockedError: another Facta here, which says more
        raise
    return sock


class PortError(Exception):
    """An address cannot be listened on; the text is one line and names the setting."""


class _Server(uvicorn.Server):
    """Tells when it has begun to listen and when it begins to stop; a signal stops it, no more."""

    ready: Callable[[], None] | None = None
    stopping: Callable[[], Awaitable[None]] | None = None
    on_signal: Callable[[], None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.ready is not None:
            await asyncio.to_thread(self.ready)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        others = [] if self.stopping is None else [self.stopping()]
        await asyncio.gather(super().shutdown(sockets), *others)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """As the parent's, but the process does not die of the signal before all is closed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {sig: signal.signal(sig, self.handle_exit) for sig in _SIGNALS}
        try:
            yield
        finally:
            for sig, handler in before.items():
                signal.signal(sig, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self.on_signal is not None:
            self.on_signal()


def say(line: str) -> None:
    """Talk goes to stderr; stdout is for data."""
    sys.stderr.write(f"facta: {line}\n")
    sys.stderr.flush()


class Collector:
    """One collector with its listeners, to be started and stopped inside an event loop."""

    def __init__(self, settings: Settings, tokens: Tokens | None) -> None:
        self._settings = settings
        self._authorize = authorizer(tokens)
        with ExitStack() as opened:
            # The ports first: whether they are free is known at once, the store takes a while.
            self._socket = _port(settings)
            opened.callback(self._socket.close)
            self._facta = Facta.open(settings)
            opened.callback(self._facta.close)
            self._receiver = Receiver(self._facta.accept, Limits(body=settings.max_body_bytes))
            self.server = _Server(self._config(tokens))
            opened.pop_all()
        self.http_port: int = self._socket.getsockname()[1]
        self.grpc_port = 0
        self._grpc: grpc.aio.Server | None = None

    def _config(self, tokens: Tokens | None) -> uvicorn.Config:
        facta = self._facta
        app = create_app(facta.store, facta.status, tokens, self._settings, facta.metrics)
        app.router.routes.extend(receiver_routes(self._receiver, self._authorize))
        return uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )

    @property
    def url(self) -> str:
        """Where HTTP is served, as seen from this machine."""
        host = self._settings.host if self._settings.on_loopback else "127.0.0.1"
        return f"http://{f'[{host}]' if ':' in host else host}:{self.http_port}"

    async def serve(self, ready: Callable[["Collector"], None]) -> None:
        """Serve until the process is told to stop; `ready` is called when both listeners answer.

        Raises PortError where gRPC cannot listen.
        """
        try:
            await self._listen()
            self.server.ready = partial(ready, self)
            self.server.stopping = self._stop_grpc
            await self.server.serve(sockets=[self._socket])
        finally:
            self.close()

    async def _listen(self) -> None:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"{host}:{settings.grpc_port}"
        try:
            self._grpc, self.grpc_port = await serve_receiver(
                self._receiver, self._authorize, address
            )
        except RuntimeError:
            raise PortError(f"cannot listen on {address}: set FACTA_GRPC_PORT") from None

    async def _stop_grpc(self) -> None:
        if self._grpc is not None:
            await self._grpc.stop(_GRACE_SECONDS)

    def close(self) -> None:
        """Close what is open. A body that is still being read was never acknowledged."""
        self._socket.close()
        reading = threading.Thread(target=self._receiver.close, daemon=True)
        reading.start()
        reading.join(_READ_SECONDS)
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
            say(f"dashboard on http://127.0.0.1:{settings.dashboard_port} in a moment")
        if then is not None:
            threading.Thread(target=then, args=(at,), daemon=True).start()

    collector.server.on_signal = partial(_end_in_time, pages)
    try:
        asyncio.run(collector.serve(ready))
    except PortError as error:
        say(f"{error}")
        return USAGE
    finally:
        _end(pages)
    return 0


def _end(pages: list["subprocess.Popen[bytes]"]) -> None:
    for page in pages:
        page.terminate()
    for page in pages:
        try:
            page.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            page.kill()


def _end_in_time(pages: list["subprocess.Popen[bytes]"]) -> None:
    """End the process a few seconds from now, whatever hangs: to be killed is always safe."""

    def end() -> None:
        say("stopped before all was closed: nothing acknowledged is lost by that")
        _end(pages)
        os._exit(0)

    timer = threading.Timer(_STOP_SECONDS, end)
    timer.daemon = True
    timer.start()


def open_collector(settings: Settings) -> Collector | int:
    """A collector, or the exit code where it cannot be had (said in one line on stderr)."""
    os.umask(0o077)  # what is kept here is for its owner alone
    try:
        tokens = required(settings.tokens, on_loopback=settings.on_loopback)
        return Collector(settings, tokens)
    except (TokenError, PortError) as error:
        say(f"{error}")
        return USAGE
    except (LedgerLockedError, LedgerDamagedError, StoreError, Unavailable) as error:
        say(f"{error}")
        return UNFINISHED
    except OSError as error:
        say(f"cannot start ({error.strerror or type(error).__name__}): look at FACTA_DATA")
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
        "asyncio",
        "grpc",
        "clickhouse_connect",
        "urllib3",
        "httpx",
        "httpcore",
    ):
        logging.getLogger(name).setLevel(logging.WARNING)
    # It prints the traceback of whatever escapes; what escapes us is logged by us, without its text.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL + 1)
