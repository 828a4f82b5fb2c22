"""What a store is, whatever engine stands behind it: the ledger's projection, readable by SQL.

A store can always be rebuilt from the ledger, so it promises nothing about what was acknowledged.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from facta.settings import Settings

Row = dict[str, Any]


class StoreError(Exception):
    """The engine refused or failed: its numeric `code` (0: not the engine's) and one line.

    The line never holds a value of a row, a parameter or a query.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class StoreHeldError(StoreError):
    """Another process has the embedded store open."""


class Store(ABC):
    """Tables that are written in batches and read with bound parameters. Safe for all threads.

    `rebuilt` is True when `open` found no usable store and made an empty one: the projector must
    then begin again at the ledger's first row.
    """

    rebuilt: bool = False

    @staticmethod
    def open(settings: "Settings") -> "Store":
        """The store that the settings name; raises StoreHeldError or StoreError."""
        from facta.store.embedded import EmbeddedStore  # noqa: PLC0415  the engine loads slowly

        return EmbeddedStore.at(settings.data, memory_bytes=settings.store_memory_bytes)

    @abstractmethod
    def migrate(self) -> list[str]:
        """Apply the migrations that are missing, in order; the names of those applied now."""

    @abstractmethod
    def insert(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert `rows` into `table` ("evidence.turns") as one block.

        All rows have the same columns; columns left out take the table's defaults. An unknown
        column is an error. String columns take str or bytes, DateTime64(9) nanoseconds.
        """

    @abstractmethod
    def query(self, sql: str, params: Mapping[str, Any] | None = None) -> list[Row]:
        """The rows of one SELECT. Values come in only as bound parameters: `{name:Type}`."""

    @abstractmethod
    def truncate(self, table: str) -> None:
        """Remove every row of `table` ("evidence.turns")."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether the engine answers a query now (it can survive its own crash as a zombie)."""

    @abstractmethod
    def close(self) -> None:
        """Release the engine; a second call does nothing."""
