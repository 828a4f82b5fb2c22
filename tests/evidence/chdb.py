"""The real thing: ledger files and the embedded store."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.evidence.harness import Tables, bare

from facta.app.service import Facta
from facta.model.identity import Identity
from facta.model.records import Batch
from facta.resolve.engine import CONTENT, TABLES
from facta.settings import Settings

PATIENCE_SECONDS = 100


@contextmanager
def facta(path: Path) -> Iterator[Facta]:
    """A collector in a directory of its own."""
    opened = Facta.open(Settings(data=path))
    try:
        yield opened
    finally:
        opened.close()


def send(home: Facta, batches: list[Batch], identity: Identity) -> None:
    """Hand requests over, and see that nothing is refused."""
    for batch in batches:
        assert home.accept(batch, identity).rejected == 0


def settle(home: Facta) -> None:
    """Wait until the store shows all that was sent."""
    patience = time.monotonic() + PATIENCE_SECONDS
    while not home.status().resolved:
        assert time.monotonic() < patience, "the projection does not come to its end"
        time.sleep(0.01)


def rows_of(home: Facta, tenant: str) -> Tables:
    """One tenant's resolved tables and contents, as a reader sees them."""
    out: Tables = {}
    for table in sorted((*TABLES, *CONTENT)):
        order = "commit" if table in CONTENT else "session_id, row_key"
        sql = f"SELECT * FROM {table} FINAL WHERE tenant = {{tenant:String}} ORDER BY {order}"
        rows = [_plain(bare(row)) for row in home.store.query(sql, {"tenant": tenant})]
        if rows:
            out[table] = rows
    return out


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it was written: the engine keeps a confidence as a 32-bit number."""
    row = {k: v.decode() if isinstance(v, bytes) else v for k, v in row.items()}
    return row | {"confidence": round(row["confidence"], 6)} if "confidence" in row else row
