"""One lane for each text, whatever it is labelled, whenever it is known, wherever it shows again."""

import hashlib
import json

import pytest
from tests.evidence.harness import KEY, House, Tables, exact, tables_of
from tests.evidence.making import call, chat, resolved, result, says, sent, thought

from facta.model.observation import Append, commit_of

SUMMARY = "The user wants order 7 checked, so it is looked up first."
C1 = "call_8fKq3LmZ0aBcDeFgHiJk"
USER = says("user", "u")


def _first(*, labelled: bool = True) -> Append:
    told = thought(SUMMARY) if labelled else SUMMARY
    asks = says("assistant", told, call(C1, {"order": 7}))
    return sent(chat("a", [USER], [asks], trace="1", response_id="r1"))


def _second(text: str) -> Append:
    """The same summary carried back as plain text, beside the call."""
    history = [
        USER,
        says("assistant", text, call(C1, {"order": 7})),
        says("tool", result(C1, "found")),
    ]
    done = [says("assistant", "done")]
    return sent(chat("b", history, done, trace="2", response_id="r2", at=5))


def _lane(tables: Tables, name: str) -> str:
    return json.dumps({t: rows for t, rows in tables.items() if t.startswith(name)})


@pytest.mark.parametrize("around", ["{}", "<think>{}</think> Then this.", "Before: {}"])
def test_a_summary_carried_back_as_text_stays_in_the_ux_lane(around: str) -> None:
    sent_ = [_first(), _second(around.format(SUMMARY))]
    tables = tables_of(sent_)
    assert SUMMARY not in _lane(tables, "evidence.")
    assert [row["ux_reasoning_summary"] for row in tables["ux.summaries"]] == [SUMMARY]
    for part in around.split("{}"):
        assert json.dumps(part)[1:-1] in _lane(tables, "evidence."), "what stands around it"


def test_a_text_that_turns_out_to_be_a_summary_moves() -> None:
    """Seen as text first, and known as a summary only later: as if it had been known at once."""
    plain, known = _second(SUMMARY), _first()
    house = House()
    house.take(plain)
    before = house.final()
    assert SUMMARY in _lane(before, "evidence.")
    house.take(known)
    assert exact(house.final()) == exact(tables_of([known, plain]))
    assert SUMMARY not in _lane(house.final(), "evidence.")


def test_a_text_of_another_session_is_a_summary_there_and_moves_in_the_content() -> None:
    """Contents are kept once, so one session's summary is no other session's message text."""
    other = sent(
        chat("x", [USER], [says("assistant", SUMMARY)], trace="9", response_id="r9", at=90)
    )
    for order in ([other, _first()], [_first(), other]):
        house = House()
        for append in order:
            house.take(append)
            house.flush()
        tables = house.final()
        assert len(tables["evidence.sessions"]) == 2
        kept = [row["text"] for row in tables["ux.content"]]
        assert kept == [SUMMARY]
        assert SUMMARY not in [row["text"] for row in tables["evidence.content"]]


def test_a_result_that_repeats_a_summary_stays_evidence() -> None:
    """What a tool returned was done, whoever says the same."""
    history = [USER, says("assistant", call(C1, {})), says("tool", result(C1, SUMMARY))]
    back = sent(chat("b", history, [says("assistant", ".")], trace="2", response_id="r2", at=5))
    for order in ([_first(), back], [back, _first()]):
        tables = resolved(*order).tables
        (made,) = tables["evidence.tool_calls"]
        assert made["result"] == SUMMARY
        assert SUMMARY in [row["text"] for row in tables["evidence.content"]]
        assert SUMMARY in [row["text"] for row in tables["ux.content"]]


def test_a_short_reasoning_text_takes_no_answer_with_it() -> None:
    asks = says("assistant", thought("ok"), "ok")
    tables = tables_of([sent(chat("a", [USER], [asks], trace="1", response_id="r1"))])
    parts = json.loads(
        next(r for r in tables["evidence.context"] if r["direction"] == "response")["parts"]
    )
    assert [part.get("text") for part in parts] == [None, "ok"]


def test_a_content_that_no_row_names_any_more_is_taken_out() -> None:
    """A rewritten preference (other instructions win) leaves nothing behind."""
    spans = [
        chat("a", [USER], [says("assistant", "x")], trace="1", response_id="r1", at=at, **more)
        for at, more in (
            (2, {"gen_ai__system_instructions": json.dumps([{"type": "text", "content": "late"}])}),
            (
                1,
                {"gen_ai__system_instructions": json.dumps([{"type": "text", "content": "early"}])},
            ),
        )
    ]
    late, early = (sent(one) for one in spans)
    assert exact(resolved(late, early).tables) == exact(resolved(early, late).tables)
    texts = [row["text"] for row in resolved(late, early).tables["evidence.content"]]
    assert "early" in texts
    assert "late" not in texts


def test_a_commitment_is_salted_with_the_tenants_key() -> None:
    data = SUMMARY.encode()
    commit, salt, plain = commit_of(KEY, data)
    assert plain == hashlib.sha256(data).hexdigest()
    assert commit != plain
    assert commit == hashlib.sha256(bytes.fromhex(salt) + data).hexdigest()
    other = commit_of(b"o" * 32, data)
    assert (other[0], other[1]) != (commit, salt)
    assert other[2] == plain
    assert len({commit_of(KEY, bytes([n]))[1] for n in range(20)}) == 20
