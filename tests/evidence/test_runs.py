"""Captured runs of real libraries: each comes out as its ground truth says, in every column."""

import pytest
from tests.evidence.ground_truth import Outcome, check, half
from tests.evidence.harness import House, appends_of

# Of the second half, those that the readers of the first half already get right.
SECOND = [
    "openinference-agents",
    "openinference-litellm-anthropic",
    "openinference-litellm-chat",
    "openinference-openai-chat-deepseek",
    "openlit-anthropic",
    "openlit-openai-chat",
    "otel-langchain-openai",
    "otel-openai-agents",
    "otel-openai-chat-deepseek",
    "otel-openai-v2-chat",
    "strands-anthropic",
    "strands-chat",
    "strands-responses",
    "traceloop-openai-chat-deepseek",
]
RUNS = sorted(half("first half")) + SECOND


@pytest.mark.parametrize("run", RUNS)
def test_a_run_comes_out_as_its_ground_truth_says(run: str) -> None:
    house = House()
    for append in appends_of(run):
        house.take(append)
    assert check(Outcome(run, house.final(), house.ledger)) == []


def test_there_are_runs_of_the_first_half() -> None:
    assert len(half("first half")) >= 25
