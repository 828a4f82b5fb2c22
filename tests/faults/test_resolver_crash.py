"""A crash between the rows of one flush: what stands in the store afterwards has an owner."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.evidence.harness import House, Shelf, Tables, append_of
from tests.faults.payloads import attribute, body

from facta.intake import protobuf
from facta.intake.limits import Limits
from facta.model.observation import Append
from facta.resolve.engine import Resolver

pytestmark = pytest.mark.fault


class Crash(BaseException):
    """The process is gone: nothing of what comes after is done."""


class DyingShelf(Shelf):
    """A store in memory that outlives its writers; the n-th insert from now kills one.

    Every other time the rows of that insert are there, as they may be when a writer dies in it.
    """

    left = 0
    kept = False

    def insert(self, table: str, rows: list[dict[str, Any]]) -> None:
        self.left -= 1
        if self.left == 0 and not self.kept:
            raise Crash
        super().insert(table, rows)
        if self.left == 0:
            raise Crash


def sent(number: int, *, conversation: str = "", previous: str = "") -> Append:
    """One request: without a conversation it is a session of its own, linked only by `previous`."""
    request = ExportTraceServiceRequest.FromString(body(number))
    for span in request.resource_spans[0].scope_spans[0].spans:
        kept = [a for a in span.attributes if a.key != "gen_ai.conversation.id"]
        del span.attributes[:]
        span.attributes.extend(kept)
        if conversation:
            span.attributes.append(attribute("gen_ai.conversation.id", conversation))
    return append_of(protobuf.decode(request.SerializeToString(), "traces", Limits()).records)


def claimed_later(number: int, conversation: str) -> Append:
    """A span above nothing, in the trace of a request, that says which session that is of."""
    return sent(number, conversation=conversation)


def story() -> list[list[Append]]:
    """Two sessions that turn out to be one: what comes first, and what joins them."""
    return [[sent(1), sent(2)], [claimed_later(1, "one"), claimed_later(2, "one")]]


def at_once() -> Tables:
    house = House()
    for appends in story():
        for append in appends:
            house.take(append)
    return house.final()


def restarted(house: House, path: Path) -> Resolver:
    """The resolver of a new process: what it remembers is what its file has."""
    return Resolver(path, house.ledger, house.shelf)


@pytest.mark.parametrize("kept", [False, True], ids=["before the insert", "after it"])
def test_a_crash_at_any_insert_leaves_no_row_without_an_owner(tmp_path: Path, kept: bool) -> None:
    want = at_once()
    crashes = 0
    for place in range(1, 60):
        shelf = DyingShelf()
        shelf.kept = kept
        house = House()
        house.shelf = shelf
        path = tmp_path / f"{kept}-{place}.db"
        house.resolver = restarted(house, path)
        crashed = False
        shelf.left = place
        for appends in story():
            for append in appends:
                house.take(append)
            try:
                house.flush()
            except Crash:
                crashed = True
                # The connection is not closed: a killed process does not close anything.
                house.resolver = restarted(house, path)
        assert house.final() == want, f"crash at insert {place}"
        crashes += crashed
        if not crashed:
            break
    assert crashes > 10


def test_two_sessions_were_there_before_they_became_one() -> None:
    house = House()
    first, second = story()
    for append in first:
        house.take(append)
    assert len(house.final()["evidence.sessions"]) == 2
    for append in second:
        house.take(append)
    assert len(house.final()["evidence.sessions"]) == 1


def test_without_the_note_before_the_insert_rows_are_left_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note is what does it."""
    monkeypatch.setattr(Resolver, "_intend", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_crash_at_any_insert_leaves_no_row_without_an_owner(tmp_path, kept=True)


def test_an_error_of_the_file_leaves_no_transaction_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House()
    house.resolver = restarted(house, tmp_path / "resolve.db")
    state = house.resolver._state
    for name in ("set_number", "note", "clean"):
        with monkeypatch.context() as patch:

            def full(*_: Any) -> None:
                raise apsw.FullError

            patch.setattr(state, name, full)
            for append in (sent(1), sent(2)):
                try:
                    house.take(append)
                    house.flush()
                except apsw.FullError:
                    continue
    house.resolver.take(house.ledger.rows(-1, 100))
    assert len(house.final()["evidence.turns"]) == 2
