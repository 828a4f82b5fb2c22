"""A collector inside the test's process: real HTTP and gRPC, and a store that can be taken away."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.evidence.chdb import rows_of
from tests.evidence.harness import Tables
from tests.faults.payloads import PROTOBUF

from facta.api.tokens import Tokens
from facta.app.serve import Collector
from facta.app.service import Facta
from facta.settings import Settings
from facta.store import Row, Store, StoreError

SECONDS = 100


class Fragile(Store):
    """A store that answers nothing while it is `away`, and fails where `fail` says so."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.rebuilt = store.rebuilt
        self.away = False
        self.fail: Callable[[str, Sequence[Mapping[str, Any]]], None] | None = None

    def _here(self) -> None:
        if self.away:
            raise StoreError(210, "the store answers nothing")

    def migrate(self) -> list[str]:
        return self.store.migrate()

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._here()
        if self.fail is not None:
            self.fail(table, rows)
        self.store.insert(table, rows)

    def query(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        self._here()
        return self.store.query(sql, params)

    def truncate(self, table: str) -> None:
        self._here()
        self.store.truncate(table)

    def ready(self) -> bool:
        return not self.away and self.store.ready()

    def close(self) -> None:
        self.store.close()


@dataclass(slots=True)
class Inside:
    """A running collector: its parts and its two ports."""

    collector: Collector
    facta: Facta
    http: int
    grpc: int
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Fragile:
        assert isinstance(self.facta.store, Fragile)
        return self.facta.store

    def ask(
        self, method: str, path: str, data: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower case) and body of one request."""
        connection = HTTPConnection("127.0.0.1", self.http, timeout=SECONDS)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, data, self.headers | given)
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()

    def post(self, data: bytes, path: str = "/v1/traces", **headers: str) -> int:
        """The status of a POST of protobuf."""
        kind = headers.pop("content_type", PROTOBUF)
        return self.ask("POST", path, data, content_type=kind, **headers)[0]

    def get(self, path: str, **headers: str) -> Any:
        """The JSON of a GET that works."""
        status, _, data = self.ask("GET", path, None, **headers)
        assert status == 200, (path, status, data)
        return json.loads(data)

    def settled(self) -> Tables:
        """All resolved tables, when nothing waits."""
        until(lambda: self.facta.status().resolved)
        status = self.facta.status()
        assert status.projected_rows == status.ledger_rows
        return rows_of(self.facta, "default")


def until(holds: Callable[[], bool]) -> None:
    """Wait for a condition; fail after a while."""
    patience = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < patience, "it never came to hold"
        threading.Event().wait(0.01)


@contextmanager
def serving(settings: Settings, tokens: Tokens | None = None) -> Iterator[Inside]:
    """A collector that serves in a thread until the end of the with block."""
    chosen = settings.model_copy(update={"http_port": 0, "grpc_port": 0})
    with pytest.MonkeyPatch.context() as patch:
        opened = Store.open
        patch.setattr(Store, "open", staticmethod(lambda given: Fragile(opened(given))))
        collector = Collector(chosen, tokens)
    ready = threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(collector.serve(lambda _: ready.set())), daemon=True
    )
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield Inside(collector, collector._facta, collector.http_port, collector.grpc_port)
    finally:
        collector.server.should_exit = True
        thread.join(SECONDS)


def settings(data: Path, **more: Any) -> Settings:
    """Settings for a data directory."""
    return Settings(data=data, **more)
