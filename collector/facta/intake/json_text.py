"""JSON text, found before it is parsed: where values end, without looking into them.

A parser refuses a whole text for one bad escape; here a text is cut into the places of its members
and entries first, so that each can be parsed alone. Nothing here recurses.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from facta.intake.errors import Refused
from facta.intake.wire import Damaged, Steps

_SPACE = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^\s,\]}\[{\":]+")
# Runs of text without a bracket of interest are passed over in one call, of at most so many bytes:
# other threads get their turn in between.
_RUN = 1 << 20
_ESCAPES = re.compile(rb"(?:[^\"\\]*+\\.)*+[^\"\\]*+", re.DOTALL)
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'(?:[^"\[\]{}]++|' + _STRING + rb")"
_INNER = rb"\{" + _FLAT + rb"*+\}"
_OUTER = rb"\{(?:" + _FLAT + rb"|" + _INNER + rb")*+\}"
_PLAIN = re.compile(rb"(?:" + _FLAT + rb"|" + _OUTER + rb")*+", re.DOTALL)
_QUOTE, _BACKSLASH, _COMMA, _COLON = b'"\\,:'
_OPEN, _CLOSE = b"[{", b"]}"
_LIST, _LIST_END, _MAP, _MAP_END = b"[]{}"

# Takes where a value begins, returns where it ends.
Handler = Callable[[int], int]


def skip_space(data: bytes, at: int) -> int:
    """The next place that is not white space."""
    match = _SPACE.match(data, at)
    return match.end() if match else at


def string_end(data: bytes, at: int) -> int:
    """Where the string that begins at `at` ends; raises Damaged."""
    begin = at
    at += 1
    quote = data.find(b'"', at)
    if quote < 0:
        raise Damaged(begin)
    if quote == at or data[quote - 1] != _BACKSLASH:
        return quote + 1
    # Whether that quote is escaped, only going through the escapes before it tells.
    while True:
        match = _ESCAPES.match(data, at, at + _RUN)
        if not match or match.end() == at:
            raise Damaged(begin)
        at = match.end()
        if data[at : at + 1] == b'"':
            return at + 1


def value_end(data: bytes, at: int, steps: Steps) -> int:
    """Where the value that begins at `at` ends; raises Damaged. Its inside is not checked."""
    if at >= len(data):
        raise Damaged(at)
    first = data[at]
    if first == _QUOTE:
        return string_end(data, at)
    if first in _OPEN:
        return _bracket_end(data, at, steps)
    match = _SCALAR.match(data, at)
    if not match:
        raise Damaged(at)
    return match.end()


def _bracket_end(data: bytes, at: int, steps: Steps) -> int:
    begin, depth = at, 0
    while at < len(data):
        steps.left -= 1
        if steps.left < 0:
            raise steps.spent(begin)
        found = data[at]
        if found in _OPEN:
            depth += 1
            at += 1
        elif found in _CLOSE:
            depth -= 1
            at += 1
            if depth == 0:
                return at
        elif found == _QUOTE:
            at = string_end(data, at)
        match = _PLAIN.match(data, at, at + _RUN)
        if match:
            at = match.end()
    raise Damaged(begin)


def members(data: bytes, at: int, handlers: dict[str, Handler], steps: Steps) -> int:
    """Walk the object at `at`: a handler for each known key, the rest skipped. Returns its end."""
    if data[at : at + 1] != b"{":
        return value_end(data, at, steps)
    at = skip_space(data, at + 1)
    while at < len(data) and data[at] != _MAP_END:
        steps.left -= 1
        if steps.left < 0:
            raise steps.spent(at)
        if data[at] != _QUOTE:
            raise Damaged(at)
        end = string_end(data, at)
        handler = handlers.get(_key(data[at:end]))
        at = skip_space(data, end)
        if data[at : at + 1] != b":":
            raise Damaged(at)
        at = skip_space(data, at + 1)
        at = _after_comma(data, handler(at) if handler else value_end(data, at, steps), _MAP_END)
    return _closed(data, at)


def entries(data: bytes, at: int, handler: Handler, steps: Steps) -> int:
    """Walk the list at `at`: the handler for each entry. Returns its end."""
    if data[at : at + 1] != b"[":
        return value_end(data, at, steps)
    at = skip_space(data, at + 1)
    while at < len(data) and data[at] != _LIST_END:
        steps.left -= 1
        if steps.left < 0:
            raise steps.spent(at)
        at = _after_comma(data, handler(at), _LIST_END)
    return _closed(data, at)


def _after_comma(data: bytes, at: int, close: int) -> int:
    """The next member or entry, or the closing bracket."""
    at = skip_space(data, at)
    if at < len(data) and data[at] == _COMMA:
        return skip_space(data, at + 1)
    if at < len(data) and data[at] != close:
        raise Damaged(at)
    return at


def _closed(data: bytes, at: int) -> int:
    if at >= len(data):
        raise Damaged(at)
    return at + 1


def _key(raw: bytes) -> str:
    if b"\\" not in raw:
        return raw[1:-1].decode("utf-8", "replace")
    try:
        key = parse(raw)
    except Refused:
        return ""
    return key if isinstance(key, str) else ""


def parse(raw: bytes) -> Any:
    """The value of one small JSON text: strictly, or else as far as nothing is lost by it.

    The tolerant second way takes NaN and infinities and control characters in strings. Raises
    Refused, also for lone surrogates, which no UTF-8 text can hold.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        pass
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise Refused("invalid UTF-8") from None
    try:
        value = json.loads(text, strict=False)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Refused("lone surrogate") from None
    except RecursionError:
        raise Refused("nested too deep") from None
    except ValueError:
        raise Refused("not JSON") from None
    return value


def count_values(data: bytes) -> int:
    """At most so many values are in a JSON text: its commas and opening brackets, strings apart."""
    if _signs(data, 0, len(data)) < len(data) // 64:
        return _signs(data, 0, len(data))
    return sum(_signs(data, start, end) for start, end in _outside_strings(data))


def _signs(data: bytes, at: int, end: int) -> int:
    return sum(data.count(sign, at, end) for sign in (b",", b"[", b"{"))


def _outside_strings(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while (quote := data.find(b'"', at)) >= 0:
        yield at, quote
        try:
            at = string_end(data, quote)
        except Damaged:
            return
    yield at, len(data)
