"""The promise: what was acknowledged is on stable storage, once, and can be shown to be unaltered."""

from facta.ledger.errors import (
    LedgerDamagedError,
    LedgerFull,
    LedgerLockedError,
    LedgerUnknown,
    LedgerUnreadable,
)
from facta.ledger.group import Appended
from facta.ledger.ledger import Ledger, Stats
from facta.ledger.reader import Row

__all__ = [
    "Appended",
    "Ledger",
    "LedgerDamagedError",
    "LedgerFull",
    "LedgerLockedError",
    "LedgerUnknown",
    "LedgerUnreadable",
    "Row",
    "Stats",
]
