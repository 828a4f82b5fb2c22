"""A browser, a dashboard, and an API whose every field a test decides."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn
from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    expect,
    sync_playwright,
)
from starlette.applications import Starlette
from starlette.requests import Request as ApiRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from facta.dashboard import dashboard_command, dashboard_environment

Row = dict[str, Any]

START = 1_795_960_931_000_000_000
TOKEN = "made-up-token"
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
    return port


@contextlib.contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """An app on a free port of loopback, in a thread; gives its URL."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="error", ws="none", lifespan="off", http="h11")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


class Answer(Response):
    """JSON in ASCII, so that a text may hold what UTF-8 cannot."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(content).encode()


@dataclass
class Api:
    """Facta's read API with made-up answers, and a log of what it was asked."""

    url: str = ""
    status: int = 200
    sessions: list[Row] = field(default_factory=list)
    timelines: dict[str, tuple[Row, list[Row]]] = field(default_factory=dict)
    next_cursor: str | None = None
    ux_status: int = 200
    items: dict[str, list[Row]] = field(default_factory=dict)
    contents: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)

    def reset(self) -> None:
        """Forget everything but the address."""
        fresh = Api(self.url)
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(fresh, name))

    def app(self) -> Starlette:
        """The routes that the dashboard reads."""
        return Starlette(
            routes=[
                Route("/api/v1/sessions", self._sessions),
                Route("/api/v1/sessions/{id:path}/timeline", self._timeline),
                Route("/api/v1/context", self._context),
                Route("/api/v1/content/{commit}", self._content),
            ]
        )

    def _log(self, request: ApiRequest) -> None:
        url = request.url
        self.asked.append(f"{url.path}?{url.query}" if url.query else url.path)
        self.tokens.add(request.headers.get("authorization", ""))

    async def _sessions(self, request: ApiRequest) -> Response:
        self._log(request)
        if self.status != 200:
            return Answer({"detail": "DETAIL-OF-THE-API"}, self.status)
        return Answer({"items": self.sessions, "next_cursor": self.next_cursor})

    async def _timeline(self, request: ApiRequest) -> Response:
        self._log(request)
        ux = request.query_params.get("ux") == "true"
        if self.status != 200 or (ux and self.ux_status != 200):
            return Answer({"detail": "DETAIL-OF-THE-API"}, max(self.status, self.ux_status))
        found = self.timelines.get(request.path_params["id"])
        if found is None:
            return Answer({"detail": "DETAIL-OF-THE-API"}, 404)
        session, steps = found
        shown = [step for step in steps if ux or step["lane"] == "evidence"]
        return Answer({"session": session, "steps": shown})

    async def _context(self, request: ApiRequest) -> Response:
        self._log(request)
        items = self.items.get(request.query_params["turn_id"], [])
        return Answer({"items": items, "next_cursor": None})

    async def _content(self, request: ApiRequest) -> Response:
        self._log(request)
        return Answer({"text": self.contents[request.path_params["commit"]]})


@dataclass
class Listener:
    """Where hostile text tries to make the browser go. Nothing ever should."""

    url: str = ""
    hits: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        """Any path, counted."""

        async def hit(request: ApiRequest) -> Response:
            self.hits.append(str(request.url))
            return Response(b"", media_type="image/png")

        return Starlette(routes=[Route("/{path:path}", hit)])


@pytest.fixture(scope="session")
def api_server() -> Iterator[Api]:
    api = Api()
    with served(api.app()) as api.url:
        yield api


@pytest.fixture
def api(api_server: Api) -> Api:
    api_server.reset()
    return api_server


@pytest.fixture(scope="session")
def listener() -> Iterator[Listener]:
    listener = Listener()
    with served(listener.app()) as listener.url:
        yield listener


