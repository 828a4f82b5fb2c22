"""Fields of the API's rows, whatever they turn out to hold: a wrong type is shown, never a crash."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000_000
_COMMITMENT = re.compile("[0-9a-f]{64}")


def text(row: Row, name: str) -> str:
    """The field as text: "" where it is missing or null, JSON where it is not a plain value."""
    return _text(row.get(name))


def first(row: Row, *names: str) -> str:
    """The first of the fields that holds anything."""
    return next((found for name in names if (found := text(row, name))), "")


def joined(row: Row, name: str, by: str = ", ") -> str:
    """The members of a list, joined."""
    value = row.get(name)
    return by.join(map(_text, value)) if isinstance(value, list) else _text(value)


def whole(row: Row, name: str) -> int | None:
    """A whole number; None where the field holds none."""
    value = row.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def content(row: Row, name: str) -> str:
    """The API's path to all of a text by the commitment in a field; "" where it holds none."""
    commit = text(row, name)
    return f"/content/{commit}" if _COMMITMENT.fullmatch(commit) else ""


def dotted(parts: Iterable[str]) -> str:
    """The parts that hold anything, in one line."""
    return " · ".join(part for part in parts if part)


def moment(ns: int | None) -> str:
    """Nanoseconds since 1970 as UTC, to the second; the bare number where no calendar has it."""
    if not ns:
        return ""
    try:
        at = _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        return f"{ns} ns"
    return f"{at:%Y-%m-%d %H:%M:%S}Z"


def offset(ns: int | None, start: int | None) -> str:
    """How long after the session's start: "+1.9 s"; "" where either is unknown."""
    if not ns or not start:
        return ""
    return f"{(ns - start) / _SECOND:+,.1f} s"


def duration(ns: int | None) -> str:
    """A duration: milliseconds below a second, seconds above; "" where it is unknown."""
    if ns is None:
        return ""
    return f"{ns / 1_000_000:,.0f} ms" if abs(ns) < _SECOND else f"{ns / _SECOND:,.1f} s"


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False)
