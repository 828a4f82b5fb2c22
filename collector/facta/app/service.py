"""One collector in one process: what a request goes through, and what is known of where it stands."""

import hashlib
import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass

from facta.api.own import LedgerStatus
from facta.app.projector import Projector
from facta.conventions import read
from facta.conventions.values import dump
from facta.ledger import Ledger
from facta.ledger.interning import Interning
from facta.model.identity import Identity, Outcome
from facta.model.metrics import Metrics
from facta.model.observation import Append
from facta.model.records import Batch, Record, Refusal
from facta.sealing import seal
from facta.settings import Settings
from facta.store import Store

log = logging.getLogger("facta")


@dataclass(slots=True)
class Facta:
    """The ledger with its projection, open for one process."""

    settings: Settings
    ledger: Ledger
    store: Store
    projector: Projector
    metrics: Metrics

    @classmethod
    def open(cls, settings: Settings, metrics: Metrics | None = None) -> "Facta":
        """Open everything in `FACTA_DATA` and start projecting.

        Raises LedgerLockedError or StoreHeldError where another process has it open.
        """
        settings.data.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            ledger = Ledger.open(
                settings.data / "ledger", max_backlog_rows=settings.max_backlog_rows
            )
            opened.callback(ledger.close)
            store = Store.open(settings)
            opened.callback(store.close)
            store.migrate()
            projector = Projector(ledger, store, settings.data / "resolve")
            opened.pop_all()
        projector.start()
        return cls(settings, ledger, store, projector, metrics or Metrics())

    def close(self) -> None:
        """Finish what is being written and close; what is not projected yet is taken up next time."""
        self.projector.stop()
        self.ledger.close()
        self.store.close()
        self.projector.close()

    def rebuild(self) -> None:
        """Fill the store anew from the ledger; returns at once, `status` tells how far it is."""
        self.projector.rebuild()

    def accept(self, batch: Batch, identity: Identity) -> Outcome:
        """Keep a batch; returns when it is on stable storage. Raises Unavailable.

        Sealed first, then read, then kept: nothing that comes after `seal` holds a sealed value.
        """
        append, rejected = self._append_of(batch, identity)
        started = time.perf_counter()
        kept = self.ledger.append(append)
        self.metrics.append_seconds.observe(time.perf_counter() - started)
        self.metrics.observations.inc(kept.new)
        self.metrics.repeated.inc(kept.repeated)
        self.metrics.rejected.inc(batch.rejected + rejected)
        for record in batch.records:
            self.metrics.records.labels(record.signal).inc()
        if kept.new:
            self.projector.wake()
        return Outcome(rejected, "records that could not be read were refused" if rejected else "")

    def _append_of(self, batch: Batch, identity: Identity) -> tuple[Append, int]:
        interning = Interning(identity, self.ledger.tenant_key(identity.tenant))
        refused = 0
        for given in batch.records:
            record = seal(given)
            mark = len(interning.observations)
            try:
                interning.add(record, read(record))
            except Exception as error:  # noqa: BLE001  # a record that breaks us costs itself only
                log.error(  # noqa: TRY400  # a traceback could hold what was sent
                    "a record could not be read (%s): refused", type(error).__name__
                )
                del interning.observations[mark:]
                interning.refuse([_unreadable(record)])
                refused += 1
        interning.refuse(batch.refusals)
        return Append(interning.observations, list(interning.objects.values())), refused

    def status(self) -> LedgerStatus:
        """Where ledger and projection stand."""
        size, projected = self.ledger.size, self.projector.projected
        self.metrics.ledger_rows.set(size)
        self.metrics.projected_rows.set(projected)
        return LedgerStatus(
            ledger_rows=size,
            projected_rows=projected,
            resolved=projected == size and not self.projector.waits,
            repeats=self.ledger.stats().repeats,
            refused=int(self.metrics.rejected._value.get()),  # noqa: SLF001  # the library has no reader
        )


def _unreadable(record: Record) -> Refusal:
    """The visible gap that a record leaves which could not be read: what it held, sealed, by hash."""
    data = dump([[key, value] for key, value in record.attributes]).encode("utf-8", "surrogatepass")
    return Refusal(
        "unreadable", f"{record.signal} record", len(data), hashlib.sha256(data).hexdigest()
    )
