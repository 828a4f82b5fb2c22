"""A time that no row can hold costs itself, never its span."""

import pytest

from facta.conventions import read
from facta.ledger.interning import LATEST_NS, Interning
from facta.model.facts import Aside, Turn
from facta.model.identity import Identity
from facta.model.records import Record, Scope, Value
from facta.resolve.effects import compatible
from facta.sealing import seal

CALL = [("gen_ai.operation.name", "execute_tool"), ("gen_ai.tool.call.arguments", "{}")]


def test_a_time_beyond_2262_is_refused_alone() -> None:
    interning = Interning(Identity("default", "local"), b"k" * 32)
    record = Record(
        "span", Scope(), "a" * 32, "b" * 16, start_ns=5, end_ns=2**64 - 1, attributes=[*CALL]
    )
    interning.add(record, read(seal(record)))
    assert [(o.kind, o.start_ns, o.end_ns) for o in interning.observations] == [
        ("call", 5, 0),
        ("refusal", 5, 0),
    ]
    assert b"a time beyond the year 2262" in interning.observations[1].body


def test_the_last_time_that_a_row_can_hold_is_kept() -> None:
    interning = Interning(Identity("default", "local"), b"k" * 32)
    record = Record(
        "span", Scope(), "a" * 32, "b" * 16, start_ns=5, end_ns=LATEST_NS, attributes=[*CALL]
    )
    interning.add(record, read(seal(record)))
    assert [(o.kind, o.end_ns) for o in interning.observations] == [("call", LATEST_NS)]


def test_numbers_that_no_column_holds_cost_themselves_alone() -> None:
    interning = Interning(Identity("default", "local"), b"k" * 32)
    sighting = '[{"kind":"x","size":-1},{"kind":"x","size":1e30},{"kind":"x","size":7}]'
    attributes: list[tuple[str, Value]] = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.usage.input_tokens", -5),
        ("gen_ai.usage.output_tokens", "9" * 400),
        ("facta.sealed.sightings", sighting),
    ]
    record = Record(
        "span", Scope(), "a" * 32, "b" * 16, start_ns=9, end_ns=5, attributes=attributes
    )
    reading = read(seal(record))
    turn, aside = (fact.body for fact in reading.facts)
    assert isinstance(turn, Turn)
    assert isinstance(aside, Aside)
    assert (turn.usage, [e.part.sealed[0].size for e in aside.entries]) == ({}, [7])
    interning.add(record, reading)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("200", "402", False),
        ("²", "200", True),
        ("9" * 5000, "ok", True),
        ("refunded", "ok", True),
    ],
)
def test_statuses_are_compared_whatever_they_are(one: str, other: str, both: bool) -> None:
    assert compatible(one, other) is both
