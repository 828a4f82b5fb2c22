"""Every route, every scope, every tenant: generated from the OpenAPI, so a new route is in it."""

from itertools import chain, combinations
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from facta.api import LedgerStatus, Tokens, create_app
from facta.api.tokens import SCOPES
from facta.settings import Settings
from facta.store.embedded import EmbeddedStore

OPEN_TO_ALL = {"/health", "/ready"}
UX_ONLY = {"/api/v1/ux"}
OPERATOR = {"/metrics", "/api/v1/status"}
COMMIT = "2f5b7e"

SCOPE_SETS = [
    list(scopes)
    for scopes in chain.from_iterable(combinations(SCOPES, size) for size in range(1, 5))
]


def routes(app: FastAPI) -> list[str]:
    paths = app.openapi()["paths"]
    assert all(list(methods) == ["get"] for methods in paths.values())
    return list(paths)


def filled(path: str) -> str:
    return path.replace("{session_id}", "s-refund").replace("{commit}", COMMIT)


def expected(path: str, scopes: list[str]) -> int:
    if path in OPEN_TO_ALL:
        return 200
    if path in UX_ONLY:
        return 200 if "ux" in scopes else 403
    if path in OPERATOR:
        return 200 if {"evidence", "admin"} & set(scopes) else 403
    if "evidence" not in scopes:
        return 403
    return 404 if "{commit}" in path else 200


@pytest.mark.parametrize("scopes", SCOPE_SETS, ids="+".join)
def test_every_route_wants_its_scope(
    app: FastAPI, guarded: TestClient, tokens: Tokens, scopes: list[str]
) -> None:
    header = {"Authorization": f"Bearer {tokens.create(scopes)}"}
    answers = {path: guarded.get(filled(path), headers=header) for path in routes(app)}
    found = {path: answer.status_code for path, answer in answers.items()}
    assert found == {path: expected(path, scopes) for path in found}


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer facta_canary5d1f"},
        {"Authorization": "Basic ZmFjdGE6Y2FuYXJ5"},
        {"Authorization": "facta_canary5d1f"},
        {"Authorization": "Bearer \xe9"},
    ],
    ids=str,
)
def test_every_route_wants_a_token(
    app: FastAPI, guarded: TestClient, tokens: Tokens, header: dict[str, str]
) -> None:
    tokens.create(["evidence"])
    for path in set(routes(app)) - OPEN_TO_ALL:
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in header.items()]
        answer = guarded.get(filled(path), headers=encoded)
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "canary" not in answer.text


def test_a_token_in_the_query_string_is_refused(guarded: TestClient, tokens: Tokens) -> None:
    text = tokens.create(["evidence"])
    for name in ("token", "access_token"):
        for header in ({}, {"Authorization": f"Bearer {text}"}):
            answer = guarded.get("/api/v1/sessions", params={name: text}, headers=header)
            assert answer.status_code == 401
            assert text not in answer.text


def test_every_route_shows_its_tenant_alone(
    app: FastAPI, guarded: TestClient, tokens: Tokens
) -> None:
    shown = {}
    for tenant in ("default", "other", "empty"):
        header = {"Authorization": f"Bearer {tokens.create(list(SCOPES), tenant=tenant)}"}
        for path in routes(app):
            if path.startswith("/api/v1/") and path not in OPERATOR:
                shown[tenant, path] = guarded.get(filled(path), headers=header)
        shown[tenant, "ux"] = guarded.get(
            "/api/v1/sessions/s-refund/timeline?ux=true", headers=header
        )
    for (tenant, path), answer in shown.items():
        if "{commit}" in path:
            continue
        assert ("FOREIGN" in answer.text) is (tenant == "other"), (tenant, path)
        if tenant == "empty":
            assert answer.status_code == 404 or of_a_tenant(answer.json()["items"]) == [], path


