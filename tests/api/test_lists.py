"""The lists: fields, filters, time ranges, pages."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from facta.store import views

Get = Callable[..., Any]
START = 1_700_000_000_000_000_000
SECOND = 1_000_000_000

LISTS = {
    "/sessions": 2,
    "/turns": 4,
    "/context": 4,
    "/tool-calls": 2,
    "/effects": 2,
    "/retrievals": 1,
    "/evaluations": 1,
    "/state-transitions": 1,
    "/refusals": 1,
    "/controls": 1,
    "/sightings": 7,
    "/ux": 2,
}


@pytest.mark.parametrize(("path", "count"), LISTS.items())
def test_a_list_has_every_row_and_an_end(get: Get, path: str, count: int) -> None:
    answer = get(path)
    assert answer.keys() == {"items", "next_cursor"}
    assert len(answer["items"]) == count
    assert answer["next_cursor"] is None


@pytest.mark.parametrize(("path", "count"), LISTS.items())
def test_pages_of_one_row_are_the_whole_list(get: Get, path: str, count: int) -> None:
    found: list[Any] = []
    cursor: Any = ""
    for _ in range(count):
        answer = get(path, limit=1, cursor=cursor)
        found += answer["items"]
        cursor = answer["next_cursor"]
    assert cursor is None
    assert found == get(path)["items"]


@pytest.mark.parametrize("limit", [2, 3, 5])
def test_pages_of_sightings_end_inside_of_turns_too(get: Get, limit: int) -> None:
    found: list[Any] = []
    cursor: Any = ""
    while cursor is not None:
        answer = get("/sightings", limit=limit, cursor=cursor)
        assert len(answer["items"]) <= limit
        found += answer["items"]
        cursor = answer["next_cursor"]
    assert found == get("/sightings")["items"]


FILTERS = [
    ("/sessions", {"service": "chat"}, ["s-chat"]),
    ("/sessions", {"session_id": "s-refund"}, ["s-refund"]),
    ("/sessions", {"session_id": "s-old"}, ["s-refund"]),
    ("/sessions", {"model": "gpt-5.6-luna"}, ["s-refund"]),
    ("/sessions", {"claim": "conv-7"}, ["s-refund"]),
    ("/sessions", {"agent": "refunds"}, ["s-refund"]),
    ("/sessions", {"gap": "no span after the last turn"}, ["s-refund"]),
    ("/sessions", {"service": "chat", "model": "gpt-5.6-luna"}, []),
    ("/sessions", {"since": START + 1}, ["s-chat"]),
    ("/sessions", {"until": START + 1}, ["s-refund"]),
    ("/sessions", {"until": START}, []),
    ("/sessions", {"since": START}, ["s-chat", "s-refund"]),
    ("/sessions", {"since": "2023-11-14T22:13:20.000000001Z"}, ["s-chat"]),
    ("/sessions", {"since": "2023-11-14T23:13:20+01:00"}, ["s-chat", "s-refund"]),
    ("/turns", {"turn_id": "t2"}, ["turn-t2"]),
    ("/turns", {"session_id": "s-old"}, ["turn-t1", "turn-t2", "turn-t3"]),
    ("/turns", {"response_id": "resp_t3"}, ["turn-t3"]),
    ("/turns", {"request_model": "gpt-5.6-luna"}, ["turn-t3"]),
    ("/turns", {"response_model": "claude-5"}, ["turn-c1"]),
    ("/turns", {"conversation_id": "conv-7", "provider": "anthropic"}, []),
    ("/turns", {"trace_id": "a" * 31 + "2"}, ["turn-t2"]),
    ("/turns", {"agent": "refunds", "since": START + SECOND}, ["turn-t2", "turn-t3"]),
    ("/context", {"turn_id": "t2"}, ["context-t2-request-2"]),
    ("/context", {"role": "user"}, ["context-t1-request-1"]),
    ("/context", {"direction": "response"}, ["context-t1-response-0"]),
    ("/context", {"since": START + SECOND}, ["context-t2-request-2"]),
    ("/tool-calls", {"tool": "issue_refund"}, ["call-2"]),
    ("/tool-calls", {"call_id": "call_1"}, ["call-1"]),
    ("/tool-calls", {"turn_id": "t2", "status": "ok"}, ["call-2"]),
    ("/tool-calls", {"service": "chat"}, []),
    ("/tool-calls", {"service": "refund-agent", "until": START + 2 * SECOND}, ["call-1"]),
    ("/effects", {"basis": "acknowledged"}, ["effect-2"]),
    ("/effects", {"operation": "GET"}, ["effect-1"]),
    ("/effects", {"target": "payments/refunds", "call_id": "call_2"}, ["effect-2"]),
    ("/effects", {"status": "200"}, ["effect-1"]),
    ("/retrievals", {"trace_id": "a" * 31 + "1"}, ["retrieval-1"]),
    ("/evaluations", {"name": "correctness", "label": "pass", "reads": "answer"}, ["evaluation-1"]),
    ("/evaluations", {"label": "fail"}, []),
    ("/state-transitions", {"name": "order"}, ["transition-1"]),
    ("/refusals", {"reason": "invalid UTF-8"}, ["refusal-1"]),
    ("/refusals", {"service": "chat"}, []),
    ("/refusals", {"until": START}, []),
    ("/controls", {"class": "control", "severity": "error"}, ["control-1"]),
    ("/controls", {"class": "courtesy"}, []),
    ("/ux", {"turn_id": "t1"}, ["ux-1"]),
    ("/ux", {"ux_kind": "thinking"}, []),
]


@pytest.mark.parametrize(("path", "params", "keys"), FILTERS, ids=str)
def test_filters(get: Get, path: str, params: dict[str, Any], keys: list[str]) -> None:
    name = "session_id" if path == "/sessions" else "row_key"
    assert [row[name] for row in get(path, **params)["items"]] == keys


def test_every_filter_of_every_list_is_bound(client: TestClient) -> None:
    """A parameter that the OpenAPI names and no view binds would filter nothing."""
    paths = client.get("/openapi.json").json()["paths"]
    for path in LISTS:
        told = paths[f"/api/v1{path}"]["get"]["parameters"]
        for parameter in told:
            name = parameter["name"]
            if name in {"limit", "cursor"}:
                continue
            value = "1" if name in {"since", "until"} else "no row has this"
            if name == "since":
                value = str(2**62)
            answer = client.get(f"/api/v1{path}", params={name: value})
            assert answer.status_code == 200, (path, name)
            if (path, name) != ("/controls", "session_id"):
                assert answer.json()["items"] == [], (path, name)


def test_the_fields_are_the_columns_of_the_views(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    views_of = {
        "Session": "sessions",
        "Turn": "turns",
        "ContextItem": "context",
        "ToolCall": "tool_calls",
        "Effect": "effects",
        "Retrieval": "retrievals",
        "Evaluation": "evaluations",
        "StateTransition": "state_transitions",
        "Refusal": "refusals",
        "Control": "controls",
        "UxSummary": "ux",
    }
    for model, view in views_of.items():
        assert list(schemas[model]["properties"]) == views.view(view).columns, model


def test_values_are_as_they_were_kept(get: Get) -> None:
    [call] = get("/tool-calls", call_id="call_1")["items"]
    assert call["arguments"] == '{"order_id":"7"}'
    assert call["result"] == '{"status":"ok","amount":10.50}'
    assert call["conflict"] is False
    assert call["duration_ns"] == 41_000_000
    [turn] = get("/turns", turn_id="c1")["items"]
    assert turn["store"] is None
    assert turn["input_tokens"] is None
    assert turn["started_ns"] == START + 60 * SECOND


SIGHTINGS = [
    ("c1", "c1", "response", "0.0", "anthropic.signature"),
    ("t1", "t1", "response", "0.0", "openai.reasoning"),
    ("t2", "t2", "request", "2.0", "openai.reasoning"),
    ("t2", "t2", "response", "0.0", "openai.reasoning"),
    ("t3", "t2", "request", "2.0", "openai.reasoning"),
    ("t3", "t3", "request", "5.0", "openai.reasoning"),
    ("t3", "t3", "response", "0.0", "openai.reasoning"),
]


def test_a_turn_shows_the_sealed_values_of_its_history_again(get: Get) -> None:
    fields = ("turn_id", "first_turn_id", "direction", "position", "kind")
    found = [tuple(row[name] for name in fields) for row in get("/sightings")["items"]]
    assert found == SIGHTINGS


@pytest.mark.parametrize(
    ("params", "turns"),
    [
        ({"kind": "anthropic.signature"}, ["c1"]),
        ({"state": "truncated"}, ["t3"]),
        ({"sealed_by": "shape"}, ["c1"]),
        ({"direction": "request"}, ["t2", "t3", "t3"]),
        ({"direction": "request", "turn_id": "t3"}, ["t3", "t3"]),
        ({"turn_id": "t1"}, ["t1"]),
        ({"session_id": "s-old/2", "direction": "response"}, ["t1", "t2", "t3"]),
        ({"service": "chat"}, ["c1"]),
        ({"since": START + 3 * SECOND, "until": START + 30 * SECOND}, ["t3", "t3", "t3"]),
        ({"sha256": "0" * 64}, []),
    ],
    ids=str,
)
def test_filters_of_sightings(get: Get, params: dict[str, Any], turns: list[str]) -> None:
    assert [row["turn_id"] for row in get("/sightings", **params)["items"]] == turns


def test_a_hash_finds_every_sighting_of_its_value(get: Get) -> None:
    [first] = get("/sightings", turn_id="t1")["items"]
    for name in ("sha256", "sha256_decoded", "any_hash"):
        digest = first["sha256_decoded" if name == "sha256_decoded" else "sha256"]
        found = get("/sightings", **{name: digest})["items"]
        assert [row["turn_id"] for row in found] == ["t1", "t2", "t3"]
    assert len(get("/sightings", any_hash=first["sha256_decoded"])["items"]) == 3


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 1001},
        {"limit": "many"},
        {"cursor": "canary5d1f"},
        {"cursor": "WzEsMl0"},
        {"cursor": views.make_cursor("turns", [1, "s"])},
        {"cursor": views.make_cursor("sessions", ["s", 1, "r"])},
        {"cursor": views.make_cursor("sessions", [True, "s"])},
        {"cursor": views.make_cursor("sessions", [2**63, "s"])},
        {"cursor": views.make_cursor("sessions", [1, {"canary5d1f": 1}])},
        {"since": "yesterday canary5d1f"},
        {"since": "2023-02-30T00:00:00Z"},
        {"since": "1969-12-31T23:59:59Z"},
        {"until": "99999999999999999999"},
        {"until": "-1"},
        {"canary5d1f": "canary5d1f"},
        {"service": "canary5d1f" * 1000},
    ],
    ids=str,
)
def test_a_wrong_parameter_is_told_without_its_value(
    client: TestClient, params: dict[str, Any]
) -> None:
    answer = client.get("/api/v1/sessions", params=params)
    assert answer.status_code == 422
    assert answer.json()["fields"]
    assert "canary5d1f" not in answer.text
    assert "yesterday" not in answer.text


def test_a_cursor_belongs_to_its_list(client: TestClient) -> None:
    cursor = client.get("/api/v1/turns", params={"limit": 1}).json()["next_cursor"]
    for path in ("/sessions", "/effects", "/sightings"):
        answer = client.get(f"/api/v1{path}", params={"cursor": cursor})
        assert answer.status_code == 422, path
