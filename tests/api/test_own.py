"""Health, readiness, counters, status, the page of routes; over real HTTP too."""

import re
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient

import facta
from facta.api import LedgerStatus, create_app
from facta.model.metrics import Metrics
from facta.settings import Settings
from facta.store import Row
from facta.store.embedded import EmbeddedStore


def test_health_says_which_facta(client: TestClient) -> None:
    assert client.get("/health").json() == {
        "service": "facta",
        "status": "ok",
        "version": facta.__version__,
    }


def test_status(client: TestClient) -> None:
    assert client.get("/api/v1/status").json() == {
        "ledger_rows": 12,
        "projected_rows": 10,
        "backlog": 2,
        "resolved": False,
        "repeats": 3,
        "refused": 1,
        "last_checkpoint": None,
        "version": facta.__version__,
    }


@pytest.mark.parametrize(
    ("status", "resolved"),
    [
        (LedgerStatus(5, 5, resolved=True), True),
        (LedgerStatus(5, 5, resolved=False), False),
        (LedgerStatus(5, 4, resolved=True), False),
        (LedgerStatus(0, 0, resolved=True), True),
    ],
)
def test_resolved_means_that_nothing_waits(
    store: EmbeddedStore, status: LedgerStatus, resolved: bool
) -> None:
    client = TestClient(create_app(store, lambda: status, None, Settings()))
    assert client.get("/api/v1/status").json()["resolved"] is resolved


def test_ready_runs_a_query(
    store: EmbeddedStore, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    query = store.query

    def noted(sql: str) -> list[Row]:
        asked.append(sql)
        return query(sql)

    monkeypatch.setattr(store, "query", noted)
    assert client.get("/ready").status_code == 200
    assert len(asked) == 1
    monkeypatch.setattr(store, "query", lambda *_: [])
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    assert client.get("/health").status_code == 200


def test_metrics_are_prometheus_text(store: EmbeddedStore) -> None:
    metrics = Metrics()
    metrics.requests.labels("traces", "http", "200").inc()
    metrics.repeated.inc(3)
    status = LedgerStatus(12, 10, resolved=True)
    client = TestClient(create_app(store, lambda: status, None, Settings(), metrics))
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'facta_requests_total{signal="traces",status="200",transport="http"} 1.0' in lines
    assert "facta_repeated_observations_total 3.0" in lines
    assert "facta_ledger_rows 12.0" in lines
    assert "facta_projected_rows 10.0" in lines
    assert "facta_store_ready 1.0" in lines


def test_the_page_of_routes_loads_nothing(app: FastAPI, client: TestClient) -> None:
    page = client.get("/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r"<script|<link|<img|src=|https?://", page.text)
    for path in app.openapi()["paths"]:
        assert f"GET {path}" in page.text
    assert client.get("/openapi.json").json()["info"]["title"] == "Facta"
    assert client.get("/redoc").status_code == 404


@pytest.fixture
def served(app: FastAPI) -> Iterator[str]:
    """The application behind uvicorn on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def test_over_http(served: str) -> None:
    with httpx.Client(base_url=served, follow_redirects=True) as http:
        while True:
            try:
                assert http.get("/ready").status_code == 200
                break
            except httpx.ConnectError:
                continue
        assert len(http.get("/api/v1/turns").json()["items"]) == 4
        timeline = http.get("/api/v1/sessions/s-old%2F2/timeline").json()
        assert timeline["session"]["session_id"] == "s-refund"
        pages = 0
        cursor: Any = ""
        while cursor is not None:
            page = http.get("/api/v1/sightings", params={"limit": 2, "cursor": cursor}).json()
            cursor = page["next_cursor"]
            pages += 1
        assert pages == 4
