"""Rows as a table, JSON, JSON lines or CSV.

What comes from outside may hold control characters that would drive a terminal: tables show them
as signs, JSON as escapes. CSV may be opened by a spreadsheet: a text that one would take for a
formula gets an apostrophe in front. JSON is the form without changes.
"""

import csv
import io
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import chain, islice
from typing import Any, TextIO

from facta.dashboard.text import line, visible

Row = dict[str, Any]

_FORMULA = re.compile(r"[\s\ufeff\"']*[=+\-@\t\r]")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_WIDTHS_FROM = 200
_CELL = 64


class Format(StrEnum):
    """How a list is printed."""

    table = "table"
    json = "json"
    jsonl = "jsonl"
    csv = "csv"


def write(rows: Iterable[Row], columns: Sequence[str], form: Format, out: TextIO) -> None:
    """Print `rows`; a table shows `columns`, the other forms every field."""
    if form is Format.table:
        _write_table(rows, columns, out)
    elif form is Format.json:
        out.write(as_json(list(rows), indent=2) + "\n")
    elif form is Format.jsonl:
        out.writelines(as_json(row) + "\n" for row in rows)
    else:
        _write_csv(rows, columns, out)


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON in which every hidden character is an escape; it reads back as the same value."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    hidden = {char for char in set(text) if unicodedata.category(char) in _HIDDEN} - {"\n"}
    return text.translate({ord(char): _escape(char) for char in hidden})


def _escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def as_cell(value: Any) -> str:
    """A value as one piece of text: lists and objects as JSON, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def unformula(text: str) -> str:
    """`text` so that no spreadsheet runs it: remove the first apostrophe to have it back."""
    return f"'{text}" if _FORMULA.match(text) or text.startswith("'") else text


def say(text: str) -> None:
    """One line of talk, to stderr; text from outside in it is made visible."""
    sys.stderr.write(visible(text) + "\n")


def _write_table(rows: Iterable[Row], columns: Sequence[str], out: TextIO) -> None:
    """Columns as wide as the first rows need; later ones are cut to that."""
    shown = ([line(as_cell(row.get(name)), _CELL) for name in columns] for row in rows)
    first = list(islice(shown, _WIDTHS_FROM))
    widths = [
        max([len(name), *(len(cells[place]) for cells in first)])
        for place, name in enumerate(columns)
    ]
    for cells in chain([list(columns)], first, shown):
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        out.write("  ".join(padded).rstrip() + "\n")


def _write_csv(rows: Iterable[Row], columns: Sequence[str], out: TextIO) -> None:
    writer = None
    for row in rows:
        if writer is None:
            names = [*columns, *(name for name in row if name not in columns)]
            writer = csv.DictWriter(out, names, extrasaction="ignore")
            writer.writeheader()
        writer.writerow({name: _csv_cell(value) for name, value in row.items()})
    if writer is None:
        csv.writer(out).writerow(columns)


def _csv_cell(value: Any) -> str:
    """Texts are made safe; numbers stay, also negative ones. NUL has no place in CSV."""
    cell = as_cell(value)
    if isinstance(value, (int, float)) or value is None:
        return cell
    shown = visible(cell) if sys.stdout.isatty() else cell.replace("\0", "\u2400")
    return unformula(shown)


def as_text(rows: Iterable[Row], columns: Sequence[str], form: Format) -> str:
    """What `write` prints."""
    out = io.StringIO()
    write(rows, columns, form, out)
    return out.getvalue()
