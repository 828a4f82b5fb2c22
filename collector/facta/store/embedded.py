"""The embedded store: chDB through clickhouse-connect, in the folder `chdb` of the data folder.

One process at a time may have it open; `store.lock` beside it names that process. Writing goes
through one handle under a lock, reading through a few read-only ones, so that a long read never
waits for an insert nor the other way round.
"""

import fcntl
import logging
import os
import queue
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar
from xml.sax.saxutils import escape

import clickhouse_connect
from clickhouse_connect.driver import options
from clickhouse_connect.driver.exceptions import ClickHouseError
from clickhouse_connect.driver.transform import NativeTransform

from facta.assets import ROOT
from facta.store import migrations
from facta.store.store import Row, Store, StoreError, StoreHeldError

CONFIG = ROOT / "schema" / "engine" / "embedded.xml"
READERS = 4
DEFAULT_MEMORY_BYTES = 4 << 30

# The driver logs the value that it could not serialise.
logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL + 1)
# The driver would import pandas (seconds, 60 MB) to ask whether the rows given to it are a DataFrame.
vars(options).update(pd=None, pd_time_test=None)

Result = TypeVar("Result")

_HINTS = {
    159: "it took too long",
    241: "it needs more memory than FACTA_STORE_MEMORY_BYTES",
    243: "the disk is full",
    497: "the store's configuration does not allow it",
}
_MISREAD = set("?*{}'\"\\`")
"""Characters that the engine takes for a pattern, an option or a quote in a path."""

