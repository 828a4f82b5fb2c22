"""What a long session and a large ledger cost: bytes and work, not seconds."""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.evidence.chdb import facta, settle
from tests.evidence.harness import House
from tests.evidence.making import call, chat, result, says, sent, thought, tool

from facta.ledger import Ledger
from facta.model.observation import Append

FULL = os.environ.get("FACTA_FULL") == "1"


def _session(turns: int, name: str = "s") -> Iterator[Append]:
    """A session turn by turn: each request carries all that went before it, and each is a trace."""
    history = [says("user", f"a task named {name}")]
    for n in range(turns):
        call_id = f"call_{hashlib.sha256(f'{name} {n}'.encode()).hexdigest()[:20]}"
        asks = says("assistant", thought(f"what to do at {n} of {name}"), call(call_id, {"n": n}))
        answer = f"step {n} of {name} " + "with a result of some length " * 8
        yield sent(
            chat(
                "model", list(history), [asks], trace=f"{name}{n}", response_id=f"{name}{n}", at=n
            ),
            tool(
                "run", "look", trace=f"{name}{n}", parent="model", id=call_id, result=answer, at=n
            ),
        )
        history += [asks, says("tool", result(call_id, answer))]


def _bytes(tables: dict[str, list[Any]]) -> dict[str, int]:
    return {table: len(orjson.dumps(rows)) for table, rows in tables.items()}


@dataclass
class Costs:
    """Bytes of a session's ledger, its objects, and its resolved rows."""

    ledger: int
    objects: int
    rows: int


def _costs(house: House, ledger: Ledger) -> Costs:
    objects = sum(len(obj.data) for obj in house.ledger.kept.values())
    return Costs(ledger.stats().bytes, objects, sum(_bytes(house.final()).values()))


def test_a_session_of_twice_the_turns_takes_twice_the_bytes(tmp_path: Path) -> None:
    house = House()
    costs: list[Costs] = []
    with Ledger.open(tmp_path, min_free_bytes=0) as ledger:
        for turn, append in enumerate(_session(400), start=1):
            ledger.append(append)
            house.take(append)
            if turn in (200, 400):
                costs.append(_costs(house, ledger))
                assert house.final()["evidence.sessions"][0]["turns"] == turn
    few, many = costs
    assert many.objects <= 2.05 * few.objects
    assert many.rows <= 2.05 * few.rows
    assert many.ledger <= 2.2 * few.ledger


def test_each_turn_costs_the_same_rows() -> None:
    """The context is kept as a delta: as many rows for the hundredth turn as for the tenth."""
    house = House()
    for append in _session(100):
        house.take(append)
    rows = Counter(row["turn_id"] for row in house.final()["evidence.context"])
    assert max(rows.values()) <= 4
    assert len(rows) == 100


@pytest.mark.full
def test_what_the_store_keeps_on_disk_grows_likewise(tmp_path: Path) -> None:
    """One store after the other, since a process has one at a time; merged before it is measured."""
    sizes = []
    for turns in (200, 400):
        with facta(tmp_path / str(turns)) as home:
            for append in _session(turns):
                home.ledger.append(append)
                home.projector.wake()
            settle(home)
            sql = (
                "SELECT sum(bytes_on_disk) AS n FROM system.parts "
                "WHERE active AND database IN ('evidence', 'ux')"
            )
            sizes.append(int(home.store.query(sql)[0]["n"]) + home.ledger.stats().bytes)
    assert sizes[1] <= 2.2 * sizes[0]


@dataclass
class Work:
    """What resolving has done so far: objects and rows read, statements run, rows written."""

    house: House
    statements: int = 0

    def __post_init__(self) -> None:
        def count(*_: object) -> bool:
            self.statements += 1
            return True

        self.house.resolver._state._db.exec_trace = count

    @property
    def done(self) -> dict[str, int]:
        ledger, shelf = self.house.ledger, self.house.shelf
        return {"read": ledger.reads, "statements": self.statements, "written": shelf.written}


def _spread(sessions: range) -> Iterator[Append]:
    for n in sessions:
        yield from _session(5, f"session {n} ")


def test_a_new_span_costs_the_same_whatever_is_there_already() -> None:
    """Sessions of ten spans, resolved as they come; the last of them cost what the first did."""
    total, part = (2000, 200) if FULL else (300, 30)
    work = Work(House())
    costs: list[dict[str, int]] = []
    for begin in (*range(0, total, part),):
        before = work.done
        for number, append in enumerate(_spread(range(begin, begin + part))):
            work.house.take(append)
            if number % 50 == 0:
                work.house.flush()
        work.house.flush()
        costs.append({name: amount - before[name] for name, amount in work.done.items()})
    assert len(work.house.final()["evidence.sessions"]) == total
    for name, first in costs[0].items():
        assert costs[-1][name] <= 1.2 * first, (
            f"{name}: {first} at first, {costs[-1][name]} at last"
        )


def test_the_resolver_looks_up_by_index_only() -> None:
    """Statements that it runs for each observation or cluster never scan a table."""
    house = House()
    state = house.resolver._state
    seen: set[str] = set()

    def note(_: object, sql: str, __: object) -> bool:
        seen.add(sql)
        return True

    state._db.exec_trace = note
    for append in _spread(range(3)):
        house.take(append)
        house.flush()
    state._db.exec_trace = None
    plans = {sql: _plan(house, sql) for sql in seen if sql.split()[0] in _LOOKS}
    assert len(plans) > 8
    scans = {sql: plan for sql, plan in plans.items() if "SCAN" in plan and "dirty" not in sql}
    assert scans == {}


_LOOKS = {"SELECT", "DELETE", "UPDATE", "INSERT"}


def _plan(house: House, sql: str) -> str:
    values = (0,) * sql.count("?")
    rows = house.resolver._state._db.execute(f"EXPLAIN QUERY PLAN {sql}", values)
    return " ".join(row[3] for row in rows)


def test_a_session_that_grows_is_not_read_again() -> None:
    """Each link and item of it is read once, however often the session is resolved."""
    house = House()
    for append in _session(60):
        house.take(append)
        house.flush()
    assert house.ledger.reads <= 1.2 * len(house.ledger.kept)


def test_a_session_that_grows_writes_what_is_new() -> None:
    """Rows that did not change are not written again (the session's own row changes each time)."""
    house = House()
    for append in _session(60):
        house.take(append)
        house.flush()
    standing = sum(len(rows) for rows in house.shelf.tables.values())
    assert house.shelf.written <= 2 * standing
