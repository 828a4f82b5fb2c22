"""`index.db`: what is in the ledger. The leaves, the tree's frontier, where content lies.

An observation is in the ledger when its leaf is committed here. Rows in a segment without a leaf
here were never acknowledged. Leaf rows never change; what changes (repeats, mark) has tables apart.
"""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import apsw

from facta.ledger.database import Log, commit, rolled_back_on_error, settle
from facta.ledger.errors import LedgerDamagedError
from facta.ledger.merkle import Frontier

FORMAT = 1

_SCHEMA = """
CREATE TABLE ledger (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    ledger_id TEXT NOT NULL,     -- random, made once
    openings INTEGER NOT NULL,   -- how often a writer has opened it
    frontier BLOB NOT NULL,      -- of the tree over all leaves
    next_object INTEGER NOT NULL -- first free object number of the newest segment
) STRICT;
CREATE TABLE mark (one INTEGER PRIMARY KEY CHECK (one = 1), projected INTEGER NOT NULL) STRICT;
CREATE TABLE tenants (no INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE segments (
    no INTEGER PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    created_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE leaves (
    seq INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    leaf BLOB NOT NULL,
    tenant INTEGER NOT NULL
) STRICT;
CREATE TABLE repeats (seq INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
CREATE TABLE objects (
    hash BLOB NOT NULL,       -- the commitment
    tenant INTEGER NOT NULL,
    segment INTEGER NOT NULL, -- where its data lies
    no INTEGER NOT NULL,      -- and under which number
    kinds INTEGER NOT NULL,   -- sum of KIND_BITS
    PRIMARY KEY (hash, tenant)
) STRICT, WITHOUT ROWID;
"""

KIND_BITS = {"deed": 1, "text": 2, "ux": 4, "item": 8, "link": 16}


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """A segment as the index knows it: its number, its first seq, when it was made (our clock)."""

    no: int
    first_seq: int
    created_ns: int


@dataclass(slots=True)
class Change:
    """What one group commit adds to the index; `tenants`, by number, are those not seen before."""

    leaves: list[tuple[int, bytes, bytes, int]] = field(default_factory=list)
    objects: list[tuple[bytes, int, int, int, int]] = field(default_factory=list)
    kinds: list[tuple[int, bytes, int]] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)
    tenants: dict[str, int] = field(default_factory=dict)


