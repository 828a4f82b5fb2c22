"""The layers of a string: where values may be sealed, and the strings inside JSON and reprs.

One tolerant scanner reads JSON, Python reprs, several of them joined, server-sent events and any
of these cut off, and gives each string with its exact place, so that a replacement leaves every
other character as it was.
"""

import ast
import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from facta.sealing.places import INDEXES, LABELS, Node, is_sealed_key, label

RUN = 40  # characters of the base64 classes (and of JSON escapes) that make a run
_WORD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-\\"
_CLASSES = bytes(120 if byte in _WORD_BYTES else 32 for byte in range(256))  # "x" or " "
# Parts of the names in the table that a short sealed value (a handle, a piece) stands beside.
_WORDS = ("ignature", "ncrypted", "edacted")
SHORTEST_TEXT = 32
_LONG_RUN = b"x" * RUN
_MOST_TOKENS = 400_000


def classes(text: str) -> bytes:
    """One byte per character: "x" where it may belong to base64 or an escape, else a space."""
    return text.encode("latin-1", "replace").translate(_CLASSES)


def runs(text: str, shortest: int = RUN) -> list[tuple[int, int]]:
    """Start and end of every run of at least `shortest` such characters."""
    found, spread, wanted = [], classes(text), b"x" * shortest
    start = spread.find(wanted)
    while start >= 0:
        end = spread.find(b" ", start)
        end = len(text) if end < 0 else end
        found.append((start, end))
        start = spread.find(wanted, end)
    return found


def is_quiet(text: str) -> bool:
    """Whether the text can hold no sealed value, unless its own key says so. Cheap: all text passes."""
    if len(text) < SHORTEST_TEXT:
        return True
    if "ignature" in text or "ncrypted" in text or "edacted" in text:  # _WORDS, unrolled
        return False
    return _LONG_RUN not in text.encode("latin-1", "replace").translate(_CLASSES)


def _spots(text: str, found: list[tuple[int, int]]) -> list[int]:
    """Where something may be: the starts of runs, and the names of the table."""
    spots = [start for start, _ in found]
    for word in _WORDS:
        at = text.find(word)
        while at >= 0:
            spots.append(at)
            at = text.find(word, at + len(word))
    return sorted(spots)


_TOKEN = re.compile(
    r"""(?P<string>(?P<prefix>[bBrRuU]{1,2})?+(?:
            "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)(?P<end2>")?+
          | '(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)(?P<end1>')?+ ))
      | (?P<mark>[{}\[\](),:=])
      | (?P<word>[A-Za-z_][\w.]*+)""",
    re.DOTALL | re.VERBOSE,
)


@dataclass(slots=True)
class Token:
    """One string value inside a text: `start` to `end` is what stands between its quotes."""

    start: int
    end: int
    inner: str
    key: str
    node: Node
    cut: bool
    is_bytes: bool

    def whole(self) -> tuple[int, int]:
        """The literal with its prefix and quotes, for a bytes literal."""
        return self.start - 2, self.end + (0 if self.cut else 1)


_NUMBER = re.compile(r"\s*(\d{1,9})")


class _Reader:
    """Follows the tokens of one text: which object and key each string stands under."""

    def __init__(self, root: Node, spots: list[int]) -> None:
        self.root = self.here = root
        self.spots = spots
        self.key = ""
        self.depth = 0
        self.held: re.Match[str] | None = None
        self.found: list[Token] = []

    def read(self, text: str, start: int) -> list[Token]:
        """The strings of interest; reading stops where no object with one of them is open."""
        last = self.spots[-1]
        for token in islice(_TOKEN.finditer(text, start), _MOST_TOKENS):
            if token.lastgroup == "mark":
                self._mark(token[0], text, token.end())
                if self.here is self.root and token.start() > last:
                    break
            else:
                if self.held is not None:
                    self._settle()
                self.held = token
        self._settle()
        return self.found

    def _mark(self, mark: str, text: str, end: int) -> None:
        if mark in ":=":
            self._name(text, end)
            return
        if self.held is not None:
            self._settle()
        if mark in "{[(":
            if self.depth < _DEEPEST:
                self.here = Node(self.key, self.here)
            self.depth += 1
        elif mark != "," and self.depth:
            self.depth -= 1
            if self.depth < _DEEPEST:
                self.here = self.here.parent or self.root
        self.key = ""

    def _name(self, text: str, end: int) -> None:
        """The held string or word was a key."""
        if self.held is None:
            return
        held, self.held = self.held, None
        self.key = held["word"] or held["double"] or held["single"] or ""
        if self.key in LABELS:
            number = _NUMBER.match(text, end) if self.key in INDEXES else None
            self.here.labels.setdefault(self.key, number[1] if number else "")

    def _settle(self) -> None:
        """The held string, if any, was a value."""
        held, self.held = self.held, None
        if held is None or held["word"]:
            return
        group = "double" if held["double"] is not None else "single"
        start, end = held.span(group)
        if self.key in LABELS and end - start <= 64:  # noqa: PLR2004 - as labels_of
            self.here.labels[self.key] = label(self.key, held[group])
        at = bisect_left(self.spots, start)
        holds_spot = at < len(self.spots) and self.spots[at] < end
        if holds_spot or (end > start and is_sealed_key(self.key or self.here.key)):
            cut = held["end2"] is None and held["end1"] is None
            is_bytes = "b" in (held["prefix"] or "").lower()
            self.found.append(Token(start, end, held[group], self.key, self.here, cut, is_bytes))


