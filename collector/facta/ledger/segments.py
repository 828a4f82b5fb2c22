"""`segment-000001.db` and on: the rows of observations and the objects they refer to.

A segment is self-describing, so the index of content could be made again from the segments.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import apsw

from facta.ledger.database import Log, commit, connect, rolled_back_on_error, settle
from facta.ledger.errors import LedgerDamagedError
from facta.ledger.files import Files

FORMAT = 1

_SCHEMA = """
CREATE TABLE rows (seq INTEGER PRIMARY KEY, row BLOB NOT NULL) STRICT; -- canonical row
CREATE TABLE objects (
    no INTEGER PRIMARY KEY,
    hash BLOB NOT NULL,   -- the commitment
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    salt BLOB NOT NULL,   -- empty for item and link
    sha256 BLOB NOT NULL, -- of the data; empty for item and link
    data BLOB             -- zstd; NULL where only a further kind is noted of what is kept already
) STRICT;
CREATE TABLE opened (one INTEGER PRIMARY KEY CHECK (one = 1), opening INTEGER NOT NULL) STRICT;
INSERT INTO opened VALUES (1, 0);
"""

RowRecord = tuple[int, bytes]
ObjectRecord = tuple[int, bytes, str, str, bytes, bytes, bytes | None]

# Little: rows and objects are appended, never looked up by the writer.
_CACHE_KIB = 4_096


def segment_path(directory: Path, no: int) -> Path:
    """Where segment `no` lies."""
    return directory / f"segment-{no:06d}.db"


class Segment:
    """The newest segment, for the writer. Raises as Index does."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self.log = Log(connection)

    def drop_unacknowledged(self, next_seq: int, next_object: int, opening: int) -> None:
        """Remove what the index does not know, and settle what it does.

        To be called once at opening, after the index was settled: only then is it sure what was
        never acknowledged. `opening` counts the index's openings. Raises LedgerDamagedError when
        the segment has seen later ones: then the index is an old copy, and knows too little.
        """
        settle(self._connection)
        if self._connection.execute("SELECT opening FROM opened").get >= opening:
            raise LedgerDamagedError("index.db is older than its segments: restore both together")
        with rolled_back_on_error(self._connection):
            self._connection.execute("DELETE FROM rows WHERE seq >= ?", (next_seq,))
            self._connection.execute("DELETE FROM objects WHERE no >= ?", (next_object,))
            # See Index: a commit overwrites what a failed one may have left behind in the log.
            self._connection.execute("UPDATE opened SET opening = ?", (opening,))
            commit(self._connection)

    @contextmanager
    def transaction(self) -> Iterator[Callable[[], None]]:
        """The transaction of one group, and the function that commits it, fsynced."""
        with rolled_back_on_error(self._connection):
            yield lambda: commit(self._connection)

    def add(self, rows: Sequence[RowRecord], objects: Sequence[ObjectRecord]) -> None:
        """Append rows and objects to the transaction."""
        self._connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        self._connection.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", objects)

    def bytes_used(self) -> int:
        """Size of the database in bytes, with pages that are still in the log."""
        return int(self._connection.pragma("page_count")) * 4096

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._connection.close()


def open_segment(path: Path, vfs: str | None) -> Segment:
    """Open a segment that the index knows, or make it. Raises apsw.Error, LedgerDamagedError."""
    connection = connect(path, vfs, cache_kib=_CACHE_KIB)
    try:
        _make_tables(connection, path.name)
    except BaseException:
        connection.close()
        raise
    return Segment(connection)


def _make_tables(connection: apsw.Connection, name: str) -> None:
    version = connection.pragma("user_version")
    if version == FORMAT:
        return
    if version != 0:
        raise LedgerDamagedError(
            f"{name} has format {version}, this program reads {FORMAT}: use its own version"
        )
    with rolled_back_on_error(connection):
        connection.execute(_SCHEMA)
        connection.pragma("user_version", FORMAT)
        commit(connection)


def create_segment(path: Path, vfs: str | None, files: Files) -> Segment:
    """Make a segment that the index does not know yet, in the place of any remains of an attempt."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        files.unlink(path.with_name(path.name + suffix))
    files.sync_directory(path.parent)
    segment = open_segment(path, vfs)
    try:
        files.sync_directory(path.parent)
    except OSError:
        segment.close()
        raise
    return segment
