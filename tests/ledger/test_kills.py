"""Processes killed with SIGKILL while they write: what was acknowledged is there, once."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.ledger.samples import all_rows, failings

from facta.ledger import Ledger

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]

KILLS = int(os.environ.get("LEDGER_KILLS", "200"))
PER_DIRECTORY = 10
POINTS = (
    "before_append",
    "after_append",
    "before_fsync",
    "after_fsync",
    "before_mark",
    "after_mark",
    "before_rotate",
    "after_rotate",
)
MOMENTS = ("moment", "moment", "moment", "moment of opening")
ROOT = Path(__file__).parents[2]


@dataclass
class Life:
    """A data directory over several kills."""

    directory: Path
    sent: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    leaves: list[str] = field(default_factory=list)
    day: int = 1


@pytest.fixture
def writers() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.ledger.kill_child"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def plan(life: Life, rng: random.Random) -> dict[str, object]:
    point = rng.choice((*POINTS, *MOMENTS))
    life.day += 1  # the writer begins a new segment with its first group
    again = sorted(life.sent - life.acknowledged)
    again += rng.sample(sorted(life.acknowledged), min(2, len(life.acknowledged)))
    return {
        "directory": str(life.directory),
        "point": point,
        "times": 1 if "rotate" in point else rng.randint(1, 12),
        "after_s": rng.uniform(0.001, 0.04),
        "first": max(life.sent, default=-1) + 1,
        "again": again,
        "day": life.day,
    }


def kill(process: "subprocess.Popen[str]", life: Life, rng: random.Random) -> tuple[str, int]:
    """Let one writer live and die; its point, and how many appends were not acknowledged."""
    order = plan(life, rng)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    begun: set[int] = set()
    answered: set[int] = set()
    for line in process.stdout:
        word, number = line.split()
        if word == "end":
            assert int(number) == -signal.SIGKILL
            break
        (begun if word == "s" else answered).add(int(number))
    life.sent |= begun
    life.acknowledged |= answered
    return str(order["point"]), len(begun - answered)


def check(life: Life) -> None:
    with Ledger.open(life.directory, min_free_bytes=0, clock=lambda: life.day) as ledger:
        assert failings(ledger, life.acknowledged, life.sent) == []
        leaves = [row.leaf for row in all_rows(ledger)]
    assert leaves[: len(life.leaves)] == life.leaves, "what was there once is there unaltered"
    life.leaves = leaves


def test_kills_lose_and_double_nothing(tmp_path: Path, writers: "subprocess.Popen[str]") -> None:
    rng = random.Random(20)
    points: Counter[str] = Counter()
    in_flight = 0
    life = Life(tmp_path / "0")
    for number in range(KILLS):
        if number % PER_DIRECTORY == 0:
            life = Life(tmp_path / str(number))
        point, unanswered = kill(writers, life, rng)
        check(life)
        points[point] += 1
        in_flight += unanswered > 0
    assert in_flight >= KILLS * 3 // 4
    if KILLS >= 200:
        assert all(points[point] >= 3 for point in (*POINTS, *MOMENTS)), points
