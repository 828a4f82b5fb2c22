"""What is said of a sealed value, and the values of one record that are known again elsewhere."""

from collections.abc import Iterable

from facta.model.sealed import Sealed
from facta.sealing import digest, layers, places, shapes
from facta.sealing.judging import Spot
from facta.sealing.leaves import HEAD

_STANDARD = str.maketrans("-_", "+/")
_URL = str.maketrans("+/", "-_")


def _is_worth_knowing(spot: Spot) -> bool:
    return (
        spot.by == "place"
        and spot.kind != "placeholder"
        and spot.state in ("whole", "truncated")
        and len(spot.value) >= shapes.SHORTEST
    )


class Known:
    """The values of one record that are sealed by their place, to be known again elsewhere."""

    def __init__(self, spots: Iterable[Spot]) -> None:
        self.values: dict[str, list[tuple[str, str]]] = {}
        for spot in spots:
            if _is_worth_knowing(spot) and isinstance(spot.value, str):
                value = spot.value.translate(_STANDARD)
                same_head = self.values.setdefault(value[:HEAD], [])
                if (value, spot.kind) not in same_head:
                    same_head.append((value, spot.kind))
        self._heads = {form for head in self.values for form in (head, head.translate(_URL))}

    def recognise(self, spot: Spot) -> None:
        """Say of a loose spot that it is a known value, whole or a part of one."""
        if not isinstance(spot.value, str):
            return
        value = spot.value.translate(_STANDARD).rstrip("=")
        for known, kind in self.values.get(value[:HEAD], ()):
            if known.rstrip("=") == value:
                spot.by, spot.kind, spot.state, spot.confidence = "known", kind, "whole", 0.95
                return
            if known.startswith(value) or value.startswith(known):
                spot.by, spot.kind, spot.state, spot.confidence = "known", kind, "truncated", 0.8

    def passes_over(self, text: str | bytes, _key: str) -> bool:
        """The gate for copies: a text that holds no beginning of a known value."""
        if isinstance(text, bytes) or len(text) < HEAD:
            return True
        return len(self._heads) <= _FEW and not any(head in text for head in self._heads)

    def copies(self, text: str) -> list[Spot]:
        """Beginnings of known values, in a text whose sealed values are replaced (a preview)."""
        if self.passes_over(text, ""):
            return []
        spots = []
        for start, end in layers.runs(text, HEAD):
            for low in self._begins(text, start, end):
                value = text[low:end].rstrip("\\")
                spot = Spot(low, low + len(value), value, "", "")
                self.recognise(spot)
                if not spot.by:
                    kind = self.values[value[:HEAD].translate(_STANDARD)][0][1]
                    spot.by, spot.state, spot.kind = "known", "truncated", kind
                spots.append(spot)
        return spots

    def _begins(self, text: str, start: int, end: int) -> list[int]:
        """Where in a run a known value begins, if it does: at its start, or anywhere for few."""
        if text[start : start + HEAD] in self._heads:
            return [start]
        if len(self._heads) > _FEW:
            return []
        found = [text.find(head, start, end) for head in self._heads]
        return [at for at in sorted(found) if at >= 0][:1]


_FEW = 64  # so many heads are searched for in every text of the record


def sealed(spot: Spot, provider: str) -> Sealed:
    text = spot.value
    kind = spot.kind
    provider = (spot.place.vendor() if spot.place else "") or provider
    if isinstance(text, str) and kind not in _FIXED:
        kind = _by_head(kind, shapes.structure(text), provider)
    elif isinstance(text, bytes):
        kind = _by_head(kind, shapes.bytes_head(text), provider)
    by = spot.by
    assert by in ("place", "known", "structure", "shape")  # noqa: S101 - narrows the type
    if spot.state != "whole":
        size = spot.size if spot.size >= 0 else len(text)
        alphabet = "bytes" if isinstance(text, bytes) else digest.alphabet(text)
        alphabet = "" if spot.state in ("redacted", "withheld") else alphabet
        return Sealed(kind, spot.state, size, "", "", alphabet, by, spot.confidence)
    size, whole, decoded, alphabet = digest.facts(text)
    if spot.plain is not None:
        decoded = digest.sha256(spot.plain)
    if kind == "handle":
        decoded = alphabet = ""
    return Sealed(kind, spot.state, size, whole, decoded, alphabet, by, spot.confidence)


_FIXED = ("placeholder", "handle", "tool_sealed", "openai.compaction", "bedrock.redacted")


def _by_head(kind: str, head: str, provider: str) -> str:
    """The kind, where the value's own structure says more than its place."""
    if head == "fernet" and kind != "openai.compaction":
        return "openai.reasoning"
    if head == "mantle":
        return "bedrock.reasoning"
    if head == "anthropic" and kind.startswith("anthropic."):
        return kind
    if head == "anthropic":
        redacted = kind == "openai.reasoning"  # an encrypted reasoning detail of a gateway
        return "anthropic.redacted_thinking" if redacted else "anthropic.signature"
    if head == "gemini":
        return "gemini.thought_signature"
    return places.by_provider(kind, provider)
