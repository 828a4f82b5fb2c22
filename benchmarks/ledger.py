"""How many observations a second the ledger acknowledges, and what they cost.

    python benchmarks/ledger.py [--rows 100000] [--group 500] [--content 1000] [--threads 1]

Each append holds `group` observations, each with a content of its own of `content` bytes, made
beforehand; the time is that of `Ledger.append` alone, all of it ending in an fsync.
"""

import argparse
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

from facta.ledger import Ledger
from facta.model.observation import Append, Object, Observation, commit_of

WORDS = b"the agent called a tool and the tool answered with rows of a table of orders "


def observation(number: int) -> Observation:
    body = b'{"model":"m-1","input":"%064x","output":"%064x","usage":{"input_tokens":%d}}' % (
        number,
        number + 1,
        number,
    )
    return Observation(
        "acme", "shop", "assistant", "tap", "turn", "genai", "scope", "1.0", "",
        f"{number // 10:032x}", f"{number:016x}", "", f"session-{number // 100}",
        number, number + 1, body * 3,
    )  # fmt: skip


def content(key: bytes, number: int, size: int) -> Object:
    data = (b"%d " % number + os.urandom(size // 8).hex().encode() + WORDS * (size // 77 + 1))[
        :size
    ]
    commit, salt, sha256 = commit_of(key, data)
    return Object(commit, "text", data, salt, sha256)


def appends(key: bytes, first: int, arguments: argparse.Namespace) -> list[Append]:
    return [
        Append(
            [observation(n) for n in range(at, at + arguments.group)],
            [content(key, n, arguments.content) for n in range(at, at + arguments.group)],
        )
        for at in range(first, first + arguments.rows // arguments.threads, arguments.group)
    ]


def send(ledger: Ledger, work: list[Append], latencies: list[float]) -> None:
    for append in work:
        begun = time.perf_counter()
        ledger.append(append)
        latencies.append(time.perf_counter() - begun)


def measure(ledger: Ledger, arguments: argparse.Namespace) -> None:
    key = ledger.tenant_key("acme")
    share = arguments.rows // arguments.threads
    work = [appends(key, n * share, arguments) for n in range(arguments.threads)]
    latencies: list[float] = []
    threads = [threading.Thread(target=send, args=(ledger, part, latencies)) for part in work]
    wall, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows, used = ledger.size, ledger.stats().bytes
    latencies.sort()
    print(f"rows {rows}  groups of {arguments.group}  content {arguments.content} B")
    print(f"observations/s {rows / wall:,.0f}  CPU us/observation {cpu / rows * 1e6:.1f}")
    print(
        f"append ms p50 {latencies[len(latencies) // 2] * 1e3:.1f}  "
        f"p99 {latencies[len(latencies) * 99 // 100] * 1e3:.1f}  max {latencies[-1] * 1e3:.1f}"
    )
    print(f"bytes/observation on disk {used / rows:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--group", type=int, default=500)
    parser.add_argument("--content", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=None, help="on the disk to measure")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(dir=arguments.directory))
    try:
        with Ledger.open(directory / "ledger") as ledger:
            measure(ledger, arguments)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
