"""The table of sessions: its cells as text, and its filters as the API's query parameters."""

import time
from collections.abc import Callable
from typing import Any

from facta.dashboard import rows as read
from facta.dashboard.text import line

Row = dict[str, Any]

_HOUR_NS = 3_600_000_000_000

WIDTHS = {
    "started": 150,
    "service": 170,
    "models": 200,
    "turns": 62,
    "calls": 62,
    "effects": 68,
    "sealed": 68,
    "lasted": 80,
    "gaps": 150,
    "session": 250,
}
"""The table's columns, in order, with their widths in pixels."""


def columns(items: list[Row]) -> dict[str, list[str]]:
    """The table, column by column; every cell is one line of visible text."""
    cells: dict[str, Callable[[Row], str]] = {
        "started": lambda row: read.moment(read.whole(row, "started_ns")),
        "service": lambda row: read.text(row, "service"),
        "models": lambda row: read.joined(row, "models"),
        "turns": lambda row: read.text(row, "turns"),
        "calls": lambda row: read.text(row, "calls"),
        "effects": lambda row: read.text(row, "effects"),
        "sealed": lambda row: read.text(row, "sealed"),
        "lasted": lasted,
        "gaps": lambda row: read.joined(row, "gaps"),
        "session": lambda row: read.text(row, "session_id"),
    }
    return {name: [line(cells[name](row)) for row in items] for name in WIDTHS}


def lasted(row: Row) -> str:
    """How long a session lasted, as far as its ends are known."""
    start, end = read.whole(row, "started_ns"), read.whole(row, "ended_ns")
    return read.duration(end - start) if start and end else ""


def query(service: str, hours: int) -> dict[str, str]:
    """Filters for the API: the service by its exact name, and how many hours back (0: all)."""
    since = str(time.time_ns() - hours * _HOUR_NS) if hours else ""
    return {"service": service, "since": since}


def headline(session: Row) -> list[str]:
    """What is known of a session as a whole, in lines of text as received."""
    counted = [
        f"{name} {count:,}"
        for name in ("turns", "calls", "effects", "sealed")
        if (count := read.whole(session, name)) is not None
    ]
    names = ("service", "agents", "models", "session_id", "basis", "gaps")
    told = {name: read.joined(session, name) for name in names}
    when = [read.moment(read.whole(session, "started_ns")), lasted(session)]
    return [
        " · ".join(told[name] for name in ("service", "agents", "models") if told[name]),
        " · ".join([*counted, *(part for part in when if part)]),
        f"session {told['session_id']}" + (f", linked by {told['basis']}" if told["basis"] else ""),
        *([f"gaps: {told['gaps']}"] if told["gaps"] else []),
    ]
