"""Is this value sealed, and as what? One leaf of a record at a time.

The order is the design's: place, known hash, structure, shape. Place is decided here at once; what
place does not decide waits as a loose spot until all values known by place are at hand.
"""

import re
from dataclasses import dataclass

from facta.model.sealed import SealedBy, State
from facta.sealing import layers, places, shapes
from facta.sealing.places import Place

DEEPEST_LAYER = 4  # an attribute's text, and three layers of JSON strings inside it
THOUGHT_TAIL = len("__thought__") + 16
THOUGHT_MARK = "__thought__"  # LiteLLM: <call id>__thought__<signature>
_OPAQUE = re.compile(r"[A-Za-z0-9+/_-]{40,}+={0,2}")
_OPAQUE_LINES = re.compile(r"[A-Za-z0-9+/_=\r\n-]{40,}")
_OPAQUE_ODD = re.compile(r"(?![{\[\"'<])[!-~]{40,}")  # a random prefix or dots, no spaces
_PIECE = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_LEADING_RUN = re.compile(r"[A-Za-z0-9+/_-]{16,}+={0,2}")
_CUT_MARK = re.compile(r"\s*(?:\.{3}|…|\[?[^\]\n]{0,40}?trunc)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(slots=True)
class Spot:
    """A value at `start` to `end` of a string that is sealed, or may be (`by` is empty then).

    `value` is what is hashed; `size` overrides its length for literals that state one. `stream`
    is set for a piece of a streamed value: what its pieces have in common.
    """

    start: int
    end: int
    value: str | bytes
    kind: str
    by: SealedBy | str
    state: State = "whole"
    confidence: float = 1.0
    size: int = -1
    plain: bytes | None = (
        None  # the bytes it stands for, where its text alone does not decode to them
    )
    stream: tuple[str, ...] = ()
    place: Place | None = None
    whole_leaf: bool = False
    before: str = ""  # what the replacement keeps around the mark: quotes of a bytes literal
    after: str = ""
    cut: bool = False


def scan(text: str, place: Place, depth: int = 0, *, cut: bool = False) -> list[Spot]:
    """The spots of one leaf, by offset; `cut` says that the text's end was cut off."""
    rule = place.rule()
    if rule is not None:
        spot = _by_place(text, place, rule, cut=cut)
        if spot is not None:
            return [spot]
    found = layers.runs(text)
    spots = _inner(text, place, depth, found, cut=cut) if depth < DEEPEST_LAYER else []
    spots += _outside(text, place, found, spots, cut=cut)
    return sorted(spots, key=lambda spot: spot.start)


def scan_bytes(data: bytes, place: Place) -> Spot | None:
    """A raw bytes leaf that is sealed by its place or its structure."""
    rule = place.rule()
    if rule is not None and data:
        return Spot(0, len(data), data, rule.kind, "place", confidence=rule.confidence, place=place)
    head = shapes.bytes_head(data)
    if not head or len(data) < 72 or not shapes.ciphered(data):  # noqa: PLR2004 - the shortest seen
        return None
    if place.zone() != "model" and not shapes.parses(data):
        return None
    return Spot(0, len(data), data, KINDS[head], "structure", confidence=0.9, place=place)


KINDS = {
    "fernet": "openai.reasoning",
    "mantle": "bedrock.reasoning",
    "anthropic": "anthropic.signature",
    "gemini": "gemini.thought_signature",
}


def _by_place(text: str, place: Place, rule: places.Rule, *, cut: bool) -> Spot | None:
    """The value of a sealed place; None where it is no sealed value but readable text or an id."""
    spot = Spot(0, len(text), text, rule.kind, "place", confidence=rule.confidence, place=place)
    spot.plain = shapes.sentinel(text)
    literal = shapes.redacted(text)
    if spot.plain is not None:
        spot.kind = "placeholder"
    elif literal is not None:
        spot.state, spot.size = literal
    elif rule.kind != "tool_sealed" and shapes.is_handle(text):
        spot.kind = "handle"
    elif text.startswith(("b'", 'b"')):
        return _bytes_repr(text, spot, cut=cut)
    elif shapes.is_item_id(text):
        return None
    elif place.is_delta() and _PIECE.fullmatch(text):
        spot.stream = place.stream()
        spot.cut = cut
    else:
        return _opaque(text, spot, cut=cut)
    return spot


def _opaque(text: str, spot: Spot, *, cut: bool) -> Spot | None:
    core = text.strip()
    run = _LEADING_RUN.match(text)
    end = run.end() if run else 0
    if run and end < len(text) and (_CUT_MARK.match(text, end) or (cut and "\n" in text[end:])):
        spot.end, spot.value, spot.state = end, run[0], "truncated"
        return spot
    if _OPAQUE.fullmatch(core) or _OPAQUE_LINES.fullmatch(core) or _odd(core, spot):
        spot.start = text.index(core)
        spot.end, spot.value = spot.start + len(core), core
        spot.state = "truncated" if cut or shapes.overrun(core) else "whole"
        return spot
    if cut and run and end == len(text):
        spot.state = "truncated"
        return spot
    return None


def _odd(core: str, spot: Spot) -> bool:
    """A value in no known encoding: taken for sealed where the place is meant for nothing else."""
    return (
        spot.place is not None
        and spot.place.zone() != "tool"
        and _OPAQUE_ODD.fullmatch(core) is not None
        and not _URL.match(core)
    )


def _bytes_repr(text: str, spot: Spot, *, cut: bool) -> Spot | None:
    value = layers.bytes_literal(text)
    if value is not None:
        spot.value = value
    elif cut or not text.endswith(text[1]):
        spot.state, spot.size = "truncated", len(layers.unescape(text[2:]))
    else:
        return None
    return spot


def _inner(
    text: str, place: Place, depth: int, found: list[tuple[int, int]], *, cut: bool
) -> list[Spot]:
    """The spots inside the strings of structured text, with offsets in `text`."""
    spots: list[Spot] = []
    structured = layers.is_structured(text)
    # What stands in prose was pasted there: its shape says nothing.
    root = place.root if structured or place.root != "model" else "other"
    outer = places.Node(place.key, place.node)
    for token in layers.strings(text, outer, found):
        at = Place(token.key, token.node, root)
        trusted = token.cut and (structured or cut or token.node.parent is not outer)
        if token.is_bytes:
            spots += _bytes_token(text, token, at)
            continue
        value = layers.unescape(token.inner)
        inside = scan(value, at, depth + 1, cut=trusted)
        offsets = layers.raw_offsets(token.inner, [o for s in inside for o in (s.start, s.end)])
        for spot in inside:
            spot.start = token.start + offsets[spot.start]
            spot.end = token.start + offsets[spot.end]
        spots += inside
    return spots


def _bytes_token(text: str, token: layers.Token, at: Place) -> list[Spot]:
    start, end = token.whole()
    literal = text[start:end]
    value = layers.bytes_literal(literal)
    if value is None and not token.cut:
        return []
    spot = scan_bytes(value if value is not None else layers.unescape(token.inner).encode(), at)
    if spot is None:
        return []
    spot.start, spot.end = start, end
    spot.before, spot.after = literal[1], literal[1]
    if value is None:
        spot.state, spot.size, spot.after = "truncated", len(layers.unescape(token.inner)), ""
    return [spot]


def _outside(
    text: str, place: Place, found: list[tuple[int, int]], inside: list[Spot], *, cut: bool
) -> list[Spot]:
    """Loose spots: runs that stand in none of the spots found in strings."""
    spots: list[Spot] = []
    taken = [(spot.start, spot.end) for spot in inside]
    for run in found:
        for start, end in _without(run, taken):
            spots += _run(text, start, end, place, cut=cut)
    return spots


def _without(run: tuple[int, int], taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of the run that no taken range covers."""
    start, end = run
    parts = []
    for low, high in sorted(taken):
        if high <= start or low >= end:
            continue
        if low - start >= layers.RUN:
            parts.append((start, low))
        start = max(start, high)
    if end - start >= layers.RUN:
        parts.append((start, end))
    return parts


def _run(text: str, start: int, end: int, place: Place, *, cut: bool) -> list[Spot]:
    """The spots of one run: an id's tail, escaped text, or the base64 in it."""
    value = text[start:end]
    mark = value.find(THOUGHT_MARK)
    if mark >= 0 and len(value) - mark > THOUGHT_TAIL:
        return [_thought(text, start + mark, end, place)]
    core = value.rstrip("\\")
    if "\\" in core:
        plain = core
        for _ in range(DEEPEST_LAYER):
            plain = layers.unescape(plain)
        if _OPAQUE.fullmatch(plain):
            return [_loose(text, start, start + len(core), place, cut=cut, value=plain)]
    spots = []
    for part in _PARTS.finditer(core):
        low, high = start + part.start(), start + part.end()
        named = _NAMED.search(part[0])
        if (high - low >= shapes.SHORTEST and (low, high) != (start, end)) or named is None:
            spots.append(_loose(text, low, high, place, cut=cut))
        else:
            spots.append(_loose(text, low + named.start(1), high, place, cut=cut))
    return spots


# Base64 that escapes and "=" (not at its end) part from what stands before it.
_PARTS = re.compile(r"(?:(?<=\\[nrt])|(?<![^=\\]))[^=\\]{40,}+={0,2}")
# A value glued to a path or a name, known by its own head.
_NAMED = re.compile(r"[/_-](gAAAAA[A-D][A-Za-z0-9_-]{92}|rsn_[A-Za-z0-9+/_-]{96})")


def _loose(text: str, start: int, end: int, place: Place, *, cut: bool, value: str = "") -> Spot:
    value = value or text[start:end]
    whole_leaf = end - start == len(text.strip())
    spot = Spot(start, end, value, "", "", place=place, whole_leaf=whole_leaf)
    spot.kind = places.prose_kind(text, start, place.zone())
    spot.cut = (cut and end == len(text)) or _CUT_MARK.match(text, end) is not None
    return spot


def _thought(text: str, start: int, end: int, place: Place) -> Spot:
    """The tail of an id that carries a signature; the mark stands right after the id."""
    value = text[start + len(THOUGHT_MARK) : end].rstrip("\\")
    end = start + len(THOUGHT_MARK) + len(value)
    spot = Spot(start, end, value, "gemini.thought_signature", "place", place=place)
    spot.plain = shapes.sentinel(value)
    if spot.plain is not None:
        spot.kind = "placeholder"
    return spot


def decide(spot: Spot) -> None:
    """Say of a loose spot by its structure, or its shape, whether it is sealed (`by` is set)."""
    place, text = spot.place, spot.value
    if place is None or not isinstance(text, str):
        return
    zone = place.zone()
    head = shapes.structure(text)
    reasoning = zone == "model" and spot.whole_leaf and place.is_reasoning()
    if spot.kind and shapes.varied(text):
        spot.by, spot.confidence = "place", 0.8
    elif head and (reasoning or shapes.specific(text, head)):
        spot.by, spot.confidence, spot.kind = "structure", 0.9, KINDS[head]
        if head == "anthropic" and reasoning:
            spot.kind = "anthropic.redacted_thinking"
    elif zone == "model" and spot.whole_leaf and _shaped(text, reasoning=reasoning):
        spot.by, spot.confidence, spot.kind = "shape", 0.6 if reasoning else 0.4, "unknown"
    if (spot.by and (spot.cut or shapes.overrun(text))) or (
        spot.by in ("structure", "shape") and shapes.looks_cut(text)
    ):
        spot.state = "truncated"


def _shaped(text: str, *, reasoning: bool) -> bool:
    if not reasoning and len(text) < shapes.SHORTEST_BY_SHAPE:
        return False
    return shapes.is_opaque(text)
