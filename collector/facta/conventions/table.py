"""The attribute table (schema/conventions/attributes.yaml), and reading a turn's settings by it."""

from functools import cache
from typing import Any, cast

import yaml

from facta.assets import ROOT
from facta.conventions.values import Attrs, count, first, load_list, number, text_of
from facta.model.facts import Turn
from facta.model.records import Value

_NUMBERS = {"reported_cost", "attempt"}
_TRUTHS = {"store", "background"}


@cache
def table() -> dict[str, Any]:
    """The table as it stands in its file."""
    path = ROOT / "schema" / "conventions" / "attributes.yaml"
    return cast("dict[str, Any]", yaml.safe_load(path.read_text(encoding="utf-8")))


@cache
def known_keys() -> frozenset[str]:
    """Every key that the table names: read into columns, so not kept again as plain attributes."""
    out: set[str] = set()
    stack: list[Any] = [v for k, v in table().items() if k != "summaries"]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            out.add(here)
        else:
            stack.extend(here.values() if isinstance(here, dict) else here)
    return frozenset(out)


def session_of(attrs: Attrs) -> str:
    """The session as claimed by a record's own attributes; empty where it claims none."""
    return text_of(first(attrs, table()["session"]))


def agent_of(attrs: Attrs) -> str:
    """The agent's name where the record gives one."""
    return text_of(first(attrs, table()["agent"]))


def fill(turn: Turn, attrs: Attrs) -> Turn:
    """Settings, usage, response id and finish reasons of a turn from flat attributes."""
    for column, keys in table()["settings"].items():
        value = first(attrs, keys)
        if value is not None:
            turn.settings.setdefault(column, setting(column, value))
    for column, keys in table()["usage"].items():
        amount = count(first(attrs, keys))
        if amount is not None:
            turn.usage.setdefault(column, amount)
    turn.response_id = turn.response_id or text_of(first(attrs, table()["response_id"]))
    if not turn.finish_reasons:
        turn.finish_reasons = reasons(first(attrs, table()["finish_reasons"]))
    turn.error = turn.error or text_of(attrs.get("error.type"))
    return turn


def setting(column: str, value: Value) -> Value:
    """A setting in its column's type: a number, a truth, a list of texts, or a text."""
    if column in _NUMBERS:
        return number(value)
    if column in _TRUTHS:
        return value if isinstance(value, bool) else None
    if column == "include":
        return [text_of(entry) for entry in value] if isinstance(value, list) else []
    return text_of(value)


def reasons(value: Value) -> list[str]:
    """Finish reasons as a list of texts, whether they came as one, a list, or a JSON list."""
    return [text_of(entry) for entry in load_list(value)[0] if entry is not None]
