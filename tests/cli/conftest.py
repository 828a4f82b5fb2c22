import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from facta.cli.commands import run
from facta.store.embedded import EmbeddedStore

SEED = json.loads((Path(__file__).parents[1] / "data/store/refund.json").read_text())


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str


Facta = Callable[..., Ran]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a seeded store that nobody has open."""
    folder = tmp_path_factory.mktemp("facta") / "data"
    store = EmbeddedStore.at(folder)
    store.migrate()
    for table, rows in SEED.items():
        own = {"tenant": "default", "version": 1, "deleted": 0}
        store.insert(table, [own | row for row in rows])
    store.close()
    return folder


@pytest.fixture(scope="module")
def nobody() -> Iterator[str]:
    """An address on which nobody answers: bound, and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def facta(
    data: Path,
    nobody: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Facta:
    """Runs a command line in this process, over the seeded folder."""
    monkeypatch.setenv("FACTA_DATA", str(data))
    monkeypatch.setenv("FACTA_URL", nobody)

    def command(*arguments: str) -> Ran:
        capsys.readouterr()
        code = run(arguments)
        seen = capsys.readouterr()
        return Ran(code, seen.out, seen.err)

    return command
