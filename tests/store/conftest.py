from collections.abc import Iterator
from pathlib import Path

import pytest

from facta.store.embedded import EmbeddedStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = EmbeddedStore.at(tmp_path / "data")
    opened.migrate()
    yield opened
    opened.close()
