from collections.abc import Iterator
from pathlib import Path

import pytest

from facta.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger", min_free_bytes=0) as opened:
        yield opened
