"""Attribute values: finding them by name, and opening the texts that hold structures."""

import ast
import math
import re
from collections.abc import Iterable, Iterator
from typing import cast

import orjson
from pydantic_core import from_json

from facta.model.records import Attributes, Record, Value

Attrs = dict[str, Value]
_REPR_LIMIT = 4_000_000
_CUTS = 3
_NAME_LENGTH = 128
_INT64 = 1 << 63
_INDEX_DIGITS = 9
_COLUMN = re.compile(r"line (\d+) column (\d+)")


def attributes_of(pairs: Attributes) -> Attrs:
    """The attributes by key; of a repeated key the first value counts, as OTLP readers have it."""
    out: Attrs = {}
    for key, value in pairs:
        out.setdefault(key, value)
    return out


def text_of(value: Value) -> str:
    """A value as text: a string as it is, anything else as compact JSON; None is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON would make it null
    return dump(value)


def dump(value: Value) -> str:
    """Compact JSON of a value; bytes become their hex, what JSON cannot say becomes its text."""

    def other(odd: object) -> str:
        return odd.hex() if isinstance(odd, bytes) else str(odd)

    try:
        return orjson.dumps(value, default=other, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, orjson.JSONEncodeError):
        return repr(value)


def load(value: Value) -> tuple[Value, bool]:
    """Open a text that holds JSON (whole or cut) or a Python repr; (value, whether it was cut).

    Anything that is not such a text comes back as it is. Cut JSON gives all that precedes the cut,
    the last string as far as it goes (an attribute length limit cuts anywhere).
    """
    if not isinstance(value, str):
        return value, False
    head = value.lstrip()[:1]
    if head not in ("{", "[", '"'):
        return value, False
    try:
        return cast("Value", orjson.loads(value)), False
    except orjson.JSONDecodeError:
        pass
    if (shown := _load_repr(value)) is not None:
        return shown, False
    shown = _load_cut(value)
    return (shown, True) if shown else (value, False)


def _load_cut(text: str) -> Value:
    """Cut JSON as far as it goes; where a host wrote words behind its cut, what precedes them."""
    for _ in range(_CUTS):
        try:
            return cast("Value", from_json(text, allow_partial="trailing-strings"))
        except ValueError as error:
            place = _COLUMN.search(str(error))
            if place is None or place[1] != "1" or int(place[2]) <= len("["):
                return None
            # The parser counts bytes; what it could not read begins there.
            text = (
                text.encode("utf-8", "surrogatepass")[: int(place[2]) - 1]
                .decode("utf-8", "ignore")
                .rstrip(", \n")
            )
    return None


def _load_repr(text: str) -> Value:
    if len(text) > _REPR_LIMIT or ("'" not in text and "None" not in text):
        return None
    try:
        value = cast("Value", ast.literal_eval(text))
        # What JSON cannot say (a lone surrogate, a set) is left as the text that it came in.
        orjson.dumps(value, default=bytes.hex, option=orjson.OPT_NON_STR_KEYS)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None
    return value


def load_list(value: Value) -> tuple[list[Value], bool]:
    """A list of structures: a JSON list, one structure alone, or a list of JSON texts."""
    tree, cut = load(value)
    if tree is None or tree == "":
        return [], cut
    if not isinstance(tree, list):
        return [tree], cut
    out: list[Value] = []
    for entry in tree:
        opened, cut_here = load(entry)
        out.append(opened)
        cut = cut or cut_here
    return out, cut


def first(attrs: Attrs, keys: Iterable[str]) -> Value:
    """The first of the keys' values that is there and not empty."""
    for key in keys:
        value = attrs.get(key)
        if value is not None and value not in ("", []):
            return value
    return None


def strings(value: Value) -> Iterator[str]:
    """Every string leaf of a value, in order, keys left out."""
    stack: list[Value] = [value]
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            yield here
        elif isinstance(here, list):
            stack.extend(reversed(here))
        elif isinstance(here, dict):
            stack.extend(reversed(list(here.values())))


def nest(attrs: Attrs, prefix: str) -> list[Value]:
    """OpenInference's flattened keys below `prefix` as a list of nested structures.

    `llm.input_messages.0.message.role` becomes `[{"message": {"role": …}}]`; indexes become lists
    in their order (a gap keeps the rest in order).
    """
    root: dict[str, Value] = {}
    for key, value in attrs.items():
        if not key.startswith(prefix + "."):
            continue
        here = root
        *path, leaf = key[len(prefix) + 1 :].split(".")
        for step in path[:32]:
            below = here.setdefault(step, {})
            if not isinstance(below, dict):
                below = here[step] = {"": below}
            here = below
        here[leaf] = value
    listed = _listed(root)
    return listed if isinstance(listed, list) else [listed] if listed else []


def _listed(value: Value) -> Value:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() and len(key) <= _INDEX_DIGITS for key in value):
        return [_listed(value[key]) for key in sorted(value, key=int)]
    return {key: _listed(inner) for key, inner in value.items()}


def number(value: Value) -> int | float | None:
    """A number that a column can hold, or a text that is one; None for anything else."""
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            try:
                value = float(value)
            except ValueError:
                return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_INT64 < value < _INT64 else None  # so is neither infinity nor NaN


def count(value: Value) -> int | None:
    """A number of things: whole, and not below zero."""
    amount = number(value)
    return int(amount) if amount is not None and amount >= 0 else None


def milliseconds(value: Value) -> int | None:
    """A duration that was told in milliseconds, in nanoseconds."""
    told = number(value)
    return count(told * 1_000_000) if told is not None else None


def elapsed(record: Record) -> int | None:
    """A record's duration in nanoseconds; None where its times give none."""
    return count(record.end_ns - record.start_ns) or None


def event_name(record: Record, attrs: Attrs) -> str:
    """A log record's event name: `event.name` first, since Codex puts a source line in its own field."""
    named = attrs.get("event.name")
    if isinstance(named, str) and named:
        return named
    if record.name:
        return record.name
    return record.body if isinstance(record.body, str) and len(record.body) < _NAME_LENGTH else ""
