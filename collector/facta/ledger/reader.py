"""Reads: connections of their own, from a pool, so that they never wait for the writer."""

import contextlib
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import get_args

import apsw

from facta.ledger.canonical import NotCanonicalError, decode_row
from facta.ledger.database import connect_reader
from facta.ledger.errors import LedgerDamagedError, LedgerUnreadable
from facta.ledger.index import SegmentRecord, kinds_of, segment_of
from facta.ledger.segments import segment_path
from facta.ledger.zstd import decompress
from facta.model.observation import Object, ObjectKind, Observation

_OPEN_SEGMENTS = 8
_KINDS: dict[str, ObjectKind] = {kind: kind for kind in get_args(ObjectKind)}


@dataclass(frozen=True, slots=True)
class Row:
    """An observation at its place: seq (from 0, gapless), receipt time, leaf hash as 64 hex digits."""

    seq: int
    received_ns: int
    leaf: str
    observation: Observation


class Reader:
    """One set of read connections; for one thread at a time.

    Raises apsw.Error for unreadable files, LedgerDamagedError for files that do not fit each other.
    """

    def __init__(self, directory: Path, vfs: str | None) -> None:
        self._directory = directory
        self._vfs = vfs
        self.index = connect_reader(directory / "index.db", vfs)
        self._segments: OrderedDict[int, apsw.Connection] = OrderedDict()

    def segments(self) -> list[SegmentRecord]:
        """All segments, in order."""
        return [SegmentRecord(*row) for row in self.index.execute("SELECT * FROM segments")]

    def segment(self, no: int) -> apsw.Connection:
        """A connection to a segment."""
        if no not in self._segments:
            path = segment_path(self._directory, no)
            if not path.exists():
                raise LedgerDamagedError(f"{path.name} is missing: restore it from a backup")
            self._segments[no] = connect_reader(path, self._vfs)
        self._segments.move_to_end(no)
        if len(self._segments) > _OPEN_SEGMENTS:
            self._segments.popitem(last=False)[1].close()
        return self._segments[no]

    def leaves(self, after_seq: int, limit: int) -> list[tuple[int, bytes, bytes]]:
        """(seq, id, leaf) of at most `limit` leaves with a greater seq, in order."""
        sql = "SELECT seq, id, leaf FROM leaves WHERE seq > ? ORDER BY seq LIMIT ?"
        return list(self.index.execute(sql, (after_seq, limit)))

    def raw_rows(self, first: int, last: int) -> dict[int, bytes]:
        """The canonical rows with these seqs (both included) that are there."""
        rows: dict[int, bytes] = {}
        segments = self.segments()
        begin = segment_of(first, segments).no
        for record, following in zip(segments, [*segments[1:], None], strict=True):
            end = last if following is None else min(last, following.first_seq - 1)
            if record.no >= begin and record.first_seq <= end:
                sql = "SELECT seq, row FROM rows WHERE seq BETWEEN ? AND ?"
                bounds = (max(first, record.first_seq), end)
                rows.update(self.segment(record.no).execute(sql, bounds))
        return rows

    def rows(self, after_seq: int, limit: int) -> list[Row]:
        """As Ledger.rows."""
        leaves = self.leaves(after_seq, limit)
        if not leaves:
            return []
        raw = self.raw_rows(leaves[0][0], leaves[-1][0])
        return [_row(seq, id_, leaf, raw.get(seq)) for seq, id_, leaf in leaves]

    def has_tenant(self, tenant: str) -> bool:
        """Whether the ledger holds anything of a tenant."""
        return self.index.execute("SELECT 1 FROM tenants WHERE name = ?", (tenant,)).get is not None

    def kinds(self, commit: str, tenant: str) -> set[str]:
        """As Ledger.kinds."""
        sql = (
            "SELECT kinds FROM objects WHERE hash = ? "
            "AND tenant = (SELECT no FROM tenants WHERE name = ?)"
        )
        row = self.index.execute(sql, (bytes.fromhex(commit), tenant)).fetchone()
        return kinds_of(row[0]) if row else set()

    def objects(self, commits: Iterable[str], tenant: str) -> dict[str, Object]:
        """As Ledger.objects."""
        hashes = tuple({bytes.fromhex(commit) for commit in commits})
        if not hashes:
            return {}
        sql = (
            "SELECT segment, no FROM objects WHERE hash IN carray(?) "
            "AND tenant = (SELECT no FROM tenants WHERE name = ?) ORDER BY segment"
        )
        places = list(self.index.execute(sql, (apsw.carray(hashes), tenant)))
        found: dict[str, Object] = {}
        for segment, numbers in groupby(places, key=lambda place: place[0]):
            found |= self._objects_in(segment, [no for _, no in numbers])
        return found

    def _objects_in(self, segment: int, numbers: Sequence[int]) -> dict[str, Object]:
        sql = "SELECT hash, kind, salt, sha256, data FROM objects WHERE no IN carray(?)"
        rows = self.segment(segment).execute(sql, (apsw.carray(array("q", numbers)),))
        return {
            hash_.hex(): Object(
                hash_.hex(), _KINDS[kind], _data(data, segment), salt.hex(), sha.hex()
            )
            for hash_, kind, salt, sha, data in rows
        }

    def repeats(self) -> int:
        """How many observations came that were there already."""
        return int(self.index.execute("SELECT coalesce(sum(count), 0) FROM repeats").get)

    def close(self) -> None:
        """Close all connections."""
        for connection in (self.index, *self._segments.values()):
            with contextlib.suppress(apsw.Error):
                connection.close()


def _row(seq: int, id_: bytes, leaf: bytes, raw: bytes | None) -> Row:
    if raw is None:
        raise LedgerDamagedError(f"row {seq} is missing: run the verification of the ledger")
    try:
        observation, received_ns = decode_row(raw, id_.hex())
    except NotCanonicalError:
        raise LedgerDamagedError(
            f"row {seq} is not what was written: run the verification of the ledger"
        ) from None
    return Row(seq, received_ns, leaf.hex(), observation)


def _data(frame: bytes, segment: int) -> bytes:
    try:
        return decompress(frame)
    except ValueError:
        raise LedgerDamagedError(
            f"a content in segment {segment} is not what was written: run the verification"
        ) from None


class Readers:
    """A pool of Readers for any number of threads."""

    def __init__(self, directory: Path, vfs: str | None) -> None:
        self._directory = directory
        self._vfs = vfs
        self._idle: deque[Reader] = deque()
        self._closed = False

    @contextmanager
    def reader(self) -> Iterator[Reader]:
        """A Reader for the length of a with block. Raises LedgerUnreadable, LedgerDamagedError."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = self._new()
        try:
            yield reader
        except apsw.Error as error:
            reader.close()
            raise _unreadable(error) from None
        except BaseException:
            reader.close()
            raise
        self._idle.append(reader)
        if self._closed:
            self.close()

    def _new(self) -> Reader:
        try:
            return Reader(self._directory, self._vfs)
        except apsw.Error as error:
            raise _unreadable(error) from None

    def close(self) -> None:
        """Close the connections; those in use close when their with block ends."""
        self._closed = True
        with contextlib.suppress(IndexError):
            while True:
                self._idle.pop().close()


def _unreadable(error: apsw.Error) -> LedgerDamagedError | LedgerUnreadable:
    name = type(error).__name__
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError, apsw.SQLError)):
        return LedgerDamagedError(f"a file of the ledger is damaged ({name}): run the verification")
    return LedgerUnreadable(f"the ledger cannot be read now ({name})")
