"""A power cut as a file system sees it: only what it was made to write to its device is left."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.ledger.samples import failings

from facta.ledger import Ledger, LedgerDamagedError

pytestmark = [pytest.mark.fault, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
CUTS = 30 if os.environ.get("FACTA_FULL") == "1" else 3
WRITER = """
import sys
from pathlib import Path
from tests.ledger.samples import TENANT, batch
from facta.ledger import Ledger, database
database.SYNCHRONOUS = sys.argv[2]
with Ledger.open(Path(sys.argv[1]), min_free_bytes=0) as ledger:
    for number in range(1_000_000):
        ledger.append(batch(number, ledger.tenant_key(TENANT)))
        print(number, flush=True)
"""


def _run(*command: str) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """An ext4 image on a loop device, or the test is skipped."""
    at.mkdir()
    if os.geteuid() or not _run("mount", "-o", "loop,commit=5", str(image), str(at)):
        pytest.skip("NO LOOP DEVICE: the power cut on a real file system was not tried")
    try:
        yield at
    finally:
        _run("umount", str(at))


def cut(folder: Path, synchronous: str, acknowledged: int) -> list[str]:
    """What does not hold after the power goes when so many batches are acknowledged."""
    folder.mkdir()
    image, left = folder / "image", folder / "left"
    with image.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    if not _run("mkfs.ext4", "-q", "-F", str(image)):
        pytest.skip("NO mkfs.ext4: the power cut on a real file system was not tried")
    with mounted(image, folder / "before") as disk:
        told = _write(disk / "ledger", synchronous, acknowledged, image, left)
    with (
        mounted(left, folder / "after") as disk,
        Ledger.open(disk / "ledger", min_free_bytes=0) as ledger,
    ):
        return failings(ledger, told, range(len(told) + 1_000))


def _write(
    directory: Path, synchronous: str, acknowledged: int, image: Path, left: Path
) -> list[int]:
    """Write until so many are acknowledged; copy what the device has; what was acknowledged then."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory), synchronous],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout
        told = [int(line) for line in itertools.islice(writer.stdout, acknowledged)]
        writer.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        shutil.copyfile(image, left)
        writer.kill()
    assert len(told) == acknowledged
    return told


@pytest.mark.parametrize("number", range(CUTS))
def test_a_power_cut_loses_nothing_acknowledged(tmp_path: Path, number: int) -> None:
    assert cut(tmp_path / "disk", "FULL", 40 + 97 * number) == []


def test_without_fsync_it_loses(tmp_path: Path) -> None:
    lost = []
    for number in range(3):
        try:
            lost += cut(tmp_path / f"disk-{number}", "OFF", 200 + 50 * number)
        except LedgerDamagedError as error:  # that it does not even open is a loss too
            lost.append(str(error))
    assert lost
