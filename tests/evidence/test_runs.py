"""Captured runs of real libraries: each comes out as its ground truth says, in every column."""

import pytest
from tests.evidence.ground_truth import Outcome, check, runs_that_are
from tests.evidence.harness import House, appends_of

RUNS = sorted(runs_that_are("read"))


@pytest.mark.parametrize("run", RUNS)
def test_a_run_comes_out_as_its_ground_truth_says(run: str) -> None:
    house = House()
    for append in appends_of(run):
        house.take(append)
    assert check(Outcome(run, house.final(), house.ledger)) == []


def test_most_runs_are_read() -> None:
    assert len(runs_that_are("read")) >= 41
