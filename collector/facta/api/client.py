"""A client of the read API: over HTTP when somebody serves it, else in this process.

Every failure is an ApiError with one line.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

import httpx
from fastapi import FastAPI

from facta.api.app import create_app
from facta.api.own import LedgerStatus
from facta.ledger import Ledger, LedgerDamagedError, LedgerLockedError, LedgerUnreadable
from facta.settings import Settings
from facta.store import Row, Store, StoreError, StoreHeldError

_TIMEOUT = httpx.Timeout(120.0, connect=3.0)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_DIRECT = "http://facta.invalid"


class ApiError(Exception):
    """Why there is no answer, in one line. `status` is HTTP's, 0 without an answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class _Send(Protocol):
    def __call__(self, path: str, params: dict[str, str]) -> httpx.Response: ...


class Client:
    """Reads the API through `send`; made by `connect`."""

    def __init__(self, send: _Send) -> None:
        self._send = send

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        """What GET /api/v1<path> answers; parameters that are empty are left out."""
        query = {name: str(value) for name, value in params.items() if value not in (None, "")}
        try:
            answer = self._send(f"/api/v1{path}", query)
            body = answer.json()
        except (httpx.HTTPError, ValueError, RecursionError):
            raise ApiError("what answers at FACTA_URL cannot be understood") from None
        if answer.status_code != httpx.codes.OK:
            raise _refused(answer.status_code, body)
        if not isinstance(body, dict):
            raise ApiError("what answers at FACTA_URL cannot be understood")
        return body

    def every(self, path: str, **params: Any) -> Iterator[Row]:
        """All rows of a list, page by page."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.get(path, cursor=cursor, **{"limit": 1000, **params})
            yield from page["items"]
            cursor = page["next_cursor"]

    def timeline(self, session_id: str, *, ux: bool = False) -> dict[str, Any]:
        """A session's timeline."""
        name = quote(session_id.encode("utf-8", "replace"), safe="")
        return self.get(f"/sessions/{name}/timeline", ux="true" if ux else "")


@contextmanager
def connect(settings: Settings) -> Iterator[Client]:
    """A client of whoever serves FACTA_URL, else of the store in FACTA_DATA; raises ApiError."""
    with ExitStack() as stack:
        http = stack.enter_context(_http(settings))
        if _is_served(http):
            yield Client(lambda path, params: http.get(path, params=params))
            return
        if not _on_loopback(settings.url):
            raise ApiError("no Facta answers at FACTA_URL")
        app = stack.enter_context(_opened(settings))
        # A thread of its own, since the caller's may have a running event loop already.
        thread = stack.enter_context(ThreadPoolExecutor(1, "facta-client"))
        runner = asyncio.Runner()
        stack.callback(lambda: thread.submit(runner.close).result())
        yield Client(
            lambda path, params: thread.submit(runner.run, _ask(app, path, params)).result()
        )


def _http(settings: Settings) -> httpx.Client:
    headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
    return httpx.Client(
        base_url=settings.url,
        headers=headers,
        timeout=_TIMEOUT,
        follow_redirects=True,
        trust_env=not _on_loopback(settings.url),
    )


def _on_loopback(url: str) -> bool:
    try:
        return urlsplit(url).hostname in _LOOPBACK
    except ValueError:
        raise ApiError("FACTA_URL is no address") from None


def _is_served(http: httpx.Client) -> bool:
    try:
        body = http.get("/health", timeout=3.0).json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return False
    return isinstance(body, dict) and body.get("service") == "facta"


@contextmanager
def _opened(settings: Settings) -> Iterator[FastAPI]:
    """The API over the store in the data folder, opened here."""
    if not (settings.data / "chdb").is_dir():
        raise ApiError(
            "no Facta answers at FACTA_URL, and FACTA_DATA holds no store: start `facta up`"
        )
    with ExitStack() as stack:
        try:
            store = Store.open(settings)
            stack.callback(store.close)
            store.migrate()
            status = _ledger_status(settings)
        except StoreHeldError as error:
            raise ApiError(f"{error}, but it does not answer at FACTA_URL") from None
        except (StoreError, LedgerDamagedError, LedgerLockedError, LedgerUnreadable) as error:
            raise ApiError(str(error)) from None
        yield create_app(store, lambda: status, None, settings)


def _ledger_status(settings: Settings) -> LedgerStatus:
    """How far the store is, from the ledger, which is closed again at once."""
    if not (settings.data / "ledger").is_dir():
        return LedgerStatus(0, 0, resolved=True)
    with Ledger.open(settings.data / "ledger") as ledger:
        repeats = ledger.stats().repeats
        return LedgerStatus(ledger.size, ledger.projected, resolved=True, repeats=repeats)


async def _ask(app: FastAPI, path: str, params: dict[str, str]) -> httpx.Response:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url=_DIRECT, follow_redirects=True, timeout=_TIMEOUT
    ) as http:
        return await http.get(path, params=params)


def _refused(status: int, body: Any) -> ApiError:
    """An ApiError with the API's own words."""
    told = body.get("error") if isinstance(body, dict) else None
    fields = body.get("fields") if isinstance(body, dict) else None
    parts = [told if isinstance(told, str) else f"the API answered with status {status}"]
    if isinstance(fields, list):
        parts += [field for field in fields if isinstance(field, str)]
    if status == 401:  # noqa: PLR2004
        parts.append("set FACTA_TOKEN")
    return ApiError("; ".join(parts), status)
