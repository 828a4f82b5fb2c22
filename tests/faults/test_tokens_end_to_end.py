"""Tokens over real HTTP and gRPC: who may send, who may read what, and tenants that stay apart."""

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.faults.lives import Life, Nursery
from tests.faults.payloads import body
from tests.faults.test_lost_answers import requests_of
from tests.faults.test_store_away import export

from facta.api.tokens import Tokens

pytestmark = pytest.mark.fault

SCOPES = {
    "sender": (["ingest"], "acme"),
    "other sender": (["ingest"], "beta"),
    "reader": (["evidence"], "acme"),
    "other reader": (["evidence"], "beta"),
    "ux reader": (["evidence", "ux"], "acme"),
    "only ux": (["ux"], "acme"),
    "admin": (["admin"], "acme"),
}
WITH_SUMMARIES = "openinference-anthropic"


@dataclass(slots=True)
class Guarded:
    """A collector with tokens."""

    life: Life
    tokens: dict[str, str]

    def headers(self, who: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[who]}"} if who else {}

    def status(self, who: str, path: str) -> int:
        return self.life.get(path, self.headers(who))[0]

    def items(self, who: str, path: str) -> list[dict[str, Any]]:
        status, data = self.life.get(path, self.headers(who))
        assert status == 200, (who, path, status)
        found: list[dict[str, Any]] = json.loads(data)["items"]
        return found


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Iterator[Guarded]:
    path = tmp_path_factory.mktemp("guarded")
    file = Tokens(path / "tokens.json")
    tokens = {who: file.create(scopes, tenant) for who, (scopes, tenant) in SCOPES.items()}
    life = nursery.start(path / "data", tokens=str(file.path), host="0.0.0.0")
    assert life.code is None, life.log.read_text()
    made = Guarded(life, tokens)
    for sender in ("sender", "other sender"):
        for where, kind, data in requests_of(WITH_SUMMARIES):
            sent = life.post(data, where, made.headers(sender) | {"Content-Type": kind})
            assert sent[0] == 200
    assert life.json("/check")["found"] == []
    yield made
    assert life.end(signal.SIGTERM) == 0


def test_without_tokens_nothing_listens_elsewhere(tmp_path: Path, nursery: Nursery) -> None:
    life = nursery.start(tmp_path / "data", host="0.0.0.0")
    assert life.code == 2
    assert "FACTA_TOKENS" in life.log.read_text()
    assert len(life.log.read_text().splitlines()) == 1
    assert not (tmp_path / "data").exists(), "it ended before it made anything"


def test_who_may_send(guarded: Guarded) -> None:
    wanted = {"": 401, "reader": 403, "ux reader": 403, "admin": 403, "sender": 200}
    for who, status in wanted.items():
        assert guarded.life.post(body(0), headers=guarded.headers(who))[0] == status, who
    codes = {401: grpc.StatusCode.UNAUTHENTICATED, 403: grpc.StatusCode.PERMISSION_DENIED}
    for who, status in wanted.items():
        metadata = [(name.lower(), value) for name, value in guarded.headers(who).items()]
        if status == 200:
            export(guarded.life.grpc, body(0), *metadata)
            continue
        with pytest.raises(grpc.RpcError) as refused:
            export(guarded.life.grpc, body(0), *metadata)
        assert refused.value.code() is codes[status], who


def _routes(guarded: Guarded) -> list[str]:
    """The read API's routes, with something in the place of their parameters."""
    schema = guarded.life.json("/openapi.json")
    return [
        path.replace("{session_id}", "s1").replace("{commit}", "0" * 64)
        for path, methods in schema["paths"].items()
        if path.startswith("/api/") and "get" in methods
    ]


def test_who_may_read_what(guarded: Guarded) -> None:
    routes = _routes(guarded)
    assert len(routes) > 12
    for route in routes:
        assert guarded.status("", route) == 401, route
        assert guarded.status("sender", route) == 403, route
        ux = route == "/api/v1/ux"
        assert (guarded.status("reader", route) == 403) is ux, route
        assert (guarded.status("only ux", route) == 403) is not ux, route
        assert guarded.status("ux reader", route) in (200, 404), route


def test_the_ux_lane_needs_its_scope_by_every_way(guarded: Guarded) -> None:
    summaries = guarded.items("ux reader", "/api/v1/ux")
    assert summaries
    for row in summaries:
        content = f"/api/v1/content/{row['ux_commit']}"
        session = f"/api/v1/sessions/{row['session_id']}/timeline"
        assert guarded.status("ux reader", content) == 200
        assert guarded.status("reader", content) == 403
        assert guarded.status("ux reader", session + "?ux=true") == 200
        assert guarded.status("reader", session + "?ux=true") == 403
        text = row["ux_reasoning_summary"]
        for path in (session, *_lists(guarded)):
            assert text.encode() not in guarded.life.get(path, guarded.headers("reader"))[1], path


def _lists(guarded: Guarded) -> list[str]:
    return [r for r in _routes(guarded) if "s1" not in r and "0000" not in r]


def test_tenants_with_the_same_requests_see_their_own_only(guarded: Guarded) -> None:
    ours, theirs = (
        guarded.items(who, "/api/v1/sessions?limit=1000") for who in ("reader", "other reader")
    )
    assert ours
    assert theirs
    assert not {row["session_id"] for row in ours} & {row["session_id"] for row in theirs}
    for row in theirs:
        assert guarded.status("other reader", f"/api/v1/sessions/{row['session_id']}") == 200
        assert guarded.status("reader", f"/api/v1/sessions/{row['session_id']}") == 404
    for path, field in (
        ("turns", "turn_id"),
        ("tool-calls", "session_id"),
        ("sightings", "turn_id"),
    ):
        mine = {row[field] for row in guarded.items("reader", f"/api/v1/{path}")}
        other = {row[field] for row in guarded.items("other reader", f"/api/v1/{path}")}
        assert mine
        assert other
        assert not mine & other, path
    for row in guarded.items("other reader", "/api/v1/tool-calls"):
        if row["arguments_commit"]:
            content = f"/api/v1/content/{row['arguments_commit']}"
            assert guarded.status("other reader", content) == 200
            assert guarded.status("reader", content) == 404