_TABLE = re.compile(r"(evidence|ux)\.[a-z_]+")
_TEXTS = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:\\.|''|[^'\\])*'|[`\"]([^`\"]*)[`\"]", re.DOTALL)
_REACH = re.compile(r";|\binto\s+outfile\b|\bfile\s*\(|\\", re.IGNORECASE)


class EmbeddedStore(Store):
    """A store in this process; made by `at`."""

    def __init__(self, data: Path, lock: IO[str], connect: Callable[[bool], Any]) -> None:
        self.folder = data / "chdb"
        self._scratch = data / "chdb-scratch"
        self._lock_file = lock
        self._connect = connect
        self._writer = connect(False)
        self._write_lock = threading.Lock()
        self._readers: queue.LifoQueue[Any] = queue.LifoQueue()
        self._opened = 0
        self._columns: dict[str, dict[str, Any]] = {}
        self._closed = False

    @classmethod
    def at(cls, data: Path, *, memory_bytes: int = DEFAULT_MEMORY_BYTES) -> "EmbeddedStore":
        """The store in the data folder `data`, made when there is none.

        One that does not open is renamed to `chdb.broken-<n>` and made anew (`rebuilt`). Raises
        StoreHeldError, or StoreError when an empty one does not open either.
        """
        data = data.resolve()
        if misread := set(str(data)) & _MISREAD:
            raise StoreError(0, f"FACTA_DATA: a path with {min(misread)} cannot be used")
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = _hold(data)
        try:
            _empty(data / "chdb-scratch")
            connect = _connector(data, memory_bytes)
            return _opened(data, lock, connect)
        except BaseException:
            lock.close()
            raise

    def migrate(self) -> list[str]:
        with self._write_lock:
            for statement in migrations.RECORD:
                self._command(statement)
        recorded = self.query("SELECT name, sha256 FROM evidence.migrations")
        applied = {row["name"]: row["sha256"] for row in recorded}
        done = []
        for migration in migrations.pending(migrations.read(), applied):
            with self._write_lock:
                for statement in migration.statements:
                    self._command(statement)
            record = {"name": migration.name, "sha256": migration.sha256}
            self.insert("evidence.migrations", [record])
            done.append(migration.name)
        return done

    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if not rows:
            return
        names = list(rows[0])
        with self._write_lock:
            self._check_open()
            types = self._types(table, names)
            try:
                columns = [[row[name] for row in rows] for name in names]
            except KeyError as error:
                raise StoreError(0, f"{table}: a row has no column {error}") from None
            if any(len(row) != len(names) for row in rows):
                raise StoreError(0, f"{table}: rows of one insert must have the same columns")
            self._insert(table, names, types, columns)

    def query(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        _check_reach(sql)
        with self._reader() as client:
            result = _guarded(
                lambda: client.query(
                    sql, parameters=dict(params or {}), query_formats={"FixedString": "string"}
                )
            )
            return list(result.named_results())

    def truncate(self, table: str) -> None:
        with self._write_lock:
            self._command(f"TRUNCATE TABLE {_table(table)}")

    def ready(self) -> bool:
        try:
            return self.query("SELECT 1 AS one") == [{"one": 1}]
        except StoreError:
            return False

    def close(self) -> None:
        with self._write_lock:
            if self._closed:
                return
            self._closed = True
            self._writer.close()
            for _ in range(self._opened):
                self._readers.get().close()
            self._lock_file.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(0, "the store is closed")

    def _command(self, sql: str) -> None:
        self._check_open()
        _guarded(lambda: self._writer.command(sql))

    def _types(self, table: str, names: list[str]) -> list[Any]:
        """The types of `names`, from a description of the table that is read once."""
        if table not in self._columns:
            context = _guarded(lambda: self._writer.create_insert_context(_table(table)))
            self._columns[table] = dict(
                zip(context.column_names, context.column_types, strict=True)
            )
        known = self._columns[table]
        for name in names:
            if name not in known:
                raise StoreError(16, f"{table} has no such column as a row to insert names")
        return [known[name] for name in names]

    def _insert(self, table: str, names: list[str], types: list[Any], columns: list[Any]) -> None:
        """Insert as Native from a file of our own: the driver's would stay in /tmp after a kill."""
        try:
            body = self._native(table, names, types, columns)
        except UnicodeEncodeError:
            body = self._native(table, names, types, [_escaped(column) for column in columns])
        listed = ", ".join(f"`{name}`" for name in names)
        with tempfile.NamedTemporaryFile(dir=self._scratch, suffix=".native") as file:
            file.writelines(body)
            file.flush()
            self._command(f"INSERT INTO {table} ({listed}) FROM INFILE '{file.name}' FORMAT Native")

    def _native(
        self, table: str, names: list[str], types: list[Any], columns: list[Any]
    ) -> list[bytes]:
        failures: list[Exception] = []
        context = _guarded(
            lambda: self._writer.create_insert_context(
                table, names, column_types=types, column_oriented=True, data=columns
            )
        )
        head = f"INSERT INTO {table} (".encode()
        chunks = list(NativeTransform.build_insert(context, failures.append))
        for failure in failures:
            if isinstance(failure, UnicodeEncodeError):
                raise failure
            raise StoreError(53, f"{table}: a value does not fit its column") from None
        return [c.partition(b"\n")[2] if c.startswith(head) else c for c in chunks]

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        """A read-only handle that nobody else uses meanwhile."""
        client = self._free_reader()
        try:
            yield client
        finally:
            self._readers.put(client)

    def _free_reader(self) -> Any:
        try:
            return self._readers.get_nowait()
        except queue.Empty:
            pass
        with self._write_lock:
            self._check_open()
            if self._opened < READERS:
                client = _guarded(lambda: self._connect(True))
                self._opened += 1
                return client
        return self._readers.get()


def _hold(data: Path) -> IO[str]:
    """The lock file, locked and with this process's id in it; raises StoreHeldError."""
    lock = (data / "store.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _check_engine_lock(data / "chdb" / "status")
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise StoreHeldError(0, f"process {holder} has the store in {data} open") from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _check_engine_lock(status: Path) -> None:
    """Raise BlockingIOError when an engine outside Facta has the folder open."""
    if status.exists():
        with status.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)


def _connector(data: Path, memory_bytes: int) -> Callable[[bool], Any]:
    """Write the engine's configuration; a function that opens a handle (True: read-only)."""
    config = data / "chdb-engine.xml"
    text = CONFIG.read_text(encoding="utf-8")
    text = text.replace("{{path}}", escape(str(config))).replace("{{memory}}", str(memory_bytes))
    config.write_text(text, encoding="utf-8")

    def connect(read_only: bool) -> Any:
        return clickhouse_connect.get_client(
            interface="chdb",
            path=str(data / "chdb"),
            chdb_options={"config-file": str(config)},
            settings={"readonly": "1"} if read_only else {},
        )

    return connect


def _opened(data: Path, lock: IO[str], connect: Callable[[bool], Any]) -> EmbeddedStore:
    folder = data / "chdb"
    fresh = not folder.exists()
    store = _try_open(data, lock, connect)
    if store is None and not fresh:
        aside = _set_aside(folder)
        store = _try_open(data, lock, connect)
        if store is None:
            shutil.rmtree(folder, ignore_errors=True)
            aside.rename(folder)
        fresh = True
    if store is None:
        raise StoreError(36, f"the store in {data} does not open; is its disk full or read-only?")
    store.rebuilt = fresh
    return store


def _try_open(data: Path, lock: IO[str], connect: Callable[[bool], Any]) -> EmbeddedStore | None:
    try:
        store = EmbeddedStore(data, lock, connect)
    except ClickHouseError:
        return None
    if store.ready():
        return store
    store.close()
    return None


def _set_aside(folder: Path) -> Path:
    number = 1
    while (aside := folder.with_name(f"chdb.broken-{number}")).exists():
        number += 1
    return folder.rename(aside)


def _table(name: str) -> str:
    if not _TABLE.fullmatch(name):
        raise StoreError(60, "a table's name is evidence.<name> or ux.<name>")
    return name


def _check_reach(sql: str) -> None:
    """Refuse what the engine's grants cannot: several statements, INTO OUTFILE, scalar file()."""
    bare = _TEXTS.sub(lambda text: text[1] or " ", sql)
    if _REACH.search(bare):
        raise StoreError(497, "a query is one SELECT that reads tables only")


def _escaped(column: list[Any]) -> list[Any]:
    """Lone surrogates, for which UTF-8 has no bytes, as backslash escapes."""
    return [
        value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
        for value in column
    ]


def _guarded(call: Callable[[], Result]) -> Result:
    """The result of `call`; what the driver raises holds values and becomes a StoreError."""
    try:
        return call()
    except ClickHouseError as error:
        code, name = getattr(error, "code", None) or 0, getattr(error, "name", None) or "error"
    except (TypeError, ValueError, OverflowError, AttributeError, KeyError):
        code, name = 53, "TYPE_MISMATCH"
    hint = _HINTS.get(code, "look it up under this name in ClickHouse's error codes")
    raise StoreError(code, f"the store answered {name} ({code}): {hint}")
