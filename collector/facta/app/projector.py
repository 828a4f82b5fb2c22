"""The projector: a thread that brings the ledger's observations into the store, in order.

What it has done is noted in the ledger (projected) and in the resolver's own file; whatever of
these is lost, it begins again further back, and the same rows come out.
"""

import logging
import shutil
import threading
import time
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from facta.ledger import Ledger, LedgerDamagedError, Row
from facta.model.errors import Unavailable
from facta.resolve.engine import CONTENT, TABLES, Resolver
from facta.store import Store, StoreError

log = logging.getLogger("facta.projector")

_BATCH = 2000
_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_SHARE = 4  # resolving may take one part in so many of the time while rows keep coming
_OBSERVATIONS = "evidence.observations"


class Projector:
    """Projects until it is stopped; `projected` counts the observations that the store has."""

    def __init__(self, ledger: Ledger, store: Store, path: Path) -> None:
        self._ledger, self._store, self._path = ledger, store, path
        self._wake, self._stop = threading.Event(), False
        self._thread = threading.Thread(target=self._run, name="facta-projector", daemon=True)
        self._resolver = Resolver(path / "resolve.db", ledger, store)
        self._busy = True
        self.projected = min(ledger.projected, self._resolver.taken)
        if ledger.size and (store.rebuilt or self._resolver.taken > ledger.size or self._lost()):
            self._begin_again()

    @property
    def waits(self) -> bool:
        """Whether the resolved tables may lack something of what has been projected."""
        return self._busy or self.projected < self._ledger.size

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self._busy = True
        self._wake.set()

    def stop(self) -> None:
        """End the thread after the batch in hand."""
        self._stop = True
        self._wake.set()
        self._thread.join()
        self._resolver.close()

    def _lost(self) -> bool:
        """Whether the store has fewer rows than were written: after a power cut, say."""
        expected = {_OBSERVATIONS: self.projected, **self._resolver.counts()}
        return any(self._count(table) < rows for table, rows in expected.items())

    def _count(self, table: str) -> int:
        return int(self._store.query(f"SELECT count() AS n FROM {table} FINAL")[0]["n"])  # noqa: S608  # our names

    def _begin_again(self) -> None:
        log.warning("the store lacks rows: it is made anew from the ledger")
        self._resolver.close()
        shutil.rmtree(self._path, ignore_errors=True)
        for table in (_OBSERVATIONS, *TABLES, *CONTENT):
            self._store.truncate(table)
        self._resolver = Resolver(self._path / "resolve.db", self._ledger, self._store)
        self.projected = 0
        self._ledger.mark_projected(0)

    def _run(self) -> None:
        while not self._stop:
            self._wake.clear()
            try:
                self._catch_up()
                self._wake.wait(_IDLE_SECONDS)
            except (StoreError, Unavailable, LedgerDamagedError, OSError) as error:
                log.warning("projecting waits: %s", type(error).__name__)
                self._wake.wait(_RETRY_SECONDS)
            except Exception as error:  # noqa: BLE001  # the thread must live on; what failed is tried again
                log.error(  # noqa: TRY400  # a traceback could hold what was sent
                    "projecting failed (%s); it is tried again", type(error).__name__
                )
                self._wake.wait(_RETRY_SECONDS)

    def _catch_up(self) -> None:
        """Project all that is there; resolve as often as its cost allows, and at the end."""
        next_flush = time.monotonic()
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

    def _project(self, rows: list[Row]) -> None:
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


def _month(received_ns: int) -> tuple[int, int]:
    """The partition of a receipt time: one insert goes into one partition."""
    at = datetime.fromtimestamp(received_ns / 1_000_000_000, UTC)
    return at.year, at.month
