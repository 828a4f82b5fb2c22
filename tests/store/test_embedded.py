import base64
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError

from facta.store import Store, StoreError, StoreHeldError, embedded
from facta.store.embedded import EmbeddedStore

CANARY = "canary-5d1f-\"quote'-value"

HOSTILE = {
    "quotes": "it's \"quoted\" `so` \\' \\",
    "nul": "a\0b",
    "control": "\x1b]0;title\x07\r\n\t",
    "wide": "é 漢字 \U0001f600 \u202e",
    "statement": "'; DROP TABLE evidence.turns; --",
    "braces": "{tenant:String} %(x)s {0}",
    "empty": "",
    "long": "x" * 3_000_000,
}


def refusal(row_key: str, **more: Any) -> dict[str, Any]:
    return {"tenant": "t", "session_id": "s", "row_key": row_key, "version": 1, "deleted": 0} | more


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_texts_come_back_as_they_went_in(store: EmbeddedStore, text: str) -> None:
    store.insert("evidence.refusals", [refusal("a", place=text)])
    found = store.query(
        "SELECT place FROM evidence.refusals FINAL WHERE place = {place:String}", {"place": text}
    )
    assert found == [{"place": text}]


def test_columns_of_every_kind_come_back(store: EmbeddedStore) -> None:
    turn = refusal(
        "a",
        ordinal=7,
        store=None,
        background=True,
        include=["one", "two"],
        reported_cost=0.25,
        input_tokens=2**53 + 1,
        started_ns=-5,
    )
    store.insert("evidence.turns", [turn])
    [found] = store.query("SELECT * FROM evidence.turns FINAL")
    assert {name: found[name] for name in turn} == turn
    assert found["finish_reasons"] == []
    assert found["output_tokens"] is None


def test_nanoseconds_and_hex_ids_are_exact(store: EmbeddedStore) -> None:
    received = 1_700_000_000_123_456_789
    row = {"tenant": "t", "id": "0" * 30 + "00", "received_at": received, "body": b"{}"}
    store.insert("evidence.observations", [row])
    assert store.query(
        "SELECT id, toUnixTimestamp64Nano(received_at) AS at, body FROM evidence.observations"
    ) == [{"id": "0" * 32, "at": received, "body": "{}"}]


def test_lone_surrogates_are_written_as_escapes(store: EmbeddedStore) -> None:
    store.insert("evidence.refusals", [refusal("a", place="x\ud800é"), refusal("b", place="plain")])
    found = store.query("SELECT place FROM evidence.refusals FINAL ORDER BY row_key")
    assert found == [{"place": "x\\ud800é"}, {"place": "plain"}]


def test_the_newest_version_counts_and_a_deleted_row_is_gone(store: EmbeddedStore) -> None:
    store.insert("evidence.refusals", [refusal("a", reason="old"), refusal("b", reason="kept")])
    store.insert("evidence.refusals", [refusal("a") | {"version": 2, "deleted": 1}])
    found = store.query("SELECT row_key, reason FROM evidence.refusals FINAL")
    assert found == [{"row_key": "b", "reason": "kept"}]


def test_truncate_empties_a_table(store: EmbeddedStore) -> None:
    store.insert("evidence.refusals", [refusal("a")])
    store.truncate("evidence.refusals")
    assert store.query("SELECT * FROM evidence.refusals") == []


@pytest.mark.parametrize("table", ["turns", "system.one", "evidence.turns; SELECT 1", "ux.`x`"])
def test_a_table_has_a_plain_name(store: EmbeddedStore, table: str) -> None:
    with pytest.raises(StoreError, match="name is"):
        store.truncate(table)
    with pytest.raises(StoreError):
        store.insert(table, [refusal("a")])


WRONG_ROWS: dict[str, list[dict[str, Any]]] = {
    "unknown column": [{CANARY: 1}],
    "missing column": [refusal("a", place="x"), refusal("b")],
    "extra column": [refusal("b"), refusal("a", place=CANARY)],
    "text for a number": [refusal("a", size=CANARY)],
    "object for a text": [refusal("a", place=[CANARY])],
    "negative": [refusal("a", size=-1)],
    "mixed": [refusal("a", place=CANARY.encode()), refusal("b", place=CANARY)],
}


