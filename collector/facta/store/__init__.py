"""The projection of the ledger into ClickHouse tables: written in batches, read by the API."""

from facta.store.store import Row, Store, StoreError, StoreHeldError

__all__ = ["Row", "Store", "StoreError", "StoreHeldError"]
