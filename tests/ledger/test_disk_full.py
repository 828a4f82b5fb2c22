"""A real full disk: appends are refused, reads work, and it goes on by itself when there is room."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ledger.samples import TENANT, all_rows, batch, failings, observation

from facta.ledger import Ledger
from facta.model.errors import Unavailable
from facta.model.observation import Append

pytestmark = pytest.mark.fault

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB; where it cannot be mounted only the other test of this file runs."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", tmp_path],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip("NO MOUNT: needs root; the file size limit stands in for it below")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def fill(ledger: Ledger, acknowledged: list[int], most: int) -> int:
    """Send batches until one is refused; how many were acknowledged."""
    key = ledger.tenant_key(TENANT)
    for number in range(len(acknowledged), most):
        try:
            ledger.append(batch(number, key))
        except Unavailable:
            return number
        acknowledged.append(number)
    raise AssertionError("the disk did not fill up")


def test_a_full_disk_refuses_and_recovers_without_a_restart(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_500_000)
    acknowledged: list[int] = []
    with Ledger.open(small_disk / "ledger", min_free_bytes=0) as ledger:
        refused = fill(ledger, acknowledged, 20_000)
        assert len(all_rows(ledger)) == ledger.size >= 3 * refused > 0
        for _ in range(5):
            with pytest.raises(Unavailable):
                ledger.append(batch(refused, ledger.tenant_key(TENANT)))
        assert failings(ledger, acknowledged, [*acknowledged, refused]) == []
        ballast.unlink()
        for number in range(refused, refused + 20):
            ledger.append(batch(number, ledger.tenant_key(TENANT)))
            acknowledged.append(number)
        assert failings(ledger, acknowledged, acknowledged) == []
        root = ledger.root()
    with Ledger.open(small_disk / "ledger", min_free_bytes=0) as ledger:
        assert ledger.root() == root
        assert failings(ledger, acknowledged, acknowledged) == []


def limited(path: Path) -> None:
    """As above, with the largest file that this process may write as the disk's end."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    acknowledged: list[int] = []
    with Ledger.open(path, min_free_bytes=0) as ledger:
        ledger.tenant_key(TENANT)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, most))
        refused = fill(ledger, acknowledged, 20_000)
        assert failings(ledger, acknowledged, [*acknowledged, refused]) == []
        with pytest.raises(Unavailable):
            ledger.append(Append([observation(10**6, body=os.urandom(400_000))], []))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        for number in range(refused, refused + 20):
            ledger.append(batch(number, ledger.tenant_key(TENANT)))
            acknowledged.append(number)
        assert failings(ledger, acknowledged, acknowledged) == []


def test_a_file_size_limit_refuses_and_recovers_without_a_restart(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.ledger.test_disk_full", tmp_path / "ledger"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "held\n"), ran.stderr


if __name__ == "__main__":
    limited(Path(sys.argv[1]))
    sys.stdout.write("held\n")
