"""Injection, canaries in errors and logs, and values that JSON or a log cannot take."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from facta.api import LedgerStatus, create_app
from facta.settings import Settings
from facta.store import Row, Store, StoreError
from facta.store.embedded import EmbeddedStore

CANARY = "canary5d1f"

INJECTIONS = [
    "' OR 1=1 --",
    "\\' OR 1=1 --",
    "\\",
    "'; DROP TABLE evidence.sessions; --",
    "') UNION ALL SELECT * FROM ux.summaries --",
    "{tenant:String} {x:Identifier} %(tenant)s %s",
    '`]" /* */ -- #',
    "\0\r\n\t\b\f\v\u2028\u202e\U0001f600",
    "file('x') INTO OUTFILE 'x' FORMAT JSON SETTINGS readonly=0",
    "NULL",
]


def lists(app: FastAPI) -> Iterator[tuple[str, str]]:
    """(path, parameter) of every text filter in the OpenAPI."""
    for path, methods in app.openapi()["paths"].items():
        for parameter in methods["get"].get("parameters", []):
            if parameter["in"] == "query" and parameter["name"] not in {"limit", "ux"}:
                yield path, parameter["name"]


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_filter_can_be_broken_out_of(
    app: FastAPI, client: TestClient, store: EmbeddedStore, text: str
) -> None:
    """A text that is no row's answers with no rows (a time or a cursor with 422), never with all."""
    counted = "SELECT count() AS rows FROM evidence.sessions"
    before = store.query(counted)
    tried = list(lists(app))
    for path, name in tried:
        answer = client.get(path, params={name: text})
        if name in {"since", "until", "cursor"}:
            assert answer.status_code == 422, (path, name)
            continue
        assert answer.status_code == 200, (path, name)
        assert answer.json()["items"] == [], (path, name)
    assert len(tried) > 80
    assert store.query(counted) == before


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_path_can_be_broken_out_of(client: TestClient, text: str) -> None:
    from urllib.parse import quote

    for path in ("/api/v1/sessions/{}", "/api/v1/sessions/{}/timeline", "/api/v1/content/{}"):
        answer = client.get(path.format(quote(text, safe="")))
        assert answer.status_code == 404, (path, text)
        assert text not in answer.text or len(text) < 3


class Failing(Store):
    """A store whose every answer is an exception that holds a payload."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def migrate(self) -> list[str]:
        raise self.error

    def insert(self, table: str, rows: Any) -> None:
        raise self.error

    def query(self, sql: str, params: Any = None) -> list[Row]:
        raise self.error

    def truncate(self, table: str) -> None:
        raise self.error

    def ready(self) -> bool:
        return False

    def close(self) -> None:
        pass


def failing(error: Exception) -> TestClient:
    status = LedgerStatus(0, 0, resolved=True)
    return TestClient(create_app(Failing(error), lambda: status, None, Settings()))


def test_an_unforeseen_error_tells_nothing_of_its_text(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    answer = failing(RuntimeError(CANARY)).get("/api/v1/turns")
    assert answer.status_code == 500
    number = answer.json()["error"].rpartition(" ")[2]
    assert f"error {number}: RuntimeError at" in caplog.text
    assert "in query" in caplog.text
    assert CANARY not in answer.text + caplog.text + str(capfd.readouterr())


def test_a_row_that_does_not_fit_its_model_tells_nothing(
    store: EmbeddedStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(store, "query", lambda *_: [{"session_id": [CANARY]}])
    status = LedgerStatus(0, 0, resolved=True)
    answer = TestClient(create_app(store, lambda: status, None, Settings())).get("/api/v1/turns")
    assert answer.status_code == 500
    assert CANARY not in answer.text + caplog.text


def test_a_store_that_fails_is_503_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    answer = failing(StoreError(241, "the store answered MEMORY (241)")).get("/api/v1/turns")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert answer.json()["error"] == "the store answered MEMORY (241)"
    assert "the store answered MEMORY (241)" in caplog.text


def test_ux_is_not_read_when_the_reading_cannot_be_recorded(
    store: EmbeddedStore, guarded: TestClient, tokens: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = {"Authorization": f"Bearer {tokens.create(['evidence', 'ux'])}"}

    def refuse(*_: Any) -> None:
        raise StoreError(243, "the disk is full")

    monkeypatch.setattr(store, "insert", refuse)
    for path in ("/ux", "/sessions/s-refund/timeline?ux=true"):
        answer = guarded.get(f"/api/v1{path}", headers=header)
        assert answer.status_code == 503
        assert "I looked up" not in answer.text


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/nothing", 404),
        (f"/{CANARY}", 404),
        (f"/api/v1/sessions?{CANARY}=1", 422),
        (f"/api/v1/sessions?limit={CANARY}", 422),
        (f"/api/v1/sessions/s-refund/timeline?ux={CANARY}", 422),
        (f"/api/v1/turns?cursor={CANARY}", 422),
    ],
)
def test_no_answer_repeats_what_was_sent(
    client: TestClient, caplog: pytest.LogCaptureFixture, path: str, status: int
) -> None:
    caplog.set_level(logging.DEBUG, "facta")
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json().keys() == {"error", "fields"}
    assert CANARY not in answer.text + str(answer.headers)
    assert CANARY not in "".join(r.getMessage() for r in caplog.records if r.name != "httpx2")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(client: TestClient, method: str) -> None:
    answer = client.request(method, "/api/v1/sessions", json={"canary5d1f": 1})
    assert answer.status_code == 405
    assert CANARY not in answer.text


def test_numbers_that_json_lacks_are_null(store: EmbeddedStore, client: TestClient) -> None:
    row = {"tenant": "default", "session_id": "odd", "version": 1, "deleted": 0}
    scores = {"nan": float("nan"), "infinite": float("inf"), "minus": -0.0}
    store.insert(
        "evidence.evaluations",
        [row | {"row_key": key, "name": key, "score": score} for key, score in scores.items()],
    )
    answer = client.get("/api/v1/evaluations?session_id=odd")
    found = {item["name"]: item["score"] for item in answer.json()["items"]}
    assert found == {"nan": None, "infinite": None, "minus": -0.0}


def test_hostile_texts_come_back_as_text(store: EmbeddedStore, client: TestClient) -> None:
    row = {"tenant": "default", "session_id": "hostile", "version": 1, "deleted": 0}
    texts = ["<script>alert(1)</script>", "\x1b]0;x\x07\0", "\u202ereversed", "=1+1"]
    store.insert(
        "evidence.tool_calls",
        [row | {"row_key": str(n), "arguments": text} for n, text in enumerate(texts)],
    )
    answer = client.get("/api/v1/tool-calls?session_id=hostile")
    assert [item["arguments"] for item in answer.json()["items"]] == texts
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in answer.headers
