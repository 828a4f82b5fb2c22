"""Power cuts and failing file operations at every place: nothing acknowledged is lost or doubled."""

import contextlib
import itertools
import logging
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.ledger.faulty_vfs import MODES, Disk, FaultyFiles, FaultyVFS, Mode
from tests.ledger.samples import TENANT, batch, failings

from facta.ledger import Ledger, LedgerDamagedError, database
from facta.model.errors import Unavailable

pytestmark = [
    pytest.mark.fault,
    # SQLite goes on after a failing close or clean-up; the driver then tells Python's hook of it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DAY_NS = 86_400 * 10**9
_names = itertools.count()


@dataclass
class Client:
    """Sends batches and remembers; sends again what was not acknowledged, up to `patience` times."""

    patience: int
    sent: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)

    def send(self, ledger: Ledger, number: int) -> None:
        for _ in range(self.patience):
            try:
                append = batch(number, ledger.tenant_key(TENANT))
                self.sent.append(number)
                ledger.append(append)
            except Unavailable:
                continue
            self.acknowledged.append(number)
            return


@contextmanager
def ledger_on(
    disk: Disk, directory: Path, clock: Callable[[], int], tries: int = 1
) -> Iterator[Ledger]:
    vfs = FaultyVFS(f"faulty-{next(_names)}", disk)
    try:
        ledger = _opened(disk, directory, clock, tries, vfs.name)
        try:
            yield ledger
        finally:
            ledger.close()
    finally:
        vfs.unregister()


def _opened(disk: Disk, path: Path, clock: Callable[[], int], tries: int, vfs: str) -> Ledger:
    for left in reversed(range(tries)):
        try:
            return Ledger.open(
                path, min_free_bytes=0, clock=clock, vfs=vfs, files=FaultyFiles(disk)
            )
        except LedgerDamagedError:
            if not left:
                raise
    raise AssertionError


def work(disk: Disk, directory: Path, client: Client, tries: int = 1) -> None:
    """A short life: opening, batches, a repeat, a mark, a new segment, long logs, closing."""
    day = 1
    with ledger_on(disk, directory, lambda: day * DAY_NS, tries) as ledger:
        for number in range(4):
            client.send(ledger, number)
        client.send(ledger, 1)
        _mark(ledger, client.patience)
        day = 2
        for number in range(4, 8):
            client.send(ledger, number)


def _mark(ledger: Ledger, patience: int) -> None:
    for _ in range(patience):
        try:
            ledger.mark_projected(min(2, ledger.size))
        except Unavailable:
            continue
        return


def after_cut(disk: Disk, source: Path, target: Path, mode: Mode, client: Client) -> list[str]:
    """What does not hold after a power cut, nor after all was sent again."""
    disk.cut(source, target, mode, random.Random(len(client.sent)))
    try:
        # On a faultless disk of the same make, whose fsync costs nothing.
        with ledger_on(Disk(), target, lambda: 3 * DAY_NS) as ledger:
            found = failings(ledger, client.acknowledged, client.sent)
            size = ledger.size
            again = Client(1)
            for number in range(8):
                again.send(ledger, number)
            found += failings(ledger, range(8), range(8))
            if ledger.size != 24 or size > 24:
                found.append(f"{size} observations, after sending again {ledger.size}")
    except (LedgerDamagedError, Unavailable) as error:
        return [str(error)]
    return found


