"""A process that forks writers for the kill test: started once, so that a writer costs no imports.

Reads one JSON line per writer from standard input, forks it, waits for its death, and prints what
became of it. The writer prints `s N` before and `a N` after it appends batch N, and kills itself
with SIGKILL at a named point or at a moment.
"""

import itertools
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ledger.samples import TENANT, batch

from facta.ledger import Ledger

THREADS = 3
DAY_NS = 86_400 * 10**9


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def say(text: str) -> None:
    # One short write to a pipe is whole or not at all.
    os.write(1, f"{text}\n".encode())


def dying_at(point: str, times: int) -> Callable[[str], None]:
    """A function for named points that kills at the n-th time of one."""
    left = times

    def at(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if left == 0:
                die()

    return at


def send(ledger: Ledger, numbers: list[int]) -> None:
    for number in numbers:
        say(f"s {number}")
        ledger.append(batch(number, ledger.tenant_key(TENANT)))
        say(f"a {number}")


def write(plan: dict[str, Any]) -> None:
    """Append from several threads until death comes."""
    if plan["point"] == "moment of opening":
        threading.Timer(plan["after_s"], die).start()
    first = plan["first"]
    calls = itertools.count(plan["day"] * 100)
    ledger = Ledger.open(
        Path(plan["directory"]),
        min_free_bytes=0,
        clock=lambda: next(calls) // 100 * DAY_NS,  # a new segment after each 100 looks at it
        on_point=dying_at(plan["point"], plan["times"]),
    )
    again: list[int] = plan["again"]
    threads = [
        threading.Thread(
            target=send,
            args=(ledger, [*again[at::THREADS], *range(first + at, first + 3_000, THREADS)]),
        )
        for at in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    if plan["point"] == "moment":
        threading.Timer(plan["after_s"], die).start()
    while any(thread.is_alive() for thread in threads):
        if ledger.projected < ledger.size:
            ledger.mark_projected(ledger.size)
        os.sched_yield()
    for thread in threads:
        thread.join()


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            write(json.loads(line))
            os._exit(1)
        _, status = os.waitpid(child, 0)
        say(f"end {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
