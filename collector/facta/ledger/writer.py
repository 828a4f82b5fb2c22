"""The one thread that writes: it takes all appends that wait, commits them together, answers all.

While a group is being fsynced the next one gathers, so the busier it is, the larger the groups; an
append that comes alone waits for nobody. After any error the files are closed and opened anew, so
that what they say is what there is.
"""

import contextlib
import logging
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import apsw

from facta.ledger.database import CommitFailedError, connect
from facta.ledger.errors import LedgerDamagedError, LedgerFull, LedgerUnknown
from facta.ledger.files import Files
from facta.ledger.group import Appended, Group, Job, OnPoint
from facta.ledger.index import Index
from facta.ledger.merkle import Frontier
from facta.ledger.segments import Segment, create_segment, open_segment, segment_path

GROUP_ROWS = 5_000
GROUP_BYTES = 64 * 1024 * 1024
DAY_NS = 86_400 * 10**9
# The index is looked up at random places (ids and commitments are hashes).
_INDEX_CACHE_KIB = 128 * 1024

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Head:
    """What is on stable storage; replaced as a whole after each commit."""

    ledger_id: str
    frontier: Frontier
    projected: int
    segments: int


@dataclass(frozen=True, slots=True)
class Options:
    """How a writer works: where its files are, when it begins a new segment, and its parts."""

    directory: Path
    segment_bytes: int
    clock: Callable[[], int]
    vfs: str | None
    files: Files
    on_point: OnPoint


@dataclass(slots=True)
class Mark:
    """A request to keep how many observations the store has."""

    projected: int
    done: "Future[None]"