@contextlib.contextmanager
def running_dashboard(api_url: str) -> Iterator[str]:
    """A dashboard process of its own; gives its URL."""
    port = free_port()
    process = subprocess.Popen(
        dashboard_command(port, "127.0.0.1"),
        env=dashboard_environment(api_url, TOKEN),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _healthy(url):
            assert process.poll() is None, "the dashboard ended"
            assert time.monotonic() < deadline, "the dashboard did not start"
        yield url
    finally:
        process.terminate()
        process.wait(20)


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_stcore/health", trust_env=False, timeout=5).is_success
    except httpx.TransportError:
        threading.Event().wait(0.1)
        return False


@pytest.fixture(scope="session")
def dashboard(api_server: Api) -> Iterator[str]:
    with running_dashboard(api_server.url) as url:
        yield url


@pytest.fixture
def fresh_dashboard(api: Api) -> Iterator[str]:
    """A dashboard that no browser has visited."""
    with running_dashboard(api.url) as url:
        yield url


@pytest.fixture(scope="session")
def context() -> Iterator[BrowserContext]:
    """One browser for all tests, so that the dashboard's own scripts are loaded once."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        message = "NO BROWSER: install the package chromium (`make chromium`, as root)"
        if os.environ.get("FACTA_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_OPTIONS)
        context = browser.new_context(viewport={"width": 1300, "height": 900})
        context.set_default_timeout(45_000)
        expect.set_options(timeout=45_000)
        yield context
        browser.close()


@dataclass
class Seen:
    """What a page did that a reader would not see."""

    dialogs: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)


@pytest.fixture
def page(context: BrowserContext, listener: Listener) -> Iterator[Page]:
    """A page that is watched: no dialog, no request to anywhere but one dashboard, no script error."""
    page, seen = context.new_page(), Seen()
    listener.hits.clear()

    def on_dialog(dialog: Dialog) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    def on_request(request: Request) -> None:
        seen.hosts.add(urlsplit(request.url).netloc)

    def on_console(message: ConsoleMessage) -> None:
        # The dashboard's own start asks for its files below the page's path first; requests are
        # judged by where they go, not by their status.
        if message.type == "error" and not message.text.startswith("Failed to load resource"):
            seen.errors.append(message.text)

    page.on("dialog", on_dialog)
    page.on("request", on_request)
    page.on("console", on_console)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    yield page
    here = urlsplit(page.url).netloc
    page.close()
    assert seen.dialogs == []
    assert listener.hits == []
    assert seen.hosts - {""} == {here}
    assert seen.errors == []


@pytest.fixture
def visit(page: Page, dashboard: str) -> Callable[[str], Page]:
    """Opens a path of the dashboard and waits until it is drawn."""

    def visit(path: str) -> Page:
        page.goto(f"{dashboard}{path}")
        return settled(page)

    return visit


def settled(page: Page) -> Page:
    """The page, once the script of the last interaction has ended."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    return page


def eventually(page: Page, holds: Callable[[], bool]) -> None:
    """Waits until something holds that no element of the page tells."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it never came to hold"
        page.wait_for_timeout(50)


def session_row(session_id: str, **fields: Any) -> Row:
    """A session as the API lists it."""
    return {
        "session_id": session_id,
        "service": "refund-agent",
        "basis": ["claimed"],
        "models": ["gpt-5.6-sol"],
        "agents": ["refunds"],
        "started_ns": START,
        "ended_ns": START + 8_400_000_000,
        "turns": 2,
        "calls": 1,
        "effects": 1,
        "sealed": 1,
        "gaps": [],
        **fields,
    }


def step(kind: str, seconds: float = 0, **fields: Any) -> Row:
    """A step of the evidence lane."""
    at_ns = START + int(seconds * 1e9)
    row = {"session_id": "made-up", "turn_id": "t1", "at_ns": at_ns, **fields}
    return {"lane": "evidence", "kind": kind, **row}


def summary(text: str, **fields: Any) -> Row:
    """A step of the ux lane."""
    return {
        "lane": "ux",
        "kind": "summary",
        "turn_id": "t1",
        "at_ns": START,
        "ux_kind": "provider_summary",
        "ux_reasoning_summary": text,
        "not_evidence": True,
        **fields,
    }
