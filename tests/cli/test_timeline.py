"""The timeline as lines: what a person reads, also when the texts are hostile."""

import copy
from pathlib import Path
from typing import Any

import pytest

from facta.api import LedgerStatus, create_app
from facta.cli.timeline import lines
from facta.settings import Settings
from facta.store.embedded import EmbeddedStore

GOLDEN = Path(__file__).parents[1] / "data/store/timeline.txt"


@pytest.fixture(scope="module")
def answer(data: Path) -> dict[str, Any]:
    from fastapi.testclient import TestClient

    store = EmbeddedStore.at(data)
    try:
        status = LedgerStatus(0, 0, resolved=True)
        client = TestClient(create_app(store, lambda: status, None, Settings()))
        found: dict[str, Any] = client.get("/api/v1/sessions/s-refund/timeline?ux=true").json()
        return found
    finally:
        store.close()


def evidence(answer: dict[str, Any]) -> dict[str, Any]:
    steps = [step for step in answer["steps"] if step["lane"] == "evidence"]
    return {"session": answer["session"], "steps": steps}


def test_a_timeline_reads_as_it_should(answer: dict[str, Any]) -> None:
    """Rewrite tests/data/store/timeline.txt when the change is meant."""
    assert "\n".join(lines(answer)) + "\n" == GOLDEN.read_text()


def test_without_ux_there_is_no_summary(answer: dict[str, Any]) -> None:
    shown = "\n".join(lines(evidence(answer)))
    assert "NOT EVIDENCE" not in shown
    assert "looked up the order" not in shown
    assert shown.splitlines()[-1].startswith("why       not recorded. Summaries are not evidence")
    asked = list(lines(evidence(answer), ux=True))
    assert asked[-1] == "why       not recorded, and no summary was kept either."


def test_summaries_stand_under_their_mark_and_after_all_evidence(answer: dict[str, Any]) -> None:
    shown = list(lines(answer))
    mark = next(place for place, text in enumerate(shown) if "NOT EVIDENCE" in text)
    assert [text for text in shown[:mark] if "I looked up" in text] == []
    assert shown[mark + 1].endswith("provider_summary: I looked up the order first.")
    assert len(shown) == mark + 3


HOSTILE = "\x1b[2J\x1b]8;;http://127.0.0.1/\x07\r\n\u202e\x9b31m\x00<script>" + "x" * 5000


def poisoned(value: Any, key: str = "") -> Any:
    """`value` with every text replaced by a hostile one, but what the renderer branches on."""
    if key in {"lane", "kind", "basis", "direction"}:
        return value
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [poisoned(member) for member in value]
    if isinstance(value, dict):
        return {name: poisoned(member, name) for name, member in value.items()}
    return value


def test_hostile_texts_neither_drive_a_terminal_nor_break_lines(answer: dict[str, Any]) -> None:
    shown = list(lines(poisoned(copy.deepcopy(answer))))
    assert len(shown) == len(list(lines(answer))) + 5  # each turn and each call has an error now
    for text in shown:
        assert not set(text) & {"\x1b", "\r", "\n", "\u202e", "\x9b", "\0", "\x07"}
        assert len(text) < 2500


def test_a_conflict_and_what_was_not_seen_are_said(answer: dict[str, Any]) -> None:
    changed = copy.deepcopy(evidence(answer))
    for step in changed["steps"]:
        if step["kind"] == "call":
            step |= {"conflict": True, "result": None, "status": ""}
        if step["kind"] == "effect":
            step["basis"] = "conflict"
    shown = "\n".join(lines(changed))
    assert shown.count("CONFLICT  the sources disagree") == 2
    assert shown.count("result    not seen") == 2
    assert shown.count("CONFLICT: the sources disagree") == 2