# Where structure begins. All repeats are bounded: a text of 10 MB passes here too.
_OPENING = re.compile(r"[\[{(]\s{0,64}(?:[bu]?[\"']|[\[{(]|[A-Za-z_]\w{0,64}=)|\A\s{0,64}\"")
_DEEPEST = 64  # objects in objects: deeper ones count as the one around them


def strings(text: str, node: Node, found: list[tuple[int, int]]) -> Iterator[Token]:
    """The strings of structured text in which something may be sealed, in order.

    `node` is what stands around the text. Nothing is given for text without structure; where
    structure begins later (a log line that ends in JSON), it is read from there.
    """
    spots = _spots(text, found)
    opening = _OPENING.search(text) if spots else None
    if opening is None:
        return
    yield from _Reader(Node("", node), spots).read(text, opening.start())


_STRUCTURED = re.compile(r"\s*(?:[\[{(\"]|(?:data|event|id):|[A-Za-z_][\w.]{0,64}\()")


def is_structured(text: str) -> bool:
    """Whether the whole text is structured, and not prose with some JSON in it."""
    return _STRUCTURED.match(text) is not None


_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|u[0-9a-fA-F]{4}|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)",
    re.DOTALL,
)
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def _plain(escape: re.Match[str]) -> str:
    body = escape[0][1:]
    if body[0] in "uUx" and len(body) > 1:
        if len(body) == 11:  # noqa: PLR2004 - a surrogate pair, uXXXX\uXXXX
            high, low = int(body[1:5], 16), int(body[7:], 16)
            return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
        return chr(int(body[1:], 16))
    return _SIMPLE.get(body, body)


def unescape(inner: str) -> str:
    """The text that a JSON or Python string literal stands for, read without its quotes."""
    if "\\" not in inner:
        return inner
    try:
        decoded = json.loads(f'"{inner}"', strict=False)
    except ValueError:
        return _ESCAPE.sub(_plain, inner)
    return decoded if isinstance(decoded, str) else inner


def raw_offsets(inner: str, wanted: list[int]) -> dict[int, int]:
    """For offsets in the decoded text, the offsets in the literal's inner text.

    The text is halved where no escape is cut apart, and only lengths of decoded halves are looked
    at, so that long texts cost little more than their decoding.
    """
    if "\\" not in inner:
        return {offset: offset for offset in wanted}
    found: dict[int, int] = {}
    todo = [(0, len(inner), 0, sorted(set(wanted)))]
    while todo:
        low, high, decoded, offsets = todo.pop()
        if not offsets:
            continue
        middle = _safe_cut(inner, low, high) if high - low > _SHORT else high
        if middle >= high:
            found |= _walked(inner, low, high, decoded, offsets)
            continue
        first = decoded + len(unescape(inner[low:middle]))
        at = bisect_left(offsets, first)
        todo.append((low, middle, decoded, offsets[:at]))
        todo.append((middle, high, first, offsets[at:]))
    return found


_SHORT = 4096
_NO_ESCAPE = re.compile(r"[^\\]{13}")  # longer than an escape, so that its end is in none


def _safe_cut(inner: str, low: int, high: int) -> int:
    """An offset about the middle that no escape spans, or `high`; `low` is such an offset."""
    middle = (low + high) // 2
    stretch = _NO_ESCAPE.search(inner, middle, min(high, middle + _SHORT))
    if stretch:
        return stretch.end()
    start = low + len(inner[low:middle].rstrip("\\"))
    if start > low and "\\" in inner[max(low, start - 13) : start]:
        return high
    return middle + (middle - start) % 2  # inside a run of backslashes they go in pairs


def _walked(inner: str, low: int, high: int, decoded: int, offsets: list[int]) -> dict[int, int]:
    """As `raw_offsets`, escape by escape, from one offset to another."""
    found: dict[int, int] = {}
    todo, raw = offsets[::-1], low
    for escape in _ESCAPE.finditer(inner, low, high):
        plain = escape.start() - raw
        while todo and todo[-1] <= decoded + plain:
            offset = todo.pop()
            found[offset] = raw + offset - decoded
        if not todo:
            return found
        decoded, raw = decoded + plain + 1, escape.end()
    return found | {offset: raw + offset - decoded for offset in todo}


def bytes_literal(text: str) -> bytes | None:
    """The bytes of a Python bytes repr (`b'…'`), whole; None for any other text."""
    if len(text) < 4 or text[:2] not in ("b'", 'b"') or text[-1] != text[1]:  # noqa: PLR2004 - b'x'
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, bytes) else None
