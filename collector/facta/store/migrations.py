"""Versioned migrations: the files schema/migrations/NNNN_name.sql, each applied once, in order."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from facta.assets import ROOT
from facta.store.store import StoreError

FOLDER = ROOT / "schema" / "migrations"

# Applied before the first migration, so that the record of them has a place.
RECORD = (
    "CREATE DATABASE IF NOT EXISTS evidence",
    """CREATE TABLE IF NOT EXISTS evidence.migrations
    (name String, sha256 String, applied_at DateTime64(3, 'UTC') DEFAULT now64(3))
    ENGINE = MergeTree ORDER BY name""",
)

_NAME = re.compile(r"\d{4}_[a-z0-9_]+\.sql")
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|\"(?:\\.|[^\"\\])*\"|;", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file: its name, the sha256 of its bytes, its statements."""

    name: str
    sha256: str
    statements: list[str]


def statements(sql: str) -> list[str]:
    """The statements of `sql` without comments; a semicolon in a string or a name splits nothing."""
    found, current, end = [], "", 0
    for token in _TOKEN.finditer(sql):
        current += sql[end : token.start()]
        end = token.end()
        if token[0] == ";":
            found.append(current)
            current = ""
        elif not token[0].startswith(("--", "/*")):
            current += token[0]
    found.append(current + sql[end:])
    return [statement.strip() for statement in found if statement.strip()]


def read(folder: Path = FOLDER) -> list[Migration]:
    """All migrations in order; raises StoreError on a name or a number that does not fit."""
    found = []
    for number, path in enumerate(sorted(folder.glob("*.sql")), start=1):
        if not _NAME.fullmatch(path.name) or int(path.name[:4]) != number:
            raise StoreError(0, f"migration {path.name}: expected NNNN_name.sql with {number:04d}")
        data = path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        found.append(Migration(path.name, digest, statements(data.decode())))
    return found


def pending(migrations: list[Migration], applied: dict[str, str]) -> list[Migration]:
    """Those not yet applied; raises StoreError when an applied file has changed or is gone.

    `applied` is name -> sha256 as recorded.
    """
    known = {migration.name: migration for migration in migrations}
    for name, digest in sorted(applied.items()):
        if name not in known:
            raise StoreError(0, f"migration {name} was applied by a newer Facta; use that one")
        if known[name].sha256 != digest:
            raise StoreError(
                0, f"migration {name} was changed after it was applied; add a new one instead"
            )
    return [migration for migration in migrations if migration.name not in applied]
