"""What the resolver remembers between runs: clusters, and which rows it has written.

Everything here follows from the ledger and may be thrown away; then all is resolved anew. Rows are
noted before they are written, so that after a crash none is forgotten that may stand in the store.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

# Raised when these tables change, or what is resolved from the same observations: a file of another
# format is begun anew, and with it the resolved tables.
FORMAT = 1

_SCHEMA = """
CREATE TABLE IF NOT EXISTS key (name BLOB PRIMARY KEY, cluster INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS key_cluster ON key (cluster);
CREATE TABLE IF NOT EXISTS member (cluster INTEGER, seq INTEGER, PRIMARY KEY (cluster, seq)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS written (cluster INTEGER, name BLOB, place TEXT NOT NULL, digest BLOB,
    PRIMARY KEY (cluster, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS naming (hash BLOB, tenant TEXT, cluster INTEGER, how INTEGER NOT NULL,
    PRIMARY KEY (hash, tenant, cluster)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS naming_cluster ON naming (cluster);
CREATE TABLE IF NOT EXISTS shown (hash BLOB, tenant TEXT, tables INTEGER NOT NULL, sure INTEGER NOT NULL,
    PRIMARY KEY (hash, tenant)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dirty (cluster INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS cluster (cluster INTEGER PRIMARY KEY, tenant TEXT NOT NULL, members INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS number (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""

GONE = "\x00gone"  # deletions have fewer columns, so they are inserted apart


class Shown(NamedTuple):
    """The content tables in which a text stands (a sum), or, where that is not sure, may stand."""

    tables: int
    sure: bool


class Written(NamedTuple):
    """A row that stands, or may stand, in the store."""

    name: bytes
    place: str
    digest: bytes | None


def digest(*parts: str) -> bytes:
    """16 bytes that stand for some texts."""
    return hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]


class State:
    """The resolver's own file, for one thread. All methods raise apsw.Error."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = apsw.Connection(str(path))
        try:
            # What is noted before it is written must outlast a power cut, else rows stand in the
            # store that nobody knows of.
            self._db.execute(
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA busy_timeout=5000;"
            )
            self._make_tables()
        except BaseException:
            self._db.close()
            raise

    def _make_tables(self) -> None:
        with self.transaction():
            if self._db.pragma("user_version") != FORMAT:
                self._drop_tables()
            self._db.execute(_SCHEMA)
            self._db.pragma("user_version", FORMAT)

    def _drop_tables(self) -> None:
        tables = list(self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"))
        for (name,) in tables:
            self._db.execute(f'DROP TABLE "{name}"')

    def clear(self) -> None:
        """Forget everything."""
        with self.transaction():
            self._drop_tables()
            self._db.execute(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside, or after an error nothing of it."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            # After some errors (a full disk) SQLite has taken it back itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _one(self, sql: str, value: int | str) -> int:
        for row in self._db.execute(sql, (value,)):
            return int(row[0])
        return 0

    def number(self, name: str) -> int:
        """A number kept under a name; 0 at first."""
        row = self._db.execute("SELECT value FROM number WHERE name = ?", (name,)).fetchone()
        return row[0] if row else 0

    def set_number(self, name: str, value: int) -> None:
        """Keep a number."""
        self._db.execute("INSERT OR REPLACE INTO number VALUES (?, ?)", (name, value))

    def add(self, tenant: str, seq: int, keys: Iterable[str]) -> int:
        """Put one observation into the cluster of its keys, joining those that it connects."""
        names = [digest(tenant, key) for key in keys]
        found = {
            row[0]
            for name in names
            for row in self._db.execute("SELECT cluster FROM key WHERE name = ?", (name,))
        }
        home = self._joined(found) if found else self._new(tenant)
        self._db.executemany(
            "INSERT OR REPLACE INTO key VALUES (?, ?)", [(name, home) for name in names]
        )
        self._db.execute("INSERT OR IGNORE INTO member VALUES (?, ?)", (home, seq))
        self._db.execute(
            "UPDATE cluster SET members = members + ? WHERE cluster = ?", (self._db.changes(), home)
        )
        self._db.execute("INSERT OR IGNORE INTO dirty VALUES (?)", (home,))
        return home

    def _new(self, tenant: str) -> int:
        name = self.number("clusters") + 1
        self.set_number("clusters", name)
        self._db.execute("INSERT INTO cluster VALUES (?, ?, 0)", (name, tenant))
        return name

    def _joined(self, clusters: set[int]) -> int:
        """One cluster of several; the largest keeps its name, so that little is rewritten."""
        if len(clusters) == 1:
            return next(iter(clusters))
        sizes = {c: self._one("SELECT members FROM cluster WHERE cluster = ?", c) for c in clusters}
        home = max(clusters, key=lambda c: (sizes[c], -c))
        for other in clusters - {home}:
            self._db.execute("UPDATE key SET cluster = ? WHERE cluster = ?", (home, other))
            self._db.execute("UPDATE member SET cluster = ? WHERE cluster = ?", (home, other))
            self._db.execute(
                "INSERT INTO written SELECT ?, name, place, digest FROM written WHERE cluster = ? "
                "ON CONFLICT DO UPDATE SET digest = NULL",
                (home, other),
            )
            self._db.execute("DELETE FROM written WHERE cluster = ?", (other,))
            self._db.execute(
                "INSERT INTO naming SELECT hash, tenant, ?, how FROM naming WHERE cluster = ? "
                "ON CONFLICT DO UPDATE SET how = how | excluded.how",
                (home, other),
            )
            self._db.execute("DELETE FROM naming WHERE cluster = ?", (other,))
            self._db.execute("DELETE FROM dirty WHERE cluster = ?", (other,))
            self._db.execute("DELETE FROM cluster WHERE cluster = ?", (other,))
        self._db.execute(
            "UPDATE cluster SET members = ? WHERE cluster = ?", (sum(sizes.values()), home)
        )
        return home

    def dirty(self, most: int) -> list[tuple[int, str]]:
        """Clusters (with their tenants) that have changed since they were resolved."""
        sql = "SELECT cluster, tenant FROM dirty JOIN cluster USING (cluster) ORDER BY cluster LIMIT ?"
        return [(row[0], row[1]) for row in self._db.execute(sql, (most,))]

    def is_dirty(self, cluster: int) -> bool:
        """Whether a cluster has changed since it was resolved."""
        return bool(self._one("SELECT 1 FROM dirty WHERE cluster = ?", cluster))

    def clean(self, cluster: int) -> None:
        """A cluster has been resolved."""
        self._db.execute("DELETE FROM dirty WHERE cluster = ?", (cluster,))

    def members(self, cluster: int) -> list[int]:
        """The places in the ledger of a cluster's observations."""
        return [
            row[0]
            for row in self._db.execute(
                "SELECT seq FROM member WHERE cluster = ? ORDER BY seq", (cluster,)
            )
        ]

    def written(self, cluster: int) -> dict[bytes, Written]:
        """The rows noted for a cluster."""
        rows = self._db.execute(
            "SELECT name, place, digest FROM written WHERE cluster = ?", (cluster,)
        )
        return {row[0]: Written(*row) for row in rows}

    def note(self, cluster: int, rows: Iterable[Written]) -> None:
        """Note rows; one with digest None may or may not stand in the store."""
        self._db.executemany(
            "INSERT OR REPLACE INTO written VALUES (?, ?, ?, ?)",
            [(cluster, row.name, row.place, row.digest) for row in rows],
        )

    def forget(self, cluster: int, names: Iterable[bytes]) -> None:
        """Rows that were deleted in the store."""
        self._db.executemany(
            "DELETE FROM written WHERE cluster = ? AND name = ?", [(cluster, n) for n in names]
        )

    def contents(self, cluster: int) -> dict[str, int]:
        """The commitments that a cluster's rows name, and how."""
        sql = "SELECT hash, how FROM naming WHERE cluster = ?"
        return {row[0].hex(): row[1] for row in self._db.execute(sql, (cluster,))}

    def namings(self, tenant: str, commit: str) -> list[tuple[int, int]]:
        """The clusters that name a commitment, and how."""
        sql = "SELECT cluster, how FROM naming WHERE hash = ? AND tenant = ?"
        return list(self._db.execute(sql, (bytes.fromhex(commit), tenant)))

    def name(self, cluster: int, tenant: str, commits: dict[str, int]) -> None:
        """Note commitments that a cluster's rows name."""
        self._db.executemany(
            "INSERT OR REPLACE INTO naming VALUES (?, ?, ?, ?)",
            [(bytes.fromhex(commit), tenant, cluster, how) for commit, how in commits.items()],
        )

    def unname(self, cluster: int, commits: Iterable[str]) -> None:
        """Note that a cluster's rows no longer name these."""
        self._db.executemany(
            "DELETE FROM naming WHERE cluster = ? AND hash = ?",
            [(cluster, bytes.fromhex(commit)) for commit in commits],
        )

    def shown(self, tenant: str, commit: str) -> Shown:
        """Where a text stands."""
        sql = "SELECT tables, sure FROM shown WHERE hash = ? AND tenant = ?"
        row = self._db.execute(sql, (bytes.fromhex(commit), tenant)).fetchone()
        return Shown(row[0], bool(row[1])) if row else Shown(0, sure=True)

    def show(self, tenant: str, commit: str, shown: Shown) -> None:
        """Note where a text stands."""
        values = (bytes.fromhex(commit), tenant, shown.tables, shown.sure)
        self._db.execute("INSERT OR REPLACE INTO shown VALUES (?, ?, ?, ?)", values)

    def count_shown(self, table: int) -> int:
        """How many texts stand in a content table for sure."""
        return self._one("SELECT count(*) FROM shown WHERE sure AND tables & ?", table)

    def count(self, place: str) -> int:
        """How many rows of a table are noted as standing in the store."""
        sql = "SELECT count(*) FROM written WHERE place LIKE ? || ' %' AND digest IS NOT NULL"
        return self._one(sql, place)