def of_a_tenant(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, without the doctor's findings on the machine and on silence."""
    return [
        row for row in items if row.get("check") not in {"nothing arriving", "disk nearly full"}
    ]


@pytest.mark.parametrize("path", ["/api/v1/sessions/theirs", "/api/v1/sessions/theirs/timeline"])
def test_a_foreign_id_is_like_no_id(
    store: EmbeddedStore, guarded: TestClient, tokens: Tokens, path: str
) -> None:
    row: dict[str, Any] = {"tenant": "other", "session_id": "theirs", "row_key": "session"}
    store.insert("evidence.sessions", [row | {"aliases": ["merged"], "version": 1, "deleted": 0}])
    header = {"Authorization": f"Bearer {tokens.create(['evidence'])}"}
    foreign = guarded.get(path, headers=header)
    missing = guarded.get(path.replace("theirs", "none"), headers=header)
    merged = guarded.get(path.replace("theirs", "merged"), headers=header, follow_redirects=False)
    assert foreign.status_code == missing.status_code == merged.status_code == 404
    assert foreign.json() == missing.json() == merged.json()


def test_a_ux_commitment_wants_the_scope_ux(
    store: EmbeddedStore, guarded: TestClient, tokens: Tokens
) -> None:
    [row] = store.query(
        "SELECT toString(commit) AS commit FROM ux.content WHERE tenant = 'default'"
    )
    path = f"/api/v1/content/{row['commit']}"
    evidence = {"Authorization": f"Bearer {tokens.create(['evidence'])}"}
    both = {"Authorization": f"Bearer {tokens.create(['evidence', 'ux'])}"}
    refused = guarded.get(path, headers=evidence)
    assert refused.status_code == 403
    assert "looked up" not in refused.text
    assert guarded.get(path, headers=both).json()["lane"] == "ux"


def test_reading_the_ux_lane_is_recorded(
    store: EmbeddedStore, guarded: TestClient, tokens: Tokens
) -> None:
    header = {"Authorization": f"Bearer {tokens.create(['evidence', 'ux'], tenant='watched')}"}
    reader = tokens.all()[-1].id
    guarded.get("/api/v1/ux?session_id=s-refund", headers=header)
    guarded.get("/api/v1/sessions", headers=header)
    guarded.get("/api/v1/sessions/none/timeline?ux=true", headers=header)
    found = store.query(
        "SELECT reader, route, session_id, toUnixTimestamp64Nano(read_at) > 0 AS timed"
        " FROM evidence.reads WHERE tenant = 'watched'"
    )
    assert found == [{"reader": reader, "route": "/ux", "session_id": "s-refund", "timed": 1}]


def test_a_ux_timeline_wants_the_scope_and_is_recorded(
    store: EmbeddedStore, guarded: TestClient, tokens: Tokens
) -> None:
    path = "/api/v1/sessions/s-refund/timeline?ux=true"
    evidence = {"Authorization": f"Bearer {tokens.create(['evidence'])}"}
    assert guarded.get(path, headers=evidence).status_code == 403
    both = {"Authorization": f"Bearer {tokens.create(['evidence', 'ux'])}"}
    reader = tokens.all()[-1].id
    assert "I looked up" in guarded.get(path, headers=both).text
    found = store.query(
        "SELECT route, session_id FROM evidence.reads WHERE reader = {reader:String}",
        {"reader": reader},
    )
    assert found == [{"route": "/sessions/timeline", "session_id": "s-refund"}]


def test_an_open_facta_records_no_reader(store: EmbeddedStore, client: TestClient) -> None:
    before = store.query("SELECT count() AS rows FROM evidence.reads")
    assert client.get("/api/v1/ux").status_code == 200
    assert store.query("SELECT count() AS rows FROM evidence.reads") == before


def test_a_revoked_token_stops_at_once(store: EmbeddedStore, tokens: Tokens) -> None:
    header = {"Authorization": f"Bearer {tokens.create(['evidence'])}"}
    number = tokens.all()[-1].id
    server = Tokens(tokens.path)
    status = LedgerStatus(0, 0, resolved=True)
    with TestClient(create_app(store, lambda: status, server, Settings())) as client:
        assert client.get("/api/v1/sessions", headers=header).status_code == 200
        tokens.revoke(number)
        assert client.get("/api/v1/sessions", headers=header).status_code == 401
