"""What the pages ask the read API for.

Every failure is a ReadError with one line of our own words: no text of an answer, which may be
somebody else's, and no value of the request.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

PAGE = 100
"""Sessions per page."""

ITEMS = 100
"""Items of one turn's context that are drawn."""

_TIMEOUT = httpx.Timeout(30.0, connect=3.0)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_REASONS = {
    401: "The API wants a token: start the dashboard with FACTA_TOKEN set to one that may read.",
    403: "The token in FACTA_TOKEN may not read this.",
    404: "There is nothing here under this id.",
    422: "The API does not understand this filter.",
    503: "The API is not ready: `facta doctor` says why.",
}


class ReadError(Exception):
    """Why nothing can be shown; the text is one line. `status` is HTTP's, 0 without an answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Sessions:
    """One page of sessions, newest first, and the cursor of the next ("" at the end)."""

    items: list[dict[str, Any]]
    next_cursor: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """A session and its steps, in order, as the API gives them."""

    session: dict[str, Any]
    steps: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the API at `url` with `token` ("" for none)."""

    url: str
    token: str = ""

    def sessions(self, filters: dict[str, str], cursor: str = "") -> Sessions:
        """One page of sessions. `filters` are query parameters of the API; empty ones are left out."""
        query = {"limit": str(PAGE), "cursor": cursor, **filters}
        answer = self._get("/sessions", {name: value for name, value in query.items() if value})
        items, following = answer.get("items"), answer.get("next_cursor")
        if not isinstance(items, list):
            raise _unreadable()
        return Sessions(_rows(items), following if isinstance(following, str) else "")

    def timeline(self, session_id: str, *, ux: bool) -> Timeline:
        """The timeline of a session; with `ux` the summaries too (which is recorded over there)."""
        if session_id in {".", ".."}:  # these would name another path
            raise _refused(404)
        path = f"/sessions/{quote(session_id.encode('utf-8', 'replace'), safe='')}/timeline"
        answer = self._get(path, {"ux": "true"} if ux else {})
        session, steps = answer.get("session"), answer.get("steps")
        if not isinstance(session, dict) or not isinstance(steps, list):
            raise _unreadable()
        return Timeline(session, _rows(steps))

    def context(self, session_id: str, turn_id: str) -> list[dict[str, Any]]:
        """The first items that a turn added to its context."""
        query = {"session_id": session_id, "turn_id": turn_id, "limit": str(ITEMS)}
        items = self._get("/context", query).get("items")
        if not isinstance(items, list):
            raise _unreadable()
        return _rows(items)

    def content(self, pointer: str) -> str:
        """All of a text, by a row's pointer to it."""
        text = self._get(pointer, {}).get("text")
        if not isinstance(text, str):
            raise _unreadable()
        return text

    def _get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        on_loopback = urlsplit(self.url).hostname in _LOOPBACK
        try:
            with httpx.Client(
                timeout=_TIMEOUT,
                headers=headers,
                trust_env=not on_loopback,
                follow_redirects=True,  # an id that was merged into another session's
            ) as http:
                answer = http.get(f"{self.url.rstrip('/')}/api/v1{path}", params=query)
            if answer.status_code != httpx.codes.OK:
                raise _refused(answer.status_code)
            body = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL):
            message = "The API does not answer: is `facta up` running, and FACTA_URL right?"
            raise ReadError(message) from None
        except (ValueError, RecursionError):
            raise _unreadable() from None
        if not isinstance(body, dict):
            raise _unreadable()
        return body


def _rows(items: list[Any]) -> list[dict[str, Any]]:
    if not all(isinstance(item, dict) for item in items):
        raise _unreadable()
    return items


def _refused(status: int) -> ReadError:
    return ReadError(_REASONS.get(status, f"The API answered with HTTP status {status}."), status)


def _unreadable() -> ReadError:
    return ReadError("The API's answer cannot be read: are both of one version of Facta?")
