"""What can go wrong with the ledger, in one line each, never with a value from a payload."""

from facta.model.errors import Unavailable


class _Refusal(Unavailable):
    """Unavailable with a reason of one line."""

    def __init__(self, reason: str, retry_after: int = 5) -> None:
        super().__init__(retry_after)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class LedgerFull(_Refusal):
    """Nothing of the append was kept: too much waits for the store, the disk is full or failed."""


class LedgerUnknown(_Refusal):
    """A commit failed half-way: the append may or may not be kept. Sending it again is safe."""


class LedgerUnreadable(_Refusal):
    """A read failed for now (no memory, no file handle, a disk that is gone)."""


class LedgerLockedError(Exception):
    """Another process owns the ledger; the text says which."""


class LedgerDamagedError(Exception):
    """The ledger's files cannot be what this program wrote, or cannot be read; says which file."""
