"""A collector as a process of its own, seen from outside."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from tests.faults.payloads import PROTOBUF

ROOT = Path(__file__).parents[2]
SECONDS = 100


class Nursery:
    """Starts collectors, one at a time, by the forking process of child.py."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.child"],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: queue.Queue[list[str]] = queue.Queue()
        self.last: Life | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line.split())

    def start(
        self, data: Path, *, point: str = "", times: int = 1, armed: bool = False, **settings: str
    ) -> "Life":
        """A collector on free ports that answers; or one that has ended before that."""
        self._end_last()
        env = {"FACTA_DATA": str(data), "FACTA_HTTP_PORT": "0", "FACTA_GRPC_PORT": "0"}
        env |= {f"FACTA_{name.upper()}": value for name, value in settings.items()}
        log, temporary = data.with_suffix(".log"), data.with_name("tmp")
        temporary.mkdir(exist_ok=True)
        env["TMPDIR"] = str(temporary)
        order = {"env": env, "log": str(log), "point": point, "times": times, "armed": armed}
        assert self.process.stdin
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        self.last = life = Life(self, int(self.word("pid")[0]), log)
        word = self.lines.get(timeout=SECONDS)
        if word[0] == "end":
            life.code = int(word[1])
        else:
            life.http, life.grpc = int(word[1]), int(word[2])
        return life

    def word(self, wanted: str) -> list[str]:
        """The next line, which begins with this word."""
        word, *rest = self.lines.get(timeout=SECONDS)
        assert word == wanted, (word, rest)
        return rest

    def _end_last(self) -> None:
        """What a test that failed has left behind."""
        if self.last is not None:
            self.last.end(signal.SIGKILL)

    def close(self) -> None:
        self._end_last()
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(SECONDS)
        self.process.stdout.close()


@dataclass(slots=True)
class Life:
    """One collector; `code` is what it ended with (negative: the signal)."""

    nursery: Nursery
    pid: int
    log: Path
    http: int = 0
    grpc: int = 0
    code: int | None = None

    def end(self, sent: int) -> int:
        """Send a signal, wait for the end."""
        if self.code is None:
            os.kill(self.pid, sent)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end."""
        if self.code is None:
            self.code = int(self.nursery.word("end")[0])
        return self.code

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        """Status and body of a GET."""
        connection = HTTPConnection("127.0.0.1", self.http, timeout=SECONDS)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, path: str) -> Any:
        """The JSON of a GET that works."""
        status, data = self.get(path)
        assert status == 200, (path, status, data)
        return json.loads(data)

    def post(
        self, data: bytes, path: str = "/v1/traces", headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a POST of protobuf."""
        connection = HTTPConnection("127.0.0.1", self.http, timeout=SECONDS)
        try:
            connection.request("POST", path, data, {"Content-Type": PROTOBUF, **(headers or {})})
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, told, answer.read()
        finally:
            connection.close()


@dataclass(slots=True)
class Senders:
    """Threads that send requests, each the next when the last is answered, until nobody answers."""

    life: Life
    sent: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)
    progress: threading.Condition = field(default_factory=threading.Condition)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self, share: list[list[tuple[int, bytes]]]) -> None:
        """One thread for each list of numbered requests."""
        for bodies in share:
            self.threads.append(threading.Thread(target=self._send, args=(bodies,)))
        for thread in self.threads:
            thread.start()

    def _send(self, bodies: list[tuple[int, bytes]]) -> None:
        connection = HTTPConnection("127.0.0.1", self.life.http, timeout=SECONDS)
        try:
            for number, data in bodies:
                with self.progress:
                    self.sent.add(number)
                connection.request("POST", "/v1/traces", data, {"Content-Type": PROTOBUF})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200
                with self.progress:
                    self.acknowledged.add(number)
                    self.progress.notify_all()
        except (OSError, HTTPException):
            pass
        finally:
            connection.close()

    def wait_for(self, answers: int) -> None:
        """Wait for so many answers, or for the end of the senders."""
        with self.progress:
            while len(self.acknowledged) < answers and any(t.is_alive() for t in self.threads):
                self.progress.wait(0.05)

    def join(self) -> None:
        for thread in self.threads:
            thread.join()