class Index:
    """The writer's view of index.db.

    All methods raise apsw.Error, those that commit CommitFailedError too; after either it must be
    closed and opened anew.
    """

    def __init__(self, connection: apsw.Connection, now_ns: int, *, has_segments: bool) -> None:
        self._connection = connection
        version = connection.pragma("user_version")
        if version == 0 and has_segments:
            raise LedgerDamagedError(
                "index.db is missing beside its segments: restore it from a backup"
            )
        if version == 0:
            self._create(now_ns)
        elif version != FORMAT:
            raise LedgerDamagedError(
                f"index.db has format {version}, this program reads {FORMAT}: use its own version"
            )
        settle(connection)
        self.openings = self._count_opening()
        self.log = Log(connection)
        self.tenants: dict[str, int] = {
            name: no for no, name in connection.execute("SELECT no, name FROM tenants")
        }
        self.ledger_id: str = connection.execute("SELECT ledger_id FROM ledger").get
        self.next_object: int = connection.execute("SELECT next_object FROM ledger").get
        self.frontier = Frontier.from_bytes(connection.execute("SELECT frontier FROM ledger").get)
        self.projected: int = connection.execute("SELECT projected FROM mark").get
        newest = connection.execute("SELECT * FROM segments ORDER BY no DESC LIMIT 1").get
        self.segment = SegmentRecord(*newest)

    def _create(self, now_ns: int) -> None:
        with rolled_back_on_error(self._connection):
            self._connection.execute(_SCHEMA)
            self._connection.pragma("user_version", FORMAT)
            self._connection.execute(
                "INSERT INTO ledger VALUES (1, ?, 0, ?, 0)",
                (secrets.token_hex(16), Frontier().to_bytes()),
            )
            self._connection.execute("INSERT INTO mark VALUES (1, 0)")
            self._connection.execute("INSERT INTO segments VALUES (1, 0, ?)", (now_ns,))
            commit(self._connection)

    def _count_opening(self) -> int:
        # A commit of its own, for its effect on the log: frames of an earlier commit that failed may
        # still lie behind the last good one, and would count again after a crash. This overwrites
        # them, so from here on what this connection shows is what there is.
        with rolled_back_on_error(self._connection):
            self._connection.execute("UPDATE ledger SET openings = openings + 1")
            commit(self._connection)
        return int(self._connection.execute("SELECT openings FROM ledger").get)

    def seqs(self, ids: Sequence[bytes]) -> dict[bytes, int]:
        """The seq of each of these ids that the ledger holds."""
        if not ids:
            return {}
        sql = "SELECT id, seq FROM leaves WHERE id IN carray(?)"
        return dict(self._connection.execute(sql, (apsw.carray(tuple(ids)),)))

    def kinds(self, hashes: Sequence[bytes]) -> dict[tuple[bytes, int], int]:
        """The kinds (bits) under which these commitments are kept, by (commitment, tenant)."""
        if not hashes:
            return {}
        sql = "SELECT hash, tenant, kinds FROM objects WHERE hash IN carray(?)"
        rows = self._connection.execute(sql, (apsw.carray(tuple(hashes)),))
        return {(hash_, tenant): kinds for hash_, tenant, kinds in rows}

    def commit(self, change: Change, next_object: int) -> None:
        """Add a group, fsynced. The frontier grows by the change's leaves."""
        frontier = self.frontier.copy()
        frontier.extend(leaf for _, _, leaf, _ in change.leaves)
        execute, many = self._connection.execute, self._connection.executemany
        with rolled_back_on_error(self._connection):
            many("INSERT INTO tenants VALUES (?, ?)", ((n, t) for t, n in change.tenants.items()))
            many("INSERT INTO leaves VALUES (?, ?, ?, ?)", change.leaves)
            many("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", change.objects)
            many("UPDATE objects SET kinds = kinds | ? WHERE hash = ? AND tenant = ?", change.kinds)
            many(
                "INSERT INTO repeats VALUES (?, ?) "
                "ON CONFLICT (seq) DO UPDATE SET count = count + excluded.count",
                change.repeats.items(),
            )
            execute(
                "UPDATE ledger SET frontier = ?, next_object = ?",
                (frontier.to_bytes(), next_object),
            )
            commit(self._connection)
        self.tenants |= change.tenants
        self.frontier, self.next_object = frontier, next_object

    def add_segment(self, now_ns: int) -> None:
        """Begin a new segment at the next seq, fsynced."""
        record = SegmentRecord(self.segment.no + 1, self.frontier.size, now_ns)
        with rolled_back_on_error(self._connection):
            self._connection.execute(
                "INSERT INTO segments VALUES (?, ?, ?)",
                (record.no, record.first_seq, record.created_ns),
            )
            self._connection.execute("UPDATE ledger SET next_object = 0")
            commit(self._connection)
        self.segment, self.next_object = record, 0

    def mark(self, projected: int) -> None:
        """Keep how many observations the store has, fsynced."""
        with rolled_back_on_error(self._connection):
            self._connection.execute("UPDATE mark SET projected = ?", (projected,))
            commit(self._connection)
        self.projected = projected

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._connection.close()


def kinds_of(bits: int) -> set[str]:
    """The names of the object kinds in a sum of KIND_BITS."""
    return {name for name, bit in KIND_BITS.items() if bits & bit}


def segment_of(seq: int, segments: Iterable[SegmentRecord]) -> SegmentRecord:
    """The segment that holds a seq; `segments` in order of their numbers, the first from seq 0."""
    return [segment for segment in segments if segment.first_seq <= seq][-1]
