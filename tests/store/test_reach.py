"""The engine's SQL reaches the tables and nothing else: no file, no address, no other server."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from clickhouse_connect.driver.exceptions import ClickHouseError

from facta.store import StoreError
from facta.store.embedded import EmbeddedStore

DENIED_BY_THE_ENGINE = [
    "SELECT * FROM file('{file}', 'LineAsString')",
    "SELECT * FROM `{file}`",
    "DESCRIBE TABLE file('{file}', 'LineAsString')",
    "SELECT * FROM fileCluster('default', '{file}', 'LineAsString')",
    "SELECT * FROM filesystem('{folder}')",
    "SELECT * FROM sqlite('{file}', 'a')",
    "SELECT * FROM icebergLocal('{folder}')",
    "SELECT * FROM deltaLakeLocal('{folder}')",
    "SELECT * FROM executable('{file}', 'LineAsString', 'a String')",
    "SELECT * FROM url('{url}', 'LineAsString', 'a String')",
    "SELECT * FROM url('file://{file}', 'LineAsString', 'a String')",
    "SELECT * FROM s3('{url}bucket/x', 'LineAsString', 'a String')",
    "SELECT * FROM deltaLake('{url}bucket/x')",
    "SELECT * FROM iceberg('{url}bucket/x')",
    "SELECT * FROM azureBlobStorage('{url}', 'c', 'x', 'k', 'k', 'CSV', 'auto', 'a String')",
    "SELECT * FROM hdfs('hdfs://{address}/x', 'CSV', 'a String')",
    "SELECT * FROM remote('{address}', 'system', 'one')",
    "SELECT * FROM mysql('{address}', 'a', 'b', 'c', 'd')",
    "SELECT * FROM postgresql('{address}', 'a', 'b', 'c', 'd')",
    "SELECT * FROM mongodb('{address}', 'a', 'b', 'c', 'd', 'e String')",
    "SELECT * FROM redis('{address}', 'a', 'a String')",
    "INSERT INTO FUNCTION file('{folder}/out', 'CSV', 'a String') VALUES ('a')",
    "INSERT INTO FUNCTION url('{url}', 'CSV', 'a String') VALUES ('a')",
    "CREATE TABLE evidence.reach (a String) ENGINE = File(CSV, '{file}')",
    "CREATE TABLE evidence.reach (a String) ENGINE = URL('{url}', CSV)",
    "CREATE DICTIONARY evidence.reach (a UInt64) PRIMARY KEY a SOURCE(HTTP(url '{url}' format 'CSV')) LAYOUT(FLAT()) LIFETIME(1)",
    "CREATE DATABASE other",
    "CREATE USER other",
    "CREATE FUNCTION reach AS x -> x",
    "CREATE NAMED COLLECTION reach AS a = 1",
    "BACKUP TABLE evidence.turns TO Disk('default', 'x')",
    "SYSTEM SHUTDOWN",
]

# The engine would answer these; `query` does not pass them on.
REFUSED_BY_THE_STORE = [
    "SELECT file('{file}')",
    "SELECT FILE ('{file}')",
    "SELECT file/* ' */('{file}')",
    "SELECT `file`('{file}')",
    "SELECT `fil\\x65`('{file}')",
    "SELECT 1 INTO OUTFILE '{folder}/out'",
    "SELECT 1 into -- '\n outfile '{folder}/out'",
    "SELECT 1; SELECT 2",
    "SELECT 'a'';' ; DROP TABLE evidence.turns",
]


@contextmanager
def listener(hits: list[str]) -> Iterator[int]:
    """A loopback port that notes who connects and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        done = threading.Event()

        def accept() -> None:
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                hits.append("connected")
                connection.close()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            done.set()
            thread.join()


def test_neither_files_nor_addresses_can_be_reached(store: EmbeddedStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.txt"
    secret.write_text("canary-in-a-file\n")
    hits: list[str] = []
    with listener(hits) as port:
        places = {
            "file": secret,
            "folder": outside,
            "address": f"127.0.0.1:{port}",
            "url": f"http://127.0.0.1:{port}/",
        }
        for sql in DENIED_BY_THE_ENGINE:
            with pytest.raises(ClickHouseError):
                store._writer.command(sql.format(**places))
        for sql in [*DENIED_BY_THE_ENGINE, *REFUSED_BY_THE_STORE]:
            with pytest.raises(StoreError):
                store.query(sql.format(**places))
    assert hits == []
    assert [path.name for path in outside.iterdir()] == ["secret.txt"]
    assert store.query("SELECT count() AS rows FROM evidence.turns") == [{"rows": 0}]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO evidence.reads (tenant) VALUES ('t')",
        "TRUNCATE TABLE evidence.turns",
        "DROP TABLE evidence.turns",
        "ALTER TABLE evidence.turns DELETE WHERE 1",
        "SET readonly = 0",
        "SELECT 1 SETTINGS readonly = 0",
    ],
)
def test_a_query_changes_nothing(store: EmbeddedStore, sql: str) -> None:
    with pytest.raises(StoreError):
        store.query(sql)
    assert store.query("SELECT count() AS rows FROM evidence.reads") == [{"rows": 0}]


@pytest.mark.parametrize("sql", ["SELECT 'file(a); into outfile'", "SELECT 1 AS profile"])
def test_texts_and_names_are_not_mistaken_for_reach(store: EmbeddedStore, sql: str) -> None:
    assert len(store.query(sql)) == 1


def test_a_bound_value_is_never_sql(store: EmbeddedStore) -> None:
    value = "'; DROP TABLE evidence.turns; --"
    assert store.query("SELECT {value:String} AS value", {"value": value}) == [{"value": value}]
    assert store.query("SELECT count() AS rows FROM evidence.turns") == [{"rows": 0}]
