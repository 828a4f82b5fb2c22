"""SQLite connections as the ledger needs them: write-ahead log, fsynced at each commit.

The driver is apsw, and `vfs` names the file layer beneath it, so that tests can put a faulty one
under the very driver that ships.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

SYNCHRONOUS = "FULL"  # fsync the log at each commit; less would acknowledge what a power cut loses
BUSY_MS = 10_000
JOURNAL_BYTES = 64 * 1024 * 1024
CHECKPOINT_PAGES = 4_000
"""Pages of write-ahead log (4 KiB each) after which the writer moves them into the database."""


class CommitFailedError(Exception):
    """A COMMIT raised: whether it took place is unknown until the database is opened anew."""


def connect(path: Path, vfs: str | None, *, cache_kib: int) -> apsw.Connection:
    """A connection for the writer; makes the file where it is missing. Raises apsw.Error."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    connection = apsw.Connection(str(path), flags=flags, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("journal_mode", "WAL")
        connection.pragma("synchronous", SYNCHRONOUS)
        connection.pragma("cache_size", -cache_kib)
        connection.pragma("journal_size_limit", JOURNAL_BYTES)
        # The writer checkpoints itself, after it has answered, so no commit pays for it.
        connection.wal_autocheckpoint(0)
    except apsw.Error:
        connection.close()
        raise
    return connection


def connect_reader(path: Path, vfs: str | None) -> apsw.Connection:
    """A connection that cannot change anything. Raises apsw.Error, also when the file is missing."""
    # Not SQLITE_OPEN_READONLY: a reader must be able to make the shared memory of the log.
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, vfs=vfs)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.pragma("query_only", 1)
        connection.wal_autocheckpoint(0)
    except apsw.Error:
        connection.close()
        raise
    return connection


@contextmanager
def rolled_back_on_error(connection: apsw.Connection) -> Iterator[None]:
    """A write transaction that the body commits with `commit`; on an error nothing of it stays."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # After some errors SQLite has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def commit(connection: apsw.Connection) -> None:
    """Commit, on stable storage when this returns. Raises CommitFailedError."""
    try:
        connection.execute("COMMIT")
    except apsw.Error as error:
        raise CommitFailedError(type(error).__name__) from None


def settle(connection: apsw.Connection) -> None:
    """Put on stable storage all that a newly opened database shows. Raises apsw.Error.

    After a kill or a failed fsync the log may show commits that only the page cache holds. A repeat
    of such an observation must not be acknowledged before its first copy is safe. The checkpoint
    fsyncs the log, copies it into the database and fsyncs that too.
    """
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


class Log:
    """Watches how long a connection's write-ahead log has become, and moves it into the database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._pages = 0
        connection.set_wal_hook(self._note)

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._pages = pages
        return apsw.SQLITE_OK

    def checkpoint(self, *, however_short: bool = False) -> None:
        """Move the log into the database when it is long. Raises apsw.Error."""
        if however_short or self._pages >= CHECKPOINT_PAGES:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            self._pages = 0
