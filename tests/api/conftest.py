import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from facta.api import LedgerStatus, Tokens, create_app
from facta.settings import Settings
from facta.store.embedded import EmbeddedStore

SEED = json.loads((Path(__file__).parents[1] / "data/store/refund.json").read_text())
STATUS = LedgerStatus(ledger_rows=12, projected_rows=10, resolved=True, repeats=3, refused=1)


def foreign(row: dict[str, Any]) -> dict[str, Any]:
    """The same row as another tenant has it: every text but ids and names says so."""
    changed = {"tool", "operation", "target", "reason", "name", "rule", "role", "ux_kind", "kind"}
    texts = {"ux_reasoning_summary", "text", "query", "service", "provider"}
    return {name: "FOREIGN" if name in changed | texts else value for name, value in row.items()}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedStore]:
    """Two tenants whose rows have the same ids; the other's say FOREIGN."""
    opened = EmbeddedStore.at(tmp_path_factory.mktemp("data"))
    opened.migrate()
    for table, rows in SEED.items():
        own = {"version": 1, "deleted": 0}
        opened.insert(table, [{"tenant": "default", **own, **row} for row in rows])
        opened.insert(table, [{"tenant": "other", **own, **foreign(row)} for row in rows])
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    return Tokens(tmp_path_factory.mktemp("tokens") / "tokens.json")


@pytest.fixture
def app(store: EmbeddedStore) -> FastAPI:
    """Everything open, as on loopback without tokens."""
    return create_app(store, lambda: STATUS, None, Settings())


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as made:
        yield made


@pytest.fixture
def guarded(store: EmbeddedStore, tokens: Tokens) -> Iterator[TestClient]:
    """The same store, with tokens."""
    with TestClient(create_app(store, lambda: STATUS, tokens, Settings())) as made:
        yield made


Get = Callable[..., Any]


@pytest.fixture
def get(client: TestClient) -> Get:
    def read(path: str, **params: Any) -> Any:
        answer = client.get(f"/api/v1{path}", params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    return read
