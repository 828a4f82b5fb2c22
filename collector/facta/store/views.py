"""The queries of queries/views: fixed SQL with bound parameters, one file each, and paging over them.

A file's header says `name`, `what` and `key`: the columns (with their types) that order its rows
and tell one from another; a cursor is the key of the last row that was given out. A filter that is
not set is bound as "" (a text) or 0 (a time), which the SQL takes as "any".

`python -m facta.store.views` prints queries/README.md.
"""

import base64
import binascii
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from facta.assets import ROOT
from facta.store.store import Row, Store

FOLDER = ROOT / "queries" / "views"

_HEADER = re.compile(r"^-- (name|what|key): (.+)$", re.MULTILINE)
_PARAMETER = re.compile(r"\{(\w+):(\w+)\}")
_SELECTED = re.compile(r"^SELECT (?:DISTINCT )?(.+?)\nFROM ", re.MULTILINE | re.DOTALL)
_RANGES = {"UInt32": (0, 2**32 - 1), "Int64": (-(2**63), 2**63 - 1)}
_UNSET = {"String": "", "Int64": 0, "UInt32": 0}


class CursorError(ValueError):
    """A cursor that this API did not give out for this list."""


@dataclass(frozen=True, slots=True)
class View:
    """One query: `key` and `parameters` are name -> ClickHouse type."""

    name: str
    what: str
    key: dict[str, str]
    parameters: dict[str, str]
    columns: list[str]
    sql: str


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, and the cursor of the next page (None at the end)."""

    items: list[Row]
    next_cursor: str | None


def parse(text: str) -> View:
    """The view that a file's text holds; raises ValueError when its header lacks something."""
    header = dict(_HEADER.findall(text))
    selected = _SELECTED.search(text)
    if header.keys() != {"name", "what", "key"} or selected is None:
        raise ValueError("a view has a name, a what, a key and a SELECT")
    key = dict(part.split() for part in header["key"].split(", "))
    columns = [name.strip(" `\n") for name in selected[1].split(",")]
    return View(header["name"], header["what"], key, dict(_PARAMETER.findall(text)), columns, text)


@cache
def view(name: str) -> View:
    """The view of that name."""
    return parse((FOLDER / f"{name}.sql").read_text(encoding="utf-8"))


def rows(store: Store, name: str, tenant: str, given: Mapping[str, Any]) -> list[Row]:
    """The rows of a view without paging; parameters that are not given are unset."""
    wanted = view(name)
    bound = {parameter: _UNSET.get(kind, 0) for parameter, kind in wanted.parameters.items()}
    bound |= {"first_page": True, "limit": 2**32 - 1} | dict(given) | {"tenant": tenant}
    return store.query(wanted.sql, {parameter: bound[parameter] for parameter in wanted.parameters})


def page(
    store: Store, name: str, tenant: str, given: Mapping[str, Any], limit: int, cursor: str = ""
) -> Page:
    """At most `limit` rows after `cursor` ("": from the start); raises CursorError."""
    wanted = view(name)
    after: dict[str, Any] = {}
    if cursor:
        values = read_cursor(cursor, name, list(wanted.key.values()))
        after = {f"after_{column}": value for column, value in zip(wanted.key, values, strict=True)}
        after["first_page"] = False
    found = rows(store, name, tenant, {**given, **after, "limit": limit + 1})
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    return Page(found[:limit], make_cursor(name, [last[column] for column in wanted.key]))


def every(store: Store, name: str, tenant: str, given: Mapping[str, Any]) -> Iterator[Row]:
    """All rows, read in pages."""
    cursor: str | None = ""
    while cursor is not None:
        part = page(store, name, tenant, given, 1000, cursor)
        yield from part.items
        cursor = part.next_cursor


def make_cursor(name: str, values: list[Any]) -> str:
    """An opaque cursor of the list `name` that holds `values`."""
    return base64.urlsafe_b64encode(orjson.dumps([name, *values])).decode().rstrip("=")


def read_cursor(cursor: str, name: str, kinds: list[str]) -> list[Any]:
    """The values of a cursor of the list `name`, of these ClickHouse types; raises CursorError."""
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        values = orjson.loads(data)
    except (binascii.Error, ValueError):
        raise CursorError from None
    if not isinstance(values, list) or len(values) != len(kinds) + 1 or values[0] != name:
        raise CursorError
    if not all(_fits(value, kind) for value, kind in zip(values[1:], kinds, strict=True)):
        raise CursorError
    return values[1:]


def _fits(value: Any, kind: str) -> bool:
    if kind == "String":
        return isinstance(value, str)
    low, high = _RANGES[kind]
    return type(value) is int and low <= value <= high


def markdown(folder: Path = FOLDER) -> str:
    """queries/README.md."""
    lines = [
        "# Queries",
        "",
        "Fixed SQL with bound parameters. `views/` holds what the read API selects, one file per",
        "query; this list is made from the files' headers by `python -m facta.store.views`.",
        "",
        "| view | what | filters | columns |",
        "|---|---|---|---|",
    ]
    for path in sorted(folder.glob("*.sql")):
        found = parse(path.read_text(encoding="utf-8"))
        own = {"tenant", "first_page", "limit"} | {f"after_{column}" for column in found.key}
        filters = ", ".join(f"`{name}`" for name in found.parameters if name not in own)
        columns = ", ".join(f"`{name}`" for name in found.columns)
        lines.append(
            f"| [{found.name}](views/{path.name}) | {found.what} | {filters} | {columns} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
