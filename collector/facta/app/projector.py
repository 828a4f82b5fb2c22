"""The projector: a thread that brings the ledger's observations into the store, in order.

What it has done is noted in the ledger (projected) and in the resolver's own file; whatever of
these is lost, it begins again further back, and the same rows come out.
"""

import hashlib
import logging
import os
import shutil
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

import apsw

from facta.ledger import Ledger, LedgerDamagedError, Row
from facta.model.errors import Unavailable
from facta.resolve.engine import CONTENT, TABLES, Resolver
from facta.store import Store, StoreError

log = logging.getLogger("facta.projector")

_BATCH = 2000
_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_STOP_SECONDS = 2.0
_SHARE = 4  # resolving may take one part in so many of the time while rows keep coming
_OBSERVATIONS = "evidence.observations"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DAMAGED = (apsw.CorruptError, apsw.NotADBError)


class Projector:
    """Projects until it is stopped; `projected` counts the observations that the store has."""

    def __init__(self, ledger: Ledger, store: Store, path: Path) -> None:
        self._ledger, self._store, self._path = ledger, store, path
        self._wake = threading.Event()
        self._stop = self._rebuild = self._damaged = False
        self._told = ""
        self._thread = threading.Thread(target=self._run, name="facta-projector", daemon=True)
        self._resolver = self._open_resolver()
        self._busy = True
        try:
            self.projected = self._resolver.taken
            if why := self._unsound():
                self._begin_again(why)
            else:
                self._resolver.keep(ledger=_short(ledger.ledger_id), boot=_boot())
        except BaseException:
            self._resolver.close()
            raise

    @property
    def waits(self) -> bool:
        """Whether the resolved tables may lack something of what has been projected."""
        return self._busy or self.projected < self._ledger.size or bool(self._resolver.failed)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self._busy = True
        self._wake.set()

    def rebuild(self) -> None:
        """Empty the store and fill it anew from the ledger; returns at once."""
        self._rebuild = True
        self.wake()

    def stop(self) -> None:
        """End the thread after the batch in hand, or leave it behind when that takes too long."""
        self._stop = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def close(self) -> None:
        """Note that all is on disk, and close. To be called after `stop` and the store's `close`."""
        if self._thread.is_alive():
            return
        # The engine does not fsync; after this a power cut takes nothing from the store.
        os.sync()
        with suppress(apsw.Error):
            self._resolver.keep(boot=0)
        self._resolver.close()

    def _open_resolver(self) -> Resolver:
        try:
            return Resolver(self._path / "resolve.db", self._ledger, self._store)
        except _DAMAGED:
            return self._new_resolver()

    def _new_resolver(self) -> Resolver:
        log.warning("the resolver's file is damaged: it is made anew")
        shutil.rmtree(self._path)
        return Resolver(self._path / "resolve.db", self._ledger, self._store)

    def _unsound(self) -> str:
        """Why one cannot go on from what the store has; empty where one can."""
        resolver = self._resolver
        ledger, boot = resolver.number("ledger"), resolver.number("boot")
        if not self._ledger.projected <= resolver.taken <= self._ledger.size:
            return "the resolver's file is older, or the ledger is"
        if ledger != _short(self._ledger.ledger_id):
            fresh = self._store.rebuilt and not resolver.taken
            return "" if fresh else "the resolver's file is new, or of another ledger"
        if boot not in (0, _boot()):
            return "the machine stopped, and with it went what the engine had not put on disk"
        return (
            "rows are missing" if resolver.taken and (self._store.rebuilt or self._lost()) else ""
        )

    def _lost(self) -> bool:
        """Whether the store cannot be read, or has fewer rows than were written."""
        expected = {_OBSERVATIONS: self.projected, **self._resolver.counts()}
        try:
            return any(self._count(table) < rows for table, rows in expected.items())
        except StoreError as error:
            log.warning("%s", error)
            return True

    def _count(self, table: str) -> int:
        return int(self._store.query(f"SELECT count() AS n FROM {table} FINAL")[0]["n"])  # noqa: S608  # our names

    def _begin_again(self, why: str) -> None:
        """Empty all tables; a crash in here leaves a resolver that knows less than the ledger."""
        log.warning("the store is filled anew from the ledger: %s", why)
        self._resolver.clear()
        for table in (_OBSERVATIONS, *TABLES, *CONTENT):
            self._store.truncate(table)
        self.projected = 0
        self._ledger.mark_projected(0)
        self._resolver.keep(ledger=_short(self._ledger.ledger_id), boot=_boot())

    def _run(self) -> None:
        while not self._stop:
            self._wake.clear()
            try:
                self._catch_up()
                self._told = ""
                self._wake.wait(_IDLE_SECONDS)
            except (StoreError, Unavailable, LedgerDamagedError) as error:
                self._wait(f"projecting waits: {error}")
            except _DAMAGED:
                self._damaged = True
            except Exception as error:  # noqa: BLE001  # the thread must live on; what failed is tried again
                # Without a traceback: it could hold what was sent.
                self._wait(f"projecting failed ({type(error).__name__}); it is tried again")

    def _wait(self, why: str) -> None:
        if why != self._told:
            log.warning(why)
        self._told = why
        self._wake.wait(_RETRY_SECONDS)

    def _catch_up(self) -> None:
        """Project all that is there; resolve as often as its cost allows, and at the end."""
        next_flush = time.monotonic()
        self._mend()
        while not self._stop:
            rows = self._ledger.rows(self.projected - 1, _BATCH)
            if rows:
                self._project(rows)
            if rows and time.monotonic() < next_flush:
                continue
            started = time.monotonic()
            flushed = self._resolver.flush()
            next_flush = time.monotonic() + _SHARE * (time.monotonic() - started)
            if not rows and not flushed:
                self._busy = self.projected < self._ledger.size
                return

    def _mend(self) -> None:
        """Do what a rebuild, a damaged file or a lost mark ask for."""
        if self._damaged:
            self._resolver.close()
            self._resolver = self._new_resolver()
            self._rebuild, self._damaged = True, False
        if self._rebuild:
            self._begin_again("as was asked for")
            self._rebuild = False
        if self._ledger.projected != self.projected:
            self._ledger.mark_projected(self.projected)

    def _project(self, rows: list[Row]) -> None:
        self._busy = True
        for _, month in groupby(rows, key=lambda row: _month(row.received_ns)):
            self._store.insert(_OBSERVATIONS, [self._row(row) for row in month])
        self._resolver.take(rows)
        self.projected = rows[-1].seq + 1
        self._ledger.mark_projected(self.projected)

    def _row(self, row: Row) -> dict[str, object]:
        o = row.observation
        return {
            "tenant": o.tenant, "ledger_id": self._ledger.ledger_id, "seq": row.seq, "id": o.id,
            "received_at": row.received_ns, "producer": o.producer, "service": o.service,
            "observer": o.observer, "kind": o.kind, "convention": o.convention, "scope_name": o.scope_name,
            "scope_version": o.scope_version, "schema_url": o.schema_url, "trace_id": o.trace_id,
            "span_id": o.span_id, "parent_span_id": o.parent_span_id, "claimed_session": o.session,
            "started_ns": o.start_ns, "ended_ns": o.end_ns, "body": o.body,
        }  # fmt: skip


def _short(text: str) -> int:
    """A text as a number that SQLite can hold."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7])


def _boot() -> int:
    """This run of the machine as a number; 1 where it cannot be told from others."""
    try:
        return _short(_BOOT_ID.read_text(encoding="ascii"))
    except OSError:
        return 1


def _month(received_ns: int) -> tuple[int, int]:
    """The partition of a receipt time: one insert goes into one partition."""
    at = datetime.fromtimestamp(received_ns / 1_000_000_000, UTC)
    return at.year, at.month
