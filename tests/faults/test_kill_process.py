"""The whole collector killed with SIGKILL under load: nothing acknowledged is lost, nothing doubled."""

import os
import random
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.faults.lives import Life, Nursery, Senders
from tests.faults.payloads import body, trace_of

pytestmark = [pytest.mark.fault, pytest.mark.timeout(900)]

POINTS = (
    "before_append",
    "after_append",
    "before_fsync",
    "after_fsync",
    "before_answer",
    "after_answer",
    "before_insert",
    "after_insert",
    "before_mark",
    "after_mark",
)
MOMENTS = 10
ROUNDS = 10 if os.environ.get("FACTA_FULL") == "1" else 1
THREADS = 4
OBSERVATIONS = 2  # of one request
# Inserts and marks come in large batches: most of a life's are over after the first few.
_TIMES = {"insert": (2, 14), "mark": (1, 3)}


@dataclass
class World:
    """What has been sent to one data directory over all lives."""

    data: Path
    sent: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)


def live(nursery: Nursery, world: World, rng: random.Random, point: str) -> int:
    """Start, check what is there, send until death; how many requests were not answered."""
    low, high = _TIMES.get(point.rpartition("_")[2], (3, 40))
    times = rng.randint(low, high)
    # Some of those that die of the store do so while they catch up with what the last one left.
    early = "insert" in point and rng.random() < 0.5
    life = nursery.start(world.data, point=point, times=times, armed=early)
    if not early:
        check(life, world, resolved=rng.random() < 0.4)
        life.json("/arm")
    senders = Senders(life)
    unanswered = sorted(world.sent - world.acknowledged)
    first = max(world.sent, default=-1) + 1
    numbers = [*unanswered, *range(first, first + 800)]
    share = [[(n, body(n)) for n in numbers[at::THREADS]] for at in range(THREADS)]
    senders.start(share)
    if not point:
        senders.wait_for(rng.randint(1, 150))
        os.kill(life.pid, signal.SIGKILL)
    assert life.ended() == -signal.SIGKILL
    senders.join()
    world.sent |= senders.sent
    world.acknowledged |= senders.acknowledged
    return len(senders.sent - senders.acknowledged)


def check(life: Life, world: World, *, resolved: bool) -> None:
    told = life.json("/check?resolved" if resolved else "/check")
    assert told["found"] == []
    traces: dict[str, int] = told["traces"]
    assert {trace_of(n) for n in world.acknowledged} <= traces.keys(), "acknowledged and lost"
    assert traces.keys() <= {trace_of(n) for n in world.sent}
    assert set(traces.values()) <= {OBSERVATIONS}, "a request is there whole, once, or not at all"
    assert world.kept <= traces.keys(), "what was there once is there"
    world.kept = set(traces)


def test_kills_lose_and_double_nothing(tmp_path: Path, nursery: Nursery) -> None:
    rng = random.Random(30)
    plan = [*POINTS, *[""] * MOMENTS] * ROUNDS
    rng.shuffle(plan)
    world = World(tmp_path / "data")
    in_flight: Counter[str] = Counter()
    for number, point in enumerate(plan):
        if number % 40 == 39:
            world = World(tmp_path / f"data-{number}")
        in_flight[point] += live(nursery, world, rng, point) > 0
    last = nursery.start(world.data)
    check(last, world, resolved=True)
    assert last.end(signal.SIGTERM) == 0
    assert in_flight.total() >= 0.75 * len(plan), in_flight
    assert len(world.acknowledged) > 100
