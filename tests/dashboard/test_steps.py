"""Rows of the API as blocks: numbered in their order, saying what the rows say and no more."""

from typing import Any

import pytest

from facta.dashboard import steps
from facta.dashboard.steps import Block, Value, blocks, whole_rows

START = 1_700_000_000_000_000_000
SESSION = {"started_ns": START}


def evidence(kind: str, **fields: Any) -> dict[str, Any]:
    return {"lane": "evidence", "kind": kind, "turn_id": "t1", "at_ns": START, **fields}


def told(row: dict[str, Any]) -> Block:
    (block,) = blocks(SESSION, [row])
    return block


def test_turns_and_calls_are_numbered_the_same_with_and_without_the_ux_lane() -> None:
    sealed = [evidence("sighting", sealed_kind="k", position=f"0.{n}") for n in range(2)]
    other = evidence("sighting", turn_id="t2", sealed_kind="k")
    summary = {"lane": "ux", "kind": "ux", "ux_kind": "thinking", "ux_reasoning_summary": "so"}
    rows = [evidence("turn"), summary, *sealed, other, evidence("call")]
    found = blocks(SESSION, rows)
    places = [(block.kind, block.number, block.place) for block in found]
    assert places == [
        ("turn", 1, 1),
        ("ux", 0, 0),
        ("sighting", 0, 2),
        ("sighting", 0, 4),
        ("call", 2, 5),
    ]
    assert [block.evidence for block in found] == [True, False, True, True, True]
    assert found[1].values == [Value("summary", "so")]
    without = blocks(SESSION, [row for row in rows if row["lane"] == "evidence"])
    assert without == [block for block in found if block.evidence]


def test_a_row_of_no_known_lane_is_not_evidence() -> None:
    assert not told({"lane": "other", "kind": "turn"}).evidence
    assert not told({"kind": "turn"}).evidence


def test_a_row_of_no_known_kind_is_shown_as_other() -> None:
    block = told(evidence("**bold**", name="a name"))
    assert (block.kind, block.what, block.evidence) == ("other", "a name", True)


@pytest.mark.parametrize("basis", steps.BASES)
def test_an_effect_says_its_basis(basis: str) -> None:
    block = told(evidence("effect", operation="POST", target="x", status="200", basis=basis))
    assert block.what == "POST x → 200"
    assert block.rests[0].startswith(basis)
    assert block.flagged == (basis == "conflict")


def test_a_call_without_a_result_says_that_none_was_seen() -> None:
    unseen = told(evidence("call", tool="t", arguments="{}", result=None))
    assert unseen.facts == ["no result was seen"]
    assert unseen.values == [Value("arguments", "{}")]
    empty = told(evidence("call", tool="t", arguments="", result=""))
    assert empty.facts == []


def test_a_value_is_pointed_to_by_its_commitment_and_by_nothing_else() -> None:
    fields = {"arguments": "a", "result": "r"}
    row = evidence("call", **fields, arguments_commit="c" * 64, result_commit="../../../metrics")
    assert told(row).values == [
        Value("arguments", "a", f"/content/{'c' * 64}"),
        Value("result", "r"),
    ]


@pytest.mark.parametrize("kind", [*steps._DESCRIBED, "unknown"])
@pytest.mark.parametrize("value", [None, "", "x", 0, -1, 2**70, 1.5, True, [None, 1], {"a": []}])
def test_no_type_of_field_breaks_a_block(kind: str, value: object) -> None:
    named = dict.fromkeys(
        (
            *("request_model", "request_items", "context_kept", "observers", "input_tokens"),
            *("tool", "arguments", "result", "duration_ns", "alternatives", "flags", "conflict"),
            *("size", "sha256", "position", "document_ids", "score", "at_ns", "started_ns"),
            *("turn_id", "reason", "gap", "reported_cost", "store", "basis", "status"),
        ),
        value,
    )
    (block,) = blocks({"started_ns": value}, [{**evidence(kind), **named}])
    assert block.place == 1
    assert whole_rows(block)
