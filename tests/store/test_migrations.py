import hashlib
from pathlib import Path

import pytest

from facta.store import StoreError, migrations
from facta.store.embedded import EmbeddedStore
from facta.store.migrations import Migration


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;\nSELECT 2;\n", ["SELECT 1", "SELECT 2"]),
        ("-- a; b\nSELECT 1; -- c; d", ["SELECT 1"]),
        ("/* a; ' */ SELECT 1", ["SELECT 1"]),
        ("SELECT ';', 'it\\'s;', `a;b`, \"c;d\"", ["SELECT ';', 'it\\'s;', `a;b`, \"c;d\""]),
        ("SELECT '--not a comment'", ["SELECT '--not a comment'"]),
        (";;", []),
    ],
)
def test_statements_split_at_semicolons_outside_of_texts(sql: str, expected: list[str]) -> None:
    assert migrations.statements(sql) == expected


def test_migrations_are_applied_once_and_recorded(tmp_path: Path) -> None:
    files = migrations.read()
    store = EmbeddedStore.at(tmp_path)
    try:
        assert store.migrate() == [migration.name for migration in files]
        assert store.migrate() == []
        recorded = store.query("SELECT name, sha256 FROM evidence.migrations ORDER BY name")
    finally:
        store.close()
    assert recorded == [
        {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for path in sorted(migrations.FOLDER.glob("*.sql"))
    ]


def test_migrations_are_known_after_a_restart(tmp_path: Path) -> None:
    store = EmbeddedStore.at(tmp_path)
    store.migrate()
    store.close()
    store = EmbeddedStore.at(tmp_path)
    try:
        assert store.rebuilt is False
        assert store.migrate() == []
    finally:
        store.close()


FILES = [Migration("0001_a.sql", "aa", []), Migration("0002_b.sql", "bb", [])]


def test_pending_is_what_is_not_recorded() -> None:
    assert migrations.pending(FILES, {}) == FILES
    assert migrations.pending(FILES, {"0001_a.sql": "aa"}) == FILES[1:]


@pytest.mark.parametrize(
    ("applied", "says"),
    [
        ({"0001_a.sql": "other"}, "0001_a.sql was changed"),
        ({"0003_c.sql": "cc"}, "0003_c.sql was applied by a newer Facta"),
    ],
)
def test_a_changed_or_unknown_migration_is_refused(applied: dict[str, str], says: str) -> None:
    with pytest.raises(StoreError, match=says):
        migrations.pending(FILES, applied)


@pytest.mark.parametrize("names", [["0002_a.sql"], ["0001_a.sql", "0001_b.sql"], ["first.sql"]])
def test_a_misnumbered_migration_is_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")
    with pytest.raises(StoreError, match="expected NNNN_name"):
        migrations.read(tmp_path)
