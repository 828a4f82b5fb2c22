"""Text from outside, made fit to be looked at.

Tool results, prompts, names and ids are somebody else's text. Here it becomes text that shows what
it holds: characters that cannot be seen or that turn the direction of writing are written out, and
long values are cut with the number of characters left out. Nothing here makes text fit for Markdown:
it is shown only by elements that do not read any (st.text, st.code, cells of st.dataframe).
"""

import re
import unicodedata
from dataclasses import dataclass

LINE_LIMIT = 160
"""Characters of a name, an id or a cell."""

PREVIEW_LIMIT = 1_200
"""Characters of a value that are shown at once."""

PREVIEW_LINES = 16
"""Lines of a value that are shown at once."""

FULL_LIMIT = 100_000
"""Characters of a value that are shown on demand; the API has the rest."""

_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS_KEPT = 3


@dataclass(frozen=True, slots=True)
class Cut:
    """The head of a text, and how many characters of the text follow it."""

    head: str
    more: int


def visible(text: str) -> str:
    """`text` with every character that is hidden, reorders its neighbours or piles up written out.

    Newlines and tabs stay. C0 controls become their Unicode pictures, all others ⟨U+XXXX⟩:
    controls, format characters (bidi, zero-width, tags), surrogates, private use, unassigned,
    variation selectors, characters drawn as nothing, and combining marks beyond three in a row.
    """
    alphabet = set(text)
    hidden = {char for char in alphabet if _is_hidden(char)}
    if hidden:
        text = text.translate({ord(char): _written(char) for char in hidden})
    piling = {char for char in alphabet - hidden if unicodedata.category(char) in {"Mn", "Me"}}
    marks = re.escape("".join(piling))
    if not marks:
        return text
    pile = re.compile(f"(?<=[{marks}]{{{_MARKS_KEPT}}})[{marks}]+")
    return pile.sub(lambda match: "".join(map(_written, match[0])), text)


def line(text: str, limit: int = LINE_LIMIT) -> str:
    """`text` on one line: visible, line breaks and tabs shown as signs, cut at `limit`."""
    head = cut(text, limit)
    shown = visible(head.head).replace("\n", "⏎").replace("\t", "⇥")
    return f"{shown}{left_out(head)}"


def cut(text: str, limit: int, lines: int | None = None) -> Cut:
    """The first `limit` characters of `text`, and no more than `lines` lines of them."""
    head = text[:limit]
    if lines is not None and head.count("\n") >= lines:
        head = "\n".join(head.split("\n", lines)[:lines])
    return Cut(head, len(text) - len(head))


def left_out(part: Cut) -> str:
    """What stands after a cut text: "" where nothing was left out."""
    return f" … {part.more:,} more characters" if part.more else ""


def _is_hidden(char: str) -> bool:
    if char in "\n\t":
        return False
    return (
        unicodedata.category(char) in _HIDDEN_CATEGORIES
        or char in _BLANK
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    )


def _written(char: str) -> str:
    code = ord(char)
    if code < 0x20:  # noqa: PLR2004  (the C0 controls have pictures of their own)
        return chr(0x2400 + code)
    return f"⟨U+{code:04X}⟩"