@pytest.fixture(autouse=True)
def _long_logs_at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Let the log be moved into the database after each group, so that faults hit that too."""
    caplog.set_level(logging.CRITICAL, "facta.ledger")
    monkeypatch.setattr(database, "CHECKPOINT_PAGES", 10)


def _counts(tmp_path: Path) -> Disk:
    disk, client = Disk(), Client(1)
    work(disk, tmp_path / "whole", client)
    assert client.acknowledged == [0, 1, 2, 3, 1, 4, 5, 6, 7]
    return disk


def _cut_at(number: int, tmp_path: Path, mode: Mode, *, lies: bool = False) -> list[str]:
    source, target = tmp_path / f"{mode}-{number}", tmp_path / f"{mode}-{number}-cut"
    disk, client = Disk(cut_at=number, lies=lies), Client(1)
    try:
        work(disk, source, client)
    except LedgerDamagedError:
        assert not client.acknowledged
    return after_cut(disk, source, target, mode, client)


def _every_cut(tmp_path: Path, step: int) -> Iterator[tuple[int, Mode]]:
    total = _counts(tmp_path).counts.total()
    for number in range(1, total + 2):
        if number % step == 0:
            yield number, MODES[(number // step) % len(MODES)]


def test_a_power_cut_at_some_operation_loses_nothing_acknowledged(tmp_path: Path) -> None:
    for number, mode in _every_cut(tmp_path, 4):
        assert _cut_at(number, tmp_path, mode) == [], f"cut at operation {number}, {mode}"


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_a_power_cut_at_any_operation_loses_nothing_acknowledged(
    tmp_path: Path, mode: Mode
) -> None:
    for number, _ in _every_cut(tmp_path, 1):
        assert _cut_at(number, tmp_path, mode) == [], f"cut at operation {number}"


def test_without_fsync_the_same_power_cuts_lose_what_was_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "SYNCHRONOUS", "OFF")
    failed = [n for n, mode in _every_cut(tmp_path, 10) if _cut_at(n, tmp_path, mode)]
    assert len(failed) >= 5


def test_a_disk_whose_fsync_does_nothing_is_beyond_any_promise(tmp_path: Path) -> None:
    failed = [n for n, mode in _every_cut(tmp_path, 10) if _cut_at(n, tmp_path, mode, lies=True)]
    assert len(failed) >= 5


def _killed_then_cut(disk: Disk, place: Path) -> list[str]:
    """A life that ends with the disk, another that sends again what was not acknowledged, and then
    a power cut: what does not hold after that."""
    first, second, third = (place / part for part in ("first", "second", "third"))
    client = Client(6)
    with contextlib.suppress(LedgerDamagedError):  # killed while it opened
        work(disk, first, client)
    survived = disk.killed(first, second)
    with ledger_on(survived, second, lambda: 3 * DAY_NS) as ledger:
        for unanswered in sorted(set(client.sent) - set(client.acknowledged)):
            client.send(ledger, unanswered)
        assert set(client.acknowledged) == set(client.sent)
        found = failings(ledger, client.acknowledged, client.sent)
        survived.cut(second, third, "dropped", random.Random(0))
    with ledger_on(Disk(), third, lambda: 3 * DAY_NS) as ledger:
        return found + failings(ledger, client.acknowledged, client.sent)


def test_a_repeat_is_not_acknowledged_before_its_first_copy_is_safe(tmp_path: Path) -> None:
    """Killed between write and fsync, sent again, acknowledged as a repeat, then a power cut."""
    total = _counts(tmp_path).counts.total()
    for number in range(60, total, 8):
        found = _killed_then_cut(Disk(cut_at=number), tmp_path / str(number))
        assert found == [], f"killed at {number}"


def _after_failed_syncs(tmp_path: Path, step: int, *, forgets: bool) -> Iterator[tuple[str, Disk]]:
    syncs = _counts(tmp_path).counts["sync"]
    for number in range(1, syncs + 1):
        for later in (1, 2, 3, 5, 8, 13, 21):
            if (number + later) % step == 0:
                disk = Disk(fail=("sync", number, 1), cut_after=later, forgets=forgets)
                yield f"sync-{number}-{later}", disk


def test_a_failed_fsync_that_lost_its_pages_then_a_kill_then_a_power_cut(tmp_path: Path) -> None:
    for name, disk in _after_failed_syncs(tmp_path, 6, forgets=True):
        assert _killed_then_cut(disk, tmp_path / name) == [], name


@pytest.mark.parametrize("mode", ["prefix", "pieces"])
def test_a_failed_fsync_then_a_power_cut(tmp_path: Path, mode: Mode) -> None:
    """What a failed commit left behind in the log must not come back after others went on."""
    for name, disk in _after_failed_syncs(tmp_path, 12, forgets=False):
        client = Client(6)
        with contextlib.suppress(LedgerDamagedError):
            work(disk, tmp_path / name, client)
        target = tmp_path / f"{name}-cut"
        assert after_cut(disk, tmp_path / name, target, mode, client) == [], name


OPERATIONS = (
    "write",
    "truncate",
    "sync",
    "open",
    "delete",
    "file write",
    "file rename",
    "file unlink",
    "directory sync",
    "disk usage",
)


def _every_failure(tmp_path: Path, operation: str, step: int, times: int) -> int:
    """Fail one operation (or a few in a row) at each place; how many failures took place."""
    total = _counts(tmp_path).counts[operation]
    assert total > 0
    failed = 0
    for number in range(1, total + 1, step):
        source, target = tmp_path / f"{number}", tmp_path / f"{number}-cut"
        disk, client = Disk(fail=(operation, number, times)), Client(patience=times + 3)
        work(disk, source, client, tries=times + 3)
        failed += disk.failed
        assert set(client.acknowledged) == set(range(8)), f"{operation} {number} never recovered"
        found = after_cut(disk, source, target, MODES[number % len(MODES)], client)
        assert found == [], f"{operation} {number} failed"
    return failed


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_fails_once_loses_and_doubles_nothing(
    tmp_path: Path, operation: str
) -> None:
    assert _every_failure(tmp_path, operation, {"write": 6, "sync": 2}.get(operation, 1), 1) > 0


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_operations_that_fail_in_a_row_lose_and_double_nothing(
    tmp_path: Path, operation: str
) -> None:
    assert _every_failure(tmp_path, operation, 15, 6) > 0


@pytest.mark.full
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_that_fails_loses_and_doubles_nothing(
    tmp_path: Path, operation: str, times: int
) -> None:
    assert _every_failure(tmp_path, operation, 1, times) > 0
