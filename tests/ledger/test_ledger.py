"""What goes in comes out, once; what is there is counted, found, and checked."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ledger.samples import TENANT, all_rows, batch, item, observation, text

from facta.ledger import (
    Appended,
    Ledger,
    LedgerDamagedError,
    LedgerFull,
    LedgerLockedError,
)
from facta.ledger.canonical import NotCanonicalError, encode_row, leaf_of, observation_id
from facta.ledger.merkle import Frontier
from facta.model.observation import Append, Object

DAY_NS = 86_400 * 10**9
open_ledger = Ledger.open


def test_rows_come_back_as_they_went_in(ledger: Ledger) -> None:
    key = ledger.tenant_key(TENANT)
    observations = [observation(n) for n in range(5)]
    assert ledger.append(Append(observations, [])) == Appended(5, 0)
    rows = ledger.rows(-1, 100)
    assert [row.seq for row in rows] == [0, 1, 2, 3, 4]
    assert [row.observation for row in rows] == [
        replace(obs, id=observation_id(key, obs)) for obs in observations
    ]
    assert [row.leaf for row in rows] == [
        leaf_of(encode_row(row.observation, row.received_ns)).hex() for row in rows
    ]
    assert [row.seq for row in ledger.rows(1, 2)] == [2, 3]
    assert ledger.rows(4, 10) == []


def test_the_root_is_that_of_the_leaves_and_survives_reopening(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        assert (ledger.size, ledger.root()) == (0, Frontier().root().hex())
        for number in range(7):
            ledger.append(batch(number, ledger.tenant_key(TENANT)))
        tree = Frontier()
        tree.extend(bytes.fromhex(row.leaf) for row in all_rows(ledger))
        before = (ledger.size, ledger.root(), ledger.frontier(), ledger.ledger_id)
        assert before[:3] == (21, tree.root().hex(), tree)
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        assert (ledger.size, ledger.root(), ledger.frontier(), ledger.ledger_id) == before
        assert ledger.verify() == []


def test_a_repeat_is_counted_and_not_stored(ledger: Ledger) -> None:
    key = ledger.tenant_key(TENANT)
    ledger.append(batch(0, key))
    row, root = ledger.rows(-1, 1), ledger.root()
    assert ledger.append(batch(0, key)) == Appended(0, 3)
    mixed = Append([observation(2), observation(50), observation(50)], [])
    assert ledger.append(mixed) == Appended(1, 2)
    assert (ledger.size, ledger.stats().repeats) == (4, 5)
    assert ledger.rows(-1, 1) == row
    assert ledger.frontier().size == 4
    assert ledger.root() != root
    assert ledger.verify() == []


def test_an_id_given_by_the_caller_is_not_trusted(ledger: Ledger) -> None:
    ledger.append(Append([replace(observation(1), id="0" * 32)], []))
    ledger.append(Append([replace(observation(2), id="0" * 32)], []))
    assert len({row.observation.id for row in all_rows(ledger)} - {"0" * 32}) == 2


def test_tenants_share_neither_ids_nor_contents(ledger: Ledger) -> None:
    keys = [ledger.tenant_key(tenant) for tenant in ("one", "two")]
    contents = [text(key, b"the same text") for key in keys]
    shared = item(b"the same item")
    for tenant, content in zip(("one", "two"), contents, strict=True):
        ledger.append(Append([observation(1, tenant=tenant)], [content, shared]))
    assert keys[0] != keys[1]
    assert ledger.size == 2
    assert contents[0].commit != contents[1].commit
    assert ledger.object(contents[0].commit, "two") is None
    assert ledger.object(contents[0].commit, "nobody") is None
    assert ledger.object(shared.commit, "one") == ledger.object(shared.commit, "two") == shared
    assert ledger.verify() == []


def test_objects_are_kept_once_with_all_their_kinds(ledger: Ledger) -> None:
    key = ledger.tenant_key(TENANT)
    content = os.urandom(100_000)
    evidence, summary = text(key, content), text(key, content, "ux")
    ledger.append(Append([observation(1)], [evidence, evidence]))
    used = ledger.stats().bytes
    ledger.append(Append([observation(2)], [summary]))
    ledger.append(Append([observation(3)], [text(key, content, "deed"), summary, evidence]))
    assert ledger.stats().bytes < used + 100_000
    assert ledger.kinds(evidence.commit, TENANT) == {"text", "ux", "deed"}
    assert ledger.object(evidence.commit, TENANT) == evidence
    assert ledger.kinds("0" * 64, TENANT) == set()
    assert ledger.objects([evidence.commit, "0" * 64], TENANT) == {evidence.commit: evidence}
    assert ledger.objects([], TENANT) == {}
    assert ledger.verify() == []


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5))
def test_any_content_comes_back(ledger: Ledger, contents: list[bytes]) -> None:
    key = ledger.tenant_key(TENANT)
    objects = [text(key, content) for content in contents]
    ledger.append(Append([observation(1)], objects))
    assert ledger.objects([o.commit for o in objects], TENANT) == {o.commit: o for o in objects}


def test_a_body_and_a_content_of_ten_megabytes(ledger: Ledger) -> None:
    key = ledger.tenant_key(TENANT)
    content = text(key, b"ab\0" * 3_500_000)
    ledger.append(Append([observation(1, body=b"\0" * 10_000_000)], [content]))
    assert ledger.rows(-1, 1)[0].observation.body == b"\0" * 10_000_000
    assert ledger.object(content.commit, TENANT) == content


def test_nothing_to_append_is_nothing(ledger: Ledger) -> None:
    assert ledger.append(Append([], [item(b"alone")])) == Appended(0, 0)
    assert ledger.object(item(b"alone").commit, TENANT) is None


@pytest.mark.parametrize(
    "bad",
    [
        Append([observation(1), observation(2, tenant="other")], []),
        Append([replace(observation(1), session="\ud800")], []),
        Append([observation(1)], [Object("zz", "text", b"")]),
        Append([observation(1)], [Object("00", "text", b"")]),
        Append([observation(1)], [Object("0" * 64, "other", b"")]),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_stored_is_refused_whole(ledger: Ledger, bad: Append) -> None:
    with pytest.raises(NotCanonicalError):
        ledger.append(bad)
    assert ledger.size == 0
    assert ledger.append(Append([observation(1)], [])) == Appended(1, 0)


def test_many_threads_append_together(ledger: Ledger) -> None:
    key = ledger.tenant_key(TENANT)
    outcomes: list[Appended] = []

    def send(first: int) -> None:
        outcomes.extend(ledger.append(batch(n, key)) for n in range(first, first + 20))

    threads = [threading.Thread(target=send, args=(at * 10,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Neighbours overlap by ten batches: 90 different ones of 160.
    assert ledger.size == sum(o.new for o in outcomes) == 270
    assert sum(o.repeated for o in outcomes) == ledger.stats().repeats == 210
    assert ledger.verify() == []


def test_what_waits_together_is_committed_together(tmp_path: Path) -> None:
    held, gate, commits = threading.Event(), threading.Event(), []

    def on_point(name: str) -> None:
        if name == "before_append":
            held.set()
            assert gate.wait(60)
        if name == "after_fsync":
            commits.append(name)

    with open_ledger(tmp_path, min_free_bytes=0, on_point=on_point) as ledger:
        key = ledger.tenant_key(TENANT)
        threads = [threading.Thread(target=ledger.append, args=(batch(n, key),)) for n in range(20)]
        threads[0].start()
        assert held.wait(60)
        for thread in threads[1:]:
            thread.start()
        while ledger._writer._queue.qsize() < 19:
            os.sched_yield()
        gate.set()
        for thread in threads:
            thread.join()
        assert ledger.size == 60
    assert len(commits) == 2


def test_segments_change_with_the_day_and_with_their_size(tmp_path: Path) -> None:
    now = DAY_NS
    with open_ledger(
        tmp_path, min_free_bytes=0, clock=lambda: now, segment_bytes=600_000
    ) as ledger:
        key = ledger.tenant_key(TENANT)
        first = batch(0, key)
        ledger.append(first)
        now += DAY_NS
        ledger.append(batch(1, key))
        assert ledger.stats().segments == 2
        ledger.append(Append([observation(900, body=os.urandom(700_000))], []))
        ledger.append(batch(2, key))
        assert ledger.stats().segments == 3
        assert len(list(tmp_path.glob("segment-*.db"))) == 3
        assert [row.seq for row in ledger.rows(-1, 100)] == list(range(10))
        assert [row.seq for row in ledger.rows(1, 3)] == [2, 3, 4]
        # A content in an old segment is not stored again in the new one.
        now += DAY_NS
        ledger.append(Append([observation(901)], first.objects))
        assert ledger.objects([o.commit for o in first.objects], TENANT) == {
            o.commit: o for o in first.objects
        }
        assert ledger.verify() == []
    rows = apsw.Connection(str(tmp_path / "segment-000004.db")).execute("SELECT * FROM objects")
    assert list(rows) == []


def test_the_mark_is_kept_and_may_go_back(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        ledger.append(batch(0, ledger.tenant_key(TENANT)))
        assert ledger.projected == 0
        ledger.mark_projected(3)
        with pytest.raises(ValueError, match="not between 0 and"):
            ledger.mark_projected(4)
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        assert ledger.projected == 3
        ledger.mark_projected(0)
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        assert ledger.projected == 0


def test_a_backlog_over_its_limit_refuses_until_the_store_catches_up(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=0, max_backlog_rows=6) as ledger:
        key = ledger.tenant_key(TENANT)
        ledger.append(batch(0, key))
        ledger.append(batch(1, key))
        with pytest.raises(LedgerFull, match="wait for the store") as caught:
            ledger.append(batch(2, key))
        assert caught.value.retry_after > 0
        assert ledger.size == 6
        assert len(ledger.rows(-1, 10)) == 6
        ledger.mark_projected(1)
        assert ledger.append(batch(2, key)) == Appended(3, 0)


def test_a_disk_with_little_left_refuses(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=1 << 60) as ledger:
        with pytest.raises(LedgerFull, match="the disk is full"):
            ledger.append(batch(0, ledger.tenant_key(TENANT)))
        assert ledger.size == 0


def test_after_closing_appends_are_refused_and_those_that_waited_were_kept(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path, min_free_bytes=0)
    key = ledger.tenant_key(TENANT)
    ledger.append(batch(0, key))
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerFull, match="closed"):
        ledger.append(batch(1, key))


def test_one_process_owns_it_and_the_other_is_told_which(tmp_path: Path, ledger: Ledger) -> None:
    assert ledger.size == 0
    code = (
        "import sys; from pathlib import Path; from facta.ledger import Ledger\n"
        "try: Ledger.open(Path(sys.argv[1]))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "ledger"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.stdout.startswith("LedgerLockedError")
    assert f"process {os.getpid()}:" in ran.stdout
    assert ran.stdout.count("\n") == 1
    with pytest.raises(LedgerLockedError):
        open_ledger(tmp_path / "ledger")


def test_tenant_keys_are_made_once_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        key = ledger.tenant_key("caf\u00e9/../x")
        assert len(key) == 32
        assert ledger.tenant_key("caf\u00e9/../x") == key
        assert ledger.tenant_key("other") != key
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        assert ledger.tenant_key("caf\u00e9/../x") == key
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


def test_a_lost_key_is_not_replaced_by_another(tmp_path: Path) -> None:
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        ledger.append(batch(0, ledger.tenant_key(TENANT)))
    for path in (tmp_path / "keys").iterdir():
        path.unlink()
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        with pytest.raises(LedgerDamagedError, match="is missing"):
            ledger.tenant_key(TENANT)
        assert "key is missing" in ledger.verify()[0]


def _unlink_index(path: Path) -> None:
    for name in ("index.db", "index.db-wal", "index.db-shm"):
        (path / name).unlink(missing_ok=True)


def _newer_format(path: Path) -> None:
    with apsw.Connection(str(path / "index.db")) as connection:
        connection.pragma("user_version", 9)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_unlink_index, "index.db is missing"),
        (_newer_format, "has format 9"),
        (lambda path: (path / "segment-000001.db").unlink(), "segment-000001.db is missing"),
        (lambda path: (path / "index.db").write_bytes(b"x" * 8192), "cannot be opened"),
    ],
)
def test_files_that_do_not_fit_are_not_opened(
    tmp_path: Path, damage: Callable[[Path], object], said: str
) -> None:
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        ledger.append(batch(0, ledger.tenant_key(TENANT)))
    damage(tmp_path)
    with pytest.raises(LedgerDamagedError, match=said):
        open_ledger(tmp_path)


def test_an_old_copy_of_the_index_is_not_opened(tmp_path: Path) -> None:
    """It would take rows that were acknowledged later for rows that never were."""
    with open_ledger(tmp_path, min_free_bytes=0) as ledger:
        ledger.append(batch(0, ledger.tenant_key(TENANT)))
    old = (tmp_path / "index.db").read_bytes()
    for number in (1, 2):
        with open_ledger(tmp_path, min_free_bytes=0) as ledger:
            ledger.append(batch(number, ledger.tenant_key(TENANT)))
    (tmp_path / "index.db").write_bytes(old)
    with pytest.raises(LedgerDamagedError, match=r"index.db is older than its segments"):
        open_ledger(tmp_path)