class OpenFiles:
    """The index and the newest segment, open for writing.

    Raises apsw.Error, OSError, CommitFailedError; then it must be closed and made anew.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        directory = options.directory
        has_segments = any(directory.glob("segment-*.db"))
        connection = connect(directory / "index.db", options.vfs, cache_kib=_INDEX_CACHE_KIB)
        try:
            self.index = Index(connection, options.clock(), has_segments=has_segments)
            options.files.sync_directory(directory)
            self.segment = self._open_newest()
        except BaseException:
            connection.close()
            raise

    def _open_newest(self) -> Segment:
        index, options = self.index, self._options
        path = segment_path(options.directory, index.segment.no)
        size = index.frontier.size
        if size == index.segment.first_seq and index.next_object == 0:
            return create_segment(path, options.vfs, options.files)
        if not path.exists():
            raise LedgerDamagedError(f"{path.name} is missing: restore it from a backup")
        segment = open_segment(path, options.vfs)
        try:
            segment.drop_unacknowledged(size, index.next_object, index.openings)
        except BaseException:
            segment.close()
            raise
        return segment

    def rotate_when_due(self) -> None:
        """Begin a new segment when the newest has rows and is of another day, or full."""
        index, options = self.index, self._options
        now = options.clock()
        same_day = now // DAY_NS == index.segment.created_ns // DAY_NS
        full = self.segment.bytes_used() >= options.segment_bytes
        if index.frontier.size == index.segment.first_seq or (same_day and not full):
            return
        options.on_point("before_rotate")
        self.segment.log.checkpoint(however_short=True)
        path = segment_path(options.directory, index.segment.no + 1)
        segment = create_segment(path, options.vfs, options.files)
        try:
            index.add_segment(now)
        except BaseException:
            segment.close()
            raise
        self.segment.close()
        self.segment = segment
        options.on_point("after_rotate")

    def checkpoint(self) -> None:
        """Move long logs into their databases."""
        self.segment.log.checkpoint()
        self.index.log.checkpoint()

    def head(self) -> Head:
        """What is on stable storage now."""
        index = self.index
        return Head(index.ledger_id, index.frontier, index.projected, index.segment.no)

    def close(self) -> None:
        """Close both, whatever state they are in."""
        for part in (self.segment, self.index):
            with contextlib.suppress(apsw.Error):
                part.close()


class Writer(threading.Thread):
    """Owns the files. `submit` hands it a job; the job's future tells the outcome."""

    def __init__(self, options: Options) -> None:
        super().__init__(name="ledger-writer", daemon=True)
        self._options = options
        self._queue: queue.SimpleQueue[Job | Mark | None] = queue.SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._open: OpenFiles | None = OpenFiles(options)
        self.head = self._open.head()

    def submit(self, job: Job | Mark) -> None:
        """Queue a job. Raises LedgerFull after `close`."""
        with self._closing:
            if self._closed:
                raise LedgerFull("the ledger is closed")
            self._queue.put(job)

    def close(self) -> None:
        """Write what waits, then close the files."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self.join()

    def run(self) -> None:
        """Serve the queue until it is closed."""
        last = False
        while not last:
            jobs, last = self._take()
            self._serve([job for job in jobs if isinstance(job, Job)])
            for mark in jobs:
                if isinstance(mark, Mark):
                    self._mark(mark)
            self._after_answers()
        if self._open is not None:
            self._open.close()

    def _take(self) -> tuple[list[Job | Mark], bool]:
        """All that waits, up to a group's limits, and whether it is the last."""
        jobs: list[Job | Mark] = []
        rows = weight = 0
        item = self._queue.get()
        while item is not None:
            jobs.append(item)
            if isinstance(item, Job):
                rows, weight = rows + len(item.entries), weight + item.weight
            if rows >= GROUP_ROWS or weight >= GROUP_BYTES:
                return jobs, False
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return jobs, False
        return jobs, True

    def _serve(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        try:
            outcomes = self._write(jobs)
        except Exception as error:  # noqa: BLE001 - whoever waits must get an answer
            for job in jobs:
                job.done.set_exception(_told(error))
            self._reopen()
            return
        for job, outcome in zip(jobs, outcomes, strict=True):
            job.done.set_result(outcome)

    def _write(self, jobs: list[Job]) -> list[Appended]:
        opened = self._opened()
        opened.rotate_when_due()
        group = Group(jobs, opened.index)
        group.write(opened.segment, self._options.on_point)
        self.head = opened.head()
        return group.outcomes

    def _mark(self, mark: Mark) -> None:
        try:
            opened = self._opened()
            self._options.on_point("before_mark")
            opened.index.mark(mark.projected)
            self._options.on_point("after_mark")
        except Exception as error:  # noqa: BLE001 - as above
            mark.done.set_exception(_told(error))
            self._reopen()
            return
        self.head = opened.head()
        mark.done.set_result(None)

    def _after_answers(self) -> None:
        try:
            if self._open is not None:
                self._open.checkpoint()
        except apsw.Error as error:
            _log.warning("ledger: moving the log failed (%s): opening anew", type(error).__name__)
            self._reopen()

    def _opened(self) -> OpenFiles:
        if self._open is None:
            self._open = OpenFiles(self._options)
            self.head = self._open.head()
        return self._open

    def _reopen(self) -> None:
        if self._open is not None:
            self._open.close()
        self._open = None
        # If it does not work now, the next job tries again.
        with contextlib.suppress(apsw.Error, OSError, CommitFailedError, LedgerDamagedError):
            self._opened()


def _told(error: Exception) -> LedgerFull | LedgerUnknown:
    """What callers are told of an error, without its text; each caller gets an exception of its own."""
    name = type(error).__name__
    if isinstance(error, CommitFailedError):
        _log.warning("ledger: a commit failed (%s): its outcome is unknown", error)
        return LedgerUnknown("a commit of the ledger failed: send the same again")
    if isinstance(error, (apsw.Error, OSError)):
        _log.warning("ledger: cannot write (%s)", name)
        return LedgerFull(f"the ledger cannot be written ({name}): is the disk full?")
    _log.error("ledger: cannot write (%s)", name)
    return LedgerUnknown(f"the ledger failed ({name}): send the same again")
