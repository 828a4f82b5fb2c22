"""The ledger: an append-only journal of observations that keeps what it has acknowledged.

`Ledger.append` returns only when its observations are on stable storage. They are numbered without
gaps (`seq`, from 0) and are the leaves of an RFC 6962 Merkle tree. All methods are thread-safe.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import apsw

from facta.ledger.database import CommitFailedError
from facta.ledger.errors import LedgerDamagedError, LedgerFull
from facta.ledger.files import Files, Lock
from facta.ledger.group import Appended, OnPoint, prepare
from facta.ledger.keys import TenantKeys
from facta.ledger.merkle import Frontier
from facta.ledger.reader import Readers, Row
from facta.ledger.verify import problems
from facta.ledger.writer import Mark, Options, Writer
from facta.model.observation import Append, Object

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Stats:
    """What `facta` shows of the ledger: bytes on disk, segments, repeated observations (not stored)."""

    bytes: int
    segments: int
    repeats: int


class Ledger:
    """The ledger of one data directory, owned by one process. Open it with `Ledger.open`."""

    def __init__(
        self, options: Options, lock: Lock, *, max_backlog_rows: int, min_free_bytes: int
    ) -> None:
        self._options = options
        self._lock = lock
        self._max_backlog_rows = max_backlog_rows
        self._min_free_bytes = min_free_bytes
        self._writer = Writer(options)
        self._projected = self._writer.head.projected
        self._readers = Readers(options.directory, options.vfs)
        self._keys = TenantKeys(options.directory / "keys", options.files, self._has_tenant)
        self._writer.start()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        max_backlog_rows: int = 2_000_000,
        min_free_bytes: int = 64 * MIB,
        segment_bytes: int = 1024 * MIB,
        clock: Callable[[], int] = time.time_ns,
        vfs: str | None = None,
        on_point: OnPoint | None = None,
        files: Files | None = None,
    ) -> Self:
        """Open the ledger in the directory `path`, or make it there.

        `clock` gives nanoseconds since 1970. `vfs`, `files` and `on_point` are for tests: SQLite's
        file layer, the other file operations, and a function called at named points of a write.
        Raises LedgerLockedError when another process has it, LedgerDamagedError when it cannot be
        what was written.
        """
        files = files or Files()
        try:
            files.make_directory(path)
            files.sync_directory(path.parent)
            lock = Lock(path / "lock")
        except OSError as error:
            raise _cannot_open(path, error) from None
        options = Options(path, segment_bytes, clock, vfs, files, on_point or (lambda _: None))
        try:
            return cls(
                options, lock, max_backlog_rows=max_backlog_rows, min_free_bytes=min_free_bytes
            )
        except (apsw.Error, OSError, CommitFailedError) as error:
            lock.release()
            raise _cannot_open(path, error) from None
        except BaseException:
            lock.release()
            raise

    @property
    def ledger_id(self) -> str:
        """32 hex digits, random, made once: names this ledger among many."""
        return self._writer.head.ledger_id

    @property
    def size(self) -> int:
        """How many observations there are, which is also the next seq."""
        return self._writer.head.frontier.size

    def frontier(self) -> Frontier:
        """The tree's frontier over all observations."""
        return self._writer.head.frontier.copy()

    def root(self) -> str:
        """The RFC 6962 root over all observations, 64 hex digits."""
        return self._writer.head.frontier.root().hex()

    def tenant_key(self, tenant: str) -> bytes:
        """The tenant's key, 32 bytes, made at first use and then on stable storage.

        Raises LedgerFull when it cannot be written, LedgerUnreadable, LedgerDamagedError when it
        was lost.
        """
        try:
            return self._keys.key(tenant)
        except OSError as error:
            raise LedgerFull(f"cannot keep a tenant key ({type(error).__name__})") from None

    def append(self, append: Append) -> Appended:
        """Add observations (all of one tenant) and their objects; returns when they are safe.

        Ids are computed here: what `Observation.id` holds is not looked at. An observation that is
        there already is counted and not stored again, and so is an object. Objects without any
        observation are not stored. Raises LedgerFull (nothing was kept), LedgerUnknown (it may be
        kept; sending it again is safe), NotCanonicalError (never storable; see `canonical`).
        """
        if not append.observations:
            return Appended(0, 0)
        self._check_room()
        key = self.tenant_key(append.observations[0].tenant)
        job = prepare(append, key, self._options.clock())
        self._writer.submit(job)
        return job.done.result()

    def _check_room(self) -> None:
        if self.size - self._projected >= self._max_backlog_rows:
            raise LedgerFull("too many observations wait for the store: is it there?", 10)
        try:
            free = self._options.files.free_bytes(self._options.directory)
        except OSError as error:
            raise LedgerFull(f"cannot look at the disk ({type(error).__name__})") from None
        if free < self._min_free_bytes:
            raise LedgerFull(f"the disk is full: {free // MIB} MiB are left", 30)

    @property
    def projected(self) -> int:
        """How many observations the store has: it has each seq below this number."""
        return self._projected

    def mark_projected(self, projected: int) -> None:
        """Note that the store has each seq below `projected`; on stable storage when it returns.

        The number counts against the backlog at once, also when keeping it fails (LedgerFull,
        LedgerUnknown): the next mark makes up for it, and after a restart the older one holds.
        """
        if not 0 <= projected <= self.size:
            raise ValueError(f"{projected} is not between 0 and the ledger's size")
        self._projected = projected
        mark = Mark(projected, Future())
        self._writer.submit(mark)
        mark.done.result()

    def rows(self, after_seq: int, limit: int) -> list[Row]:
        """At most `limit` observations whose seq is greater than `after_seq`, in order.

        Begin with -1; go on with the last row's seq. Raises LedgerUnreadable, LedgerDamagedError.
        """
        with self._readers.reader() as reader:
            return reader.rows(after_seq, limit)

    def object(self, commit: str, tenant: str) -> Object | None:
        """The object kept under a commitment (64 hex digits), if it is; with its first kind."""
        return self.objects([commit], tenant).get(commit)

    def objects(self, commits: Iterable[str], tenant: str) -> dict[str, Object]:
        """Those of these objects that are kept, by commitment."""
        with self._readers.reader() as reader:
            return reader.objects(commits, tenant)

    def kinds(self, commit: str, tenant: str) -> set[str]:
        """All kinds under which an object came."""
        with self._readers.reader() as reader:
            return reader.kinds(commit, tenant)

    def stats(self) -> Stats:
        """Bytes on disk, segments, repeats."""
        with self._readers.reader() as reader:
            repeats = reader.repeats()
        used = self._options.files.used_bytes(self._options.directory)
        return Stats(used, self._writer.head.segments, repeats)

    def verify(self) -> list[str]:
        """What does not hold, a line each, empty when all is well: see `facta.ledger.verify`."""
        with self._readers.reader() as reader:
            return list(problems(reader, self._keys.path))

    def _has_tenant(self, tenant: str) -> bool:
        with self._readers.reader() as reader:
            return reader.has_tenant(tenant)

    def close(self) -> None:
        """Write what waits, then let go of the files. Appends after this raise LedgerFull."""
        self._writer.close()
        self._readers.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _cannot_open(path: Path, error: Exception) -> LedgerDamagedError:
    return LedgerDamagedError(
        f"the ledger in {path} cannot be opened ({type(error).__name__}): is the disk full or gone?"
    )