@pytest.mark.parametrize("rows", WRONG_ROWS.values(), ids=WRONG_ROWS)
def test_wrong_rows_are_an_error_without_their_values(
    store: EmbeddedStore,
    rows: list[dict[str, Any]],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(StoreError) as caught:
        store.insert("evidence.refusals", rows)
    seen = f"{caught.value!r} {caught.value.__cause__} {caplog.text} {capfd.readouterr()}"
    assert_no_canary(seen)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert store.query("SELECT * FROM evidence.refusals") == []


WRONG_QUERIES = {
    "syntax": f"SELEC '{CANARY.replace(chr(39), '')}'",
    "unknown table": "SELECT * FROM evidence.canary5d1f",
    "cast": "SELECT toUInt8({value:String})",
    "parameter": "SELECT {value:UInt8}",
    "type": "SELECT {value:String} + 1",
}


@pytest.mark.parametrize("sql", WRONG_QUERIES.values(), ids=WRONG_QUERIES)
def test_a_failed_query_says_so_without_values(
    store: EmbeddedStore, sql: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with pytest.raises(StoreError, match="the store answered") as caught:
        store.query(sql, {"value": CANARY})
    assert caught.value.code > 0
    assert_no_canary(f"{caught.value!r} {caught.value.__cause__!r} {caplog.text}")
    assert caught.value.__context__ is None


def assert_no_canary(seen: str) -> None:
    raw = CANARY.encode()
    for form in (CANARY, raw.hex(), base64.b64encode(raw).decode(), "5d1f"):
        assert form.lower() not in seen.lower()


def test_many_threads_write_and_read(store: EmbeddedStore) -> None:
    def work(number: int) -> int:
        for step in range(5):
            store.insert("evidence.refusals", [refusal(f"{number}-{step}", size=step)])
        [counted] = store.query(
            "SELECT count() AS rows FROM evidence.refusals WHERE startsWith(row_key, {mine:String})",
            {"mine": f"{number}-"},
        )
        return int(counted["rows"])

    with ThreadPoolExecutor(12) as threads:
        assert list(threads.map(work, range(12))) == [5] * 12
    assert store.query("SELECT count() AS rows FROM evidence.refusals") == [{"rows": 60}]


def test_a_store_has_one_holder(store: EmbeddedStore) -> None:
    with pytest.raises(StoreHeldError, match=f"process {os.getpid()} has the store"):
        EmbeddedStore.at(store.folder.parent)


def test_another_process_is_told_who_holds_it(store: EmbeddedStore) -> None:
    code = (
        "import sys, pathlib\nfrom facta.store.embedded import EmbeddedStore\n"
        "try: EmbeddedStore.at(pathlib.Path(sys.argv[1]))\nexcept Exception as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(store.folder.parent)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"process {os.getpid()} has the store" in done.stdout
    assert store.ready()


WRITER = """
import pathlib, sys, time
from facta.store.embedded import EmbeddedStore
store = EmbeddedStore.at(pathlib.Path(sys.argv[1]))
store.migrate()
row = {"tenant": "t", "session_id": "s", "row_key": "a", "version": 1, "deleted": 0}
store.insert("evidence.refusals", [row])
(pathlib.Path(sys.argv[1]) / "chdb-scratch" / "left.native").write_bytes(b"left over")
print("inserted", flush=True)
time.sleep(60)
"""


def test_a_killed_process_frees_the_store_and_leaves_no_scratch(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "inserted\n"
        writer.send_signal(signal.SIGKILL)
    store = EmbeddedStore.at(tmp_path)
    try:
        assert store.rebuilt is False
        assert list((tmp_path / "chdb-scratch").iterdir()) == []
        assert store.query("SELECT row_key FROM evidence.refusals FINAL") == [{"row_key": "a"}]
    finally:
        store.close()


def test_a_store_that_does_not_open_is_set_aside_and_made_anew(tmp_path: Path) -> None:
    for number in (1, 2):
        store = EmbeddedStore.at(tmp_path)
        assert store.rebuilt is True
        store.migrate()
        store.insert("evidence.refusals", [refusal("a")])
        store.close()
        (tmp_path / "chdb" / "metadata" / "evidence.sql").write_text("not SQL")
        store = EmbeddedStore.at(tmp_path)
        assert store.rebuilt is True
        store.migrate()
        assert store.query("SELECT * FROM evidence.refusals") == []
        assert (tmp_path / f"chdb.broken-{number}" / "metadata").is_dir()
        store.close()
        (tmp_path / "chdb" / "metadata" / "evidence.sql").write_text("not SQL")


def test_a_store_is_kept_when_an_empty_one_does_not_open_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    EmbeddedStore.at(tmp_path).close()
    (tmp_path / "chdb" / "mark").touch()

    def refuse(_read_only: bool) -> Any:
        raise ClickHouseError

    monkeypatch.setattr(embedded, "_connector", lambda *_: refuse)
    with pytest.raises(StoreError, match="does not open; is its disk full"):
        EmbeddedStore.at(tmp_path)
    assert (tmp_path / "chdb" / "mark").exists()
    assert not list(tmp_path.glob("chdb.broken-*"))


def test_a_path_that_the_engine_would_misread_is_refused(tmp_path: Path) -> None:
    for misread in "?*{}'":
        with pytest.raises(StoreError, match="cannot be used"):
            EmbeddedStore.at(tmp_path / f"a{misread}b")
    odd = EmbeddedStore.at(tmp_path / "100%20 \u00e9 & <[so]>")
    try:
        odd.migrate()
        odd.insert("evidence.refusals", [refusal("a")])
        assert (odd.folder / "metadata").is_dir()
    finally:
        odd.close()


def test_a_closed_store_is_not_ready_and_closes_again(store: EmbeddedStore) -> None:
    assert store.ready()
    store.close()
    store.close()
    assert not store.ready()
    with pytest.raises(StoreError, match="closed"):
        store.insert("evidence.refusals", [refusal("a")])


def test_close_waits_for_readers(store: EmbeddedStore) -> None:
    reading, go_on, closed = threading.Event(), threading.Event(), threading.Event()
    rows: list[Any] = []

    def read() -> None:
        with store._reader() as client:
            reading.set()
            go_on.wait()
            assert not closed.is_set()
            rows.extend(client.query("SELECT 1").result_rows)

    def close() -> None:
        store.close()
        closed.set()

    threads = [threading.Thread(target=read), threading.Thread(target=close)]
    threads[0].start()
    reading.wait()
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert rows == [(1,)]
    assert closed.is_set()


def test_the_interface_opens_the_embedded_engine(tmp_path: Path) -> None:
    from facta.settings import Settings

    opened = Store.open(Settings(data=tmp_path / "new"))
    try:
        assert isinstance(opened, EmbeddedStore)
        assert opened.folder == (tmp_path / "new" / "chdb").resolve()
    finally:
        opened.close()
