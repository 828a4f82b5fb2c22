"""One session, its timeline, contents."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

Get = Callable[..., Any]

# An argument and a summary.
COMMITS = [
    "75303563a87c0e0624dd82eec1fa310ed330cf3ef98a9e25f3ff97409369d647",
    "8ad63dd2b6c5e0a3a1cf38a11bb2e3174689a57a43ab198c76c8ac3737c18248",
]

# (lane, kind, what tells it apart) in causal order, as the seed has it.
STEPS = [
    ("evidence", "turn", "t1"),
    ("evidence", "sighting", "0.0"),
    ("evidence", "retrieval", "refund policy"),
    ("evidence", "call", "lookup_order"),
    ("evidence", "effect", "GET"),
    ("evidence", "refusal", "invalid UTF-8"),
    ("evidence", "turn", "t2"),
    ("evidence", "sighting", "2.0"),
    ("evidence", "sighting", "0.0"),
    ("evidence", "call", "issue_refund"),
    ("evidence", "effect", "POST"),
    ("evidence", "transition", "order"),
    ("evidence", "turn", "t3"),
    ("evidence", "sighting", "5.0"),
    ("evidence", "sighting", "0.0"),
    ("evidence", "evaluation", "correctness"),
    ("evidence", "gap", "no span after the last turn"),
]
WHAT = {
    "turn": "turn_id",
    "sighting": "position",
    "call": "tool",
    "effect": "operation",
    "retrieval": "query",
    "refusal": "reason",
    "transition": "name",
    "evaluation": "name",
    "gap": "gap",
    "ux": "ux_reasoning_summary",
}


def told(steps: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(step["lane"], step["kind"], step[WHAT[step["kind"]]]) for step in steps]


def test_a_timeline_is_in_causal_order_and_evidence_only(get: Get) -> None:
    answer = get("/sessions/s-refund/timeline")
    assert answer["session"]["session_id"] == "s-refund"
    assert told(answer["steps"]) == STEPS
    assert "I looked up" not in str(answer)


def test_a_timeline_counts_what_each_turn_shows_again(get: Get) -> None:
    turns = [s for s in get("/sessions/s-refund/timeline")["steps"] if s["kind"] == "turn"]
    assert [turn["sealed_again"] for turn in turns] == [0, 0, 1]


def test_a_timeline_with_ux_adds_summaries_marked_as_not_evidence(get: Get) -> None:
    steps = get("/sessions/s-refund/timeline", ux="true")["steps"]
    summaries = [step for step in steps if step["lane"] == "ux"]
    assert told(summaries) == [
        ("ux", "ux", "I looked up the order first."),
        ("ux", "ux", "I told the customer."),
    ]
    assert all(step["not_evidence"] is True for step in summaries)
    assert told([step for step in steps if step["lane"] == "evidence"]) == STEPS
    assert told(steps)[2][2] == "I looked up the order first."


def test_a_session(get: Get) -> None:
    answer = get("/sessions/s-refund")
    assert answer["basis"] == ["claimed", "response_id"]
    assert answer["turns"] == 3


@pytest.mark.parametrize("rest", ["", "/timeline"])
@pytest.mark.parametrize("alias", ["s-old", "s-old/2", "s-old%2F2"])
def test_a_merged_id_redirects(client: TestClient, alias: str, rest: str) -> None:
    answer = client.get(f"/api/v1/sessions/{alias}{rest}?ux=true", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == f"/api/v1/sessions/s-refund{rest}?ux=true"
    assert client.get(f"/api/v1/sessions/{alias}{rest}").status_code == 200


@pytest.mark.parametrize("name", ["no-such", "", "x/y", "'; DROP TABLE evidence.sessions; --"])
def test_an_unknown_session_is_not_found(client: TestClient, name: str) -> None:
    for rest in ("", "/timeline"):
        answer = client.get(f"/api/v1/sessions/{name}{rest}")
        assert answer.status_code == 404
        assert "no-such" not in answer.text


def test_a_content_by_its_commitment(get: Get) -> None:
    found = [get(f"/content/{commit}") for commit in COMMITS]
    assert [content["commit"] for content in found] == COMMITS
    assert [content["lane"] for content in found] == ["evidence", "ux"]
    assert [content["text"] for content in found] == [
        "long argument",
        "I looked up the order first.",
    ]


def test_an_unknown_commitment_is_not_found(client: TestClient) -> None:
    for commit in ("f" * 64, "short", "F" * 300):
        assert client.get(f"/api/v1/content/{commit}").status_code == 404
