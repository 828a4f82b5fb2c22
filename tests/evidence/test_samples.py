"""Twenty samples of one prompt are twenty sessions, whatever they have in common."""

from collections.abc import Callable

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.evidence.making import (
    call,
    chat,
    resolved,
    result,
    says,
    sent,
    tool,
)

PROMPT = [says("user", "Solve the riddle.")]
SAMPLES = 20


def _sample(n: int, trace: str, response_id: str, answer: str) -> list[Span]:
    return [
        chat(
            f"m{n}", PROMPT, [says("assistant", answer)], trace=trace, response_id=response_id, at=n
        )
    ]


def _with_tool(n: int, trace: str, response_id: str, answer: str) -> list[Span]:
    """Two requests; the call's id is the same in all samples."""
    asks = says("assistant", call("call_0", {"n": n if answer != "same" else 0}))
    told = [*PROMPT, asks, says("tool", result("call_0", f"found {answer}"))]
    first = f"{response_id}a" if response_id else ""
    second = f"{response_id}b" if response_id else ""
    return [
        chat(f"a{n}", PROMPT, [asks], trace=trace, response_id=first, at=n),
        tool(f"t{n}", "look", trace=trace, id="call_0", result=f"found {answer}", at=n + 0.1),
        chat(
            f"b{n}",
            told,
            [says("assistant", answer)],
            trace=trace,
            response_id=second,
            at=n + 0.5,
        ),
    ]


def _samples(
    make: Callable[[int, str, str, str], list[Span]],
    *,
    ids: bool = True,
    trace: bool = False,
    same: bool = False,
) -> list[Span]:
    return [
        s
        for n in range(SAMPLES)
        for s in make(
            n,
            "shared" if trace else f"trace {n}",
            f"resp_{n}" if ids else "",
            "same" if same else f"answer {n}",
        )
    ]


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
@pytest.mark.parametrize("trace", [True, False], ids=["one trace", "traces"])
@pytest.mark.parametrize("same", [True, False], ids=["same answer", "answers"])
def test_twenty_samples_of_one_prompt_are_twenty_sessions(
    *, ids: bool, trace: bool, same: bool
) -> None:
    seen = resolved(sent(*_samples(_sample, ids=ids, trace=trace, same=same)))
    assert [len(turns) for turns in seen.sessions.values()] == [1] * SAMPLES
    assert {s["turns"] for s in seen.rows("sessions")} == {1}


@pytest.mark.parametrize("ids", [True, False], ids=["ids", "no ids"])
def test_samples_with_tools_keep_their_second_turns(*, ids: bool) -> None:
    """Distinct arguments and answers tell the follow-ups apart, though every call is call_0."""
    seen = resolved(sent(*_samples(_with_tool, ids=ids)))
    assert [len(turns) for turns in seen.sessions.values()] == [2] * SAMPLES
    calls = seen.rows("tool_calls")
    assert len(calls) == SAMPLES
    assert len({c["session_id"] for c in calls}) == SAMPLES
    for c in calls:
        number = c["arguments"].split(":")[1].strip(" }")
        assert c["result"] == f"found answer {number}"


def test_samples_with_equal_tools_in_traces_of_their_own() -> None:
    """Where even arguments and results agree, the trace tells whose follow-up it is."""
    seen = resolved(sent(*_samples(_with_tool, same=True)))
    assert [len(turns) for turns in seen.sessions.values()] == [2] * SAMPLES
    assert len(seen.rows("tool_calls")) == SAMPLES


def test_samples_that_cannot_be_told_apart_are_not_mixed() -> None:
    """One trace, equal calls and results: twenty first turns, and no follow-up is guessed."""
    seen = resolved(sent(*_samples(_with_tool, same=True, trace=True)))
    firsts = [turns for turns in seen.sessions.values() if any(t.endswith("a") for t in turns)]
    assert [turns for turns in firsts if len(turns) > 2] == []
    assert len(firsts) == SAMPLES
