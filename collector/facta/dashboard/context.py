"""What a turn added to its context, as the API's rows of /context tell it: items and their parts."""

from dataclasses import dataclass
from typing import Any

import orjson

from facta.dashboard import rows as read

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """One part of one item: a line that says what it is, its text, the API's path to all of it."""

    title: str
    text: str
    pointer: str


def parts(items: list[Row]) -> list[Shown]:
    """The parts of all items, those of the request first; texts are as received."""
    shown = []
    for item in sorted(items, key=lambda item: read.text(item, "direction") != "request"):
        place = f"{read.text(item, 'direction')} {read.text(item, 'position')}"
        where = read.dotted([place, read.text(item, "role"), read.text(item, "item_id")])
        shown += [_part(where, part) for part in _decoded(item)]
    return shown


def _decoded(item: Row) -> list[Row]:
    try:
        found = orjson.loads(read.text(item, "parts") or "[]")
    except orjson.JSONDecodeError:
        return [{"kind": "unreadable", "text": read.text(item, "parts")}]
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def _part(where: str, part: Row) -> Shown:
    size = read.whole(part, "size")
    told = [
        where,
        read.text(part, "kind"),
        read.text(part, "tool"),
        read.text(part, "call_id"),
        "error" if part.get("is_error") is True else "",
        "" if size is None else f"size {size:,}",
        "erased" if part.get("erased") is True else "",
        "not shown here: it belongs to the ux lane" if part.get("ux") is True else "",
    ]
    sealed = part.get("sealed")
    told += [
        f"sealed {read.text(value, 'kind')} {read.text(value, 'state')}"
        for value in (sealed if isinstance(sealed, list) else [])
        if isinstance(value, dict)
    ]
    return Shown(read.dotted(told), read.text(part, "text"), read.content(part, "commit"))
