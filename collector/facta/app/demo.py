"""`facta demo`: small agents send to a collector over real OTLP/HTTP, and it shows what came of it."""

import asyncio
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from facta.app.demo_agents import AGENTS
from facta.app.serve import Collector, open_collector, say, start_logging, up
from facta.settings import Settings

_DEADLINE_SECONDS = 120.0
_POLL_SECONDS = 0.05
Show = Callable[[str], None]


def demo(settings: Settings, show: Show, *, once: bool, keep: bool) -> int:
    """Run the demo; the exit code. `show` prints what a collector at a URL has.

    With `once` everything happens on free ports in a folder that is removed again (`keep`: in
    FACTA_DATA, and it stays); otherwise on the standard ports, with the dashboard, until a signal.
    """
    if not once:
        return up(settings, dashboard=True, then=lambda at: _play(at.url))
    with _folder(settings, keep=keep) as data:
        chosen = settings.model_copy(update={"data": data, "http_port": 0, "grpc_port": 0})
        start_logging(chosen)
        opened = open_collector(chosen)
        if isinstance(opened, int):
            return opened
        with _serving(opened):
            _play(opened.url)
            show(opened.url)
    if keep:
        say(f"the demo's data is in {settings.data}: `facta up` serves it")
    return 0


@contextmanager
def _folder(settings: Settings, *, keep: bool) -> Iterator[Path]:
    if keep:
        yield settings.data
        return
    with tempfile.TemporaryDirectory(prefix="facta-demo-") as folder:
        yield Path(folder)


@contextmanager
def _serving(collector: Collector) -> Iterator[None]:
    """Serve in a thread, so that the demo is a client like any other."""
    ready = threading.Event()
    serving = collector.serve(lambda _at: ready.set())
    thread = threading.Thread(target=asyncio.run, args=(serving,))
    thread.start()
    try:
        ready.wait(_DEADLINE_SECONDS)
        yield
    finally:
        collector.server.should_exit = True
        thread.join()


def _play(url: str) -> None:
    """Let every agent run, and wait until all that it sent can be read."""
    for agent in AGENTS:
        agent(url)
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while time.monotonic() < deadline:
        status = httpx.get(f"{url}/api/v1/status").json()
        if status["resolved"] and status["projected_rows"] == status["ledger_rows"]:
            return
        time.sleep(_POLL_SECONDS)
    say("the store is still behind: what follows may lack the last steps")
