"""A full disk: senders are told to come back, what is there can be read, and nobody restarts anything."""

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.faults.inside import Inside, serving, settings, until
from tests.faults.payloads import PROTOBUF, body, trace_of

from facta.ledger.files import Files

pytestmark = pytest.mark.fault

MIB = 1024 * 1024


def refused(home: Inside, data: bytes) -> None:
    status, headers, _ = home.ask("POST", "/v1/traces", data, content_type=PROTOBUF)
    assert status == 503
    assert int(headers["retry-after"]) > 0


def readable(home: Inside, turns: int) -> None:
    assert len(home.get("/api/v1/turns")["items"]) == turns
    assert home.get("/api/v1/status")["ledger_rows"] == 2 * turns
    [session] = home.get("/api/v1/sessions?limit=1")["items"]
    assert home.get(f"/api/v1/sessions/{session['session_id']}/timeline")["steps"]
    assert home.ask("GET", "/ready")[0] == 200


def test_too_little_room_is_noticed_before_it_is_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(settings(tmp_path)) as home:
        assert home.post(body(0)) == 200
        home.settled()
        monkeypatch.setattr(Files, "free_bytes", lambda *_: MIB)
        refused(home, body(1))
        readable(home, 1)
        monkeypatch.undo()
        assert home.post(body(1)) == 200
        home.settled()
        readable(home, 2)


@contextmanager
def small_disk(path: Path, mib: int) -> Iterator[Path]:
    """A file system of its own, or the test is skipped."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(path)]
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("NO MOUNT: this user may not mount a small file system")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=False, capture_output=True)


def test_a_disk_that_is_really_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The guard above is off: the file system itself says no, in the middle of whatever it is.
    monkeypatch.setattr(Files, "free_bytes", lambda *_: 1 << 40)
    with small_disk(tmp_path / "disk", 96) as disk, serving(settings(disk)) as home:
        for number in range(4):
            assert home.post(body(number)) == 200
        home.settled()
        ballast = disk / "ballast"
        fill(ballast)
        large = os.urandom(4 * MIB).hex()
        said = {number: home.post(body(number, text=large)) for number in range(4, 10)}
        assert set(said.values()) <= {200, 503}
        assert said[9] == 503
        acknowledged = {*range(4), *(n for n, status in said.items() if status == 200)}
        refused(home, body(9, text=large))
        assert home.get("/api/v1/status")["ledger_rows"] >= 2 * len(acknowledged)
        assert home.get("/api/v1/turns")["items"]
        assert home.ask("GET", "/ready")[0] == 200
        ballast.unlink()
        until(lambda: home.post(body(100)) == 200)
        home.settled()
        rows = home.facta.ledger.rows(-1, 1000)
        traces = Counter(row.observation.trace_id for row in rows)
        assert set(traces.values()) == {2}
        assert {trace_of(n) for n in acknowledged | {100}} <= traces.keys()
        assert home.facta.ledger.verify() == []


def fill(path: Path) -> None:
    """A file that leaves no room."""
    with path.open("wb", buffering=0) as file:
        size = MIB
        while size:
            try:
                file.write(b"\0" * size)
            except OSError:
                size //= 2
