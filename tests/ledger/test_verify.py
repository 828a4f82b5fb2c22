"""Whatever is altered in the files is found, and its place is named."""

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from tests.ledger.samples import TENANT, batch

from facta.ledger import Ledger

DAY_NS = 86_400 * 10**9


@pytest.fixture
def written(tmp_path: Path) -> Path:
    day = 1
    with Ledger.open(tmp_path, min_free_bytes=0, clock=lambda: day * DAY_NS) as ledger:
        for number in range(6):
            day = 1 + number // 3
            ledger.append(batch(number, ledger.tenant_key(TENANT)))
        assert ledger.verify() == []
    return tmp_path


def altered(path: Path, file: str, *statements: str) -> list[str]:
    connection = apsw.Connection(str(path / file))
    connection.execute("BEGIN;" + ";".join(statements) + ";COMMIT")
    connection.close()
    with Ledger.open(path, min_free_bytes=0, clock=lambda: 2 * DAY_NS) as ledger:
        return ledger.verify()


SWAP = "UPDATE rows SET seq = -1 WHERE seq = 4; UPDATE rows SET seq = 4 WHERE seq = 5; UPDATE rows SET seq = 5 WHERE seq = -1"
SWAP_LEAVES = SWAP.replace("rows", "leaves")


@pytest.mark.parametrize(
    ("file", "statement", "found"),
    [
        (1, "UPDATE rows SET row = CAST(row || x'00' AS BLOB) WHERE seq = 7", "seq 7: its row does not have its leaf's hash"),
        (2, "UPDATE rows SET row = x'' WHERE seq = 12", "seq 12: its row does not have its leaf's hash"),
        (1, "DELETE FROM rows WHERE seq = 3", "seq 3: its row is missing"),
        (1, SWAP, "seq 4: its row does not have its leaf's hash"),
        (0, "DELETE FROM leaves WHERE seq = 5", "seq 5: its leaf is missing"),
        (0, "DELETE FROM leaves WHERE seq = 17", "the leaves make a tree of 17"),
        (0, "UPDATE leaves SET leaf = zeroblob(32) WHERE seq = 2", "seq 2: its row does not have its leaf's hash"),
        (0, "UPDATE leaves SET id = zeroblob(16) WHERE seq = 9", "seq 9: its id is not that of its row"),
        (0, SWAP_LEAVES, "seq 4: its row does not have its leaf's hash"),
        (0, "INSERT INTO leaves SELECT 18, zeroblob(16), zeroblob(32), 1", "seq 18: its row is missing"),
        (0, "UPDATE objects SET no = no + 100 WHERE no = 2", "object 102: its data is missing"),
        (0, "UPDATE objects SET hash = zeroblob(32) WHERE no = 1 AND segment = 1", "segment 1, object 1: it is not the one"),
        (1, "UPDATE objects SET data = x'28b52ffd0000010000' WHERE no = 1", "segment 1, object 1: its data"),
        (1, "UPDATE objects SET data = (SELECT data FROM objects WHERE no = 0) WHERE no = 1", "segment 1, object 1: its data has another hash"),
        (1, "UPDATE objects SET salt = zeroblob(16) WHERE no = 1", "segment 1, object 1: its data has another commitment"),
        (1, "DELETE FROM objects WHERE no = 0", "segment 1, object 0: its data is missing"),
    ],
)  # fmt: skip
def test_an_alteration_is_found_and_named(
    written: Path, file: int, statement: str, found: str
) -> None:
    name = "index.db" if file == 0 else f"segment-{file:06d}.db"
    lines = altered(written, name, statement)
    assert any(line.startswith(found) for line in lines) or any(found in line for line in lines)
    assert all("\n" not in line for line in lines)


def test_a_row_replaced_with_its_leaf_is_found_by_the_tree(written: Path) -> None:
    """Whoever also makes the leaf fit must fail at the root that is kept."""
    index = apsw.Connection(str(written / "index.db"))
    segment = apsw.Connection(str(written / "segment-000001.db"))
    row, leaf, id_ = (
        segment.execute("SELECT row FROM rows WHERE seq = 1").get,
        index.execute("SELECT leaf FROM leaves WHERE seq = 1").get,
        index.execute("SELECT id FROM leaves WHERE seq = 1").get,
    )
    index.execute("DELETE FROM leaves WHERE seq = 1")
    segment.execute("UPDATE rows SET row = ? WHERE seq = 0", (row,))
    index.execute("UPDATE leaves SET leaf = ?, id = ? WHERE seq = 0", (leaf, id_))
    index.execute("INSERT INTO leaves VALUES (1, zeroblob(16), ?, 1)", (leaf,))
    index.close()
    segment.close()
    with Ledger.open(written, min_free_bytes=0) as ledger:
        lines = ledger.verify()
    assert lines[-1].startswith("the leaves make a tree of 18 with another root")


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:4096]),
        lambda path: path.write_bytes(path.read_bytes()[:5000] + b"\xff" * 9000),
        lambda path: path.unlink(),
    ],
)
def test_a_damaged_or_missing_old_segment_is_a_finding_not_a_crash(
    written: Path, damage: Callable[[Path], object]
) -> None:
    damage(written / "segment-000001.db")
    with Ledger.open(written, min_free_bytes=0, clock=lambda: 2 * DAY_NS) as ledger:
        assert ledger.verify() != []
        assert ledger.append(batch(9, ledger.tenant_key(TENANT))).new == 3


def test_verifying_goes_on_while_others_append(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, min_free_bytes=0) as ledger:
        key = ledger.tenant_key(TENANT)
        for number in range(40):
            ledger.append(batch(number, key))
            if number % 8 == 0:
                assert ledger.verify() == []
