"""The resolved tables are the same whatever the order and number of arrivals."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.evidence.chdb import facta, rows_of, send, settle
from tests.evidence.ground_truth import runs_that_are, sessions_of
from tests.evidence.harness import (
    RUNS,
    House,
    append_of,
    appends_of,
    batches_of,
    exact,
    from_scratch,
    resolved_only,
    shuffled,
    single,
    tables_of,
    with_service,
)

from facta.app.service import Facta
from facta.model.identity import Identity
from facta.model.observation import Append
from facta.model.records import Batch

SEEDS = range(100 if os.environ.get("FACTA_FULL") == "1" else 5)
RIGHT = {run for run in runs_that_are("read") if sessions_of(run) is not None}


def _live(appends: list[Append], every: int) -> bytes:
    """The tables that come of these appends where resolving went on between them."""
    house = House()
    for number, append in enumerate(appends):
        house.take(append)
        if number % every == 0:
            house.flush()
    return exact(house.final())


@pytest.mark.parametrize("run", RUNS)
def test_a_run_in_any_order(run: str) -> None:
    sent = appends_of(run)
    at_once = tables_of(sent)
    assert exact(resolved_only(at_once)) == exact(from_scratch(sent))
    want = exact(at_once)
    assert _live(sent, 1) == want, "in order"
    assert _live(sent + sent, 1) == want, "twice"
    assert _live([a for append in sent for a in (append, append)], 1) == want, "each repeated"
    assert _live(single(sent), 3) == want, "one at a time"
    assert _live(single(sent)[::-1], 2) == want, "reversed"
    for seed in SEEDS:
        assert _live(shuffled(sent, seed), 5 + seed % 7) == want, f"shuffled, seed {seed}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facta]:
    with facta(tmp_path_factory.mktemp("order")) as opened:
        yield opened


def test_one_permutation_a_run_through_intake_ledger_and_store(home: Facta) -> None:
    """Record by record from the last to the first, each sent again, every run a tenant."""
    for run in RUNS:
        identity = Identity(run, "sender")
        for batch in reversed(batches_of(run)):
            for record in reversed(batch.records):
                send(home, [Batch([record]), Batch([record])], identity)
    settle(home)
    for run in RUNS:
        identity = Identity(run, "sender")
        want = tables_of(appends_of(run, identity, home.ledger.tenant_key(run)))
        assert exact(rows_of(home, run)) == exact(want), run


def test_all_runs_in_one_collector_keep_their_counts(home: Facta) -> None:
    identity = Identity("all", "sender")
    appends = []
    key = home.ledger.tenant_key("all")
    for run in RUNS:
        batches = with_service(batches_of(run), run)
        appends += [append_of(batch.records, identity, key) for batch in batches]
        send(home, batches, identity)
    settle(home)
    tables = rows_of(home, "all")
    assert exact(tables) == exact(tables_of(appends))
    for run in sorted(RUNS):
        mine = [s for s in tables["evidence.sessions"] if s["service"] == run]
        alone = tables_of(appends_of(run))
        assert len(mine) == len(alone.get("evidence.sessions", []))
        for count in ("turns", "calls", "effects", "sealed"):
            want = sum(s[count] for s in alone.get("evidence.sessions", []))
            assert sum(s[count] for s in mine) == want, f"{run}: {count}"
        if run in RIGHT:
            assert len(mine) == sessions_of(run)


def test_a_resolver_that_begins_again_comes_to_the_same(tmp_path: Path) -> None:
    """Closed between any two requests, the resolver goes on where it was."""
    from facta.resolve.engine import Resolver

    sent = single(appends_of("claude-code"))
    house = House()
    for number, append in enumerate(sent):
        house.resolver.close()
        house.resolver = Resolver(tmp_path / "resolve.db", house.ledger, house.shelf)
        house.take(append)
        if number % 4 == 0:
            house.flush()
    assert exact(house.final()) == exact(tables_of(sent))
