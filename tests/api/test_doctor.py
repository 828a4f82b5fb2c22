"""What the doctor finds, as pure functions; the counts are in the tests of the commands."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.testclient import TestClient

from facta.api import LedgerStatus, doctor

HOUR = 3600 * 1_000_000_000


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class OneSession:
    """A reader that knows when the newest session ended."""

    def __init__(self, *ended: int) -> None:
        self.ended = ended

    def rows(self, _view: str, **_given: Any) -> list[dict[str, Any]]:
        return [{"ended_ns": ended} for ended in self.ended]


@pytest.mark.parametrize(
    ("reader", "what"),
    [
        (OneSession(), "no session is known"),
        (OneSession(0), "ended 100 hours ago"),
        (OneSession(76 * HOUR), "ended 24 hours ago"),
        (OneSession(76 * HOUR + 1), None),
        (OneSession(100 * HOUR), None),
    ],
)
def test_silence(reader: Any, what: str | None) -> None:
    found = doctor.arrival(reader, 100 * HOUR)
    assert len(found) == (what is not None)
    assert what is None or what in found[0].what


@pytest.mark.parametrize(
    ("rows", "projected", "found"), [(10, 10, 0), (1009, 10, 0), (1010, 10, 1)]
)
def test_a_store_that_is_behind(rows: int, projected: int, found: int) -> None:
    status = LedgerStatus(rows, projected, resolved=False)
    assert len(doctor.projection(status)) == found


@pytest.mark.parametrize(
    ("total", "free", "found"),
    [(100 << 30, 50 << 30, 0), (100 << 30, 1 << 30, 1), (10 << 30, 1 << 30, 0), (10 << 30, 1, 1)],
)
def test_a_disk_that_is_nearly_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, total: int, free: int, found: int
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage(total, total - free, free))
    assert len(doctor.disk(tmp_path)) == found


def test_a_folder_that_is_not_there_is_no_finding(tmp_path: Path) -> None:
    assert doctor.disk(tmp_path / "none") == []


def test_the_route_answers_findings(client: TestClient) -> None:
    found = client.get("/api/v1/doctor").json()["items"]
    checks = [(finding["check"], finding["subject"]) for finding in found]
    assert ("sealed by shape", "chat") in checks
    assert ("no session ids", "chat") in checks
    assert ("no content", "refund-agent") not in checks
