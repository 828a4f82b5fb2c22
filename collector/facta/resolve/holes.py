"""Summaries inside longer texts: the text stays evidence, the summary's place in it is a hole.

Hosts wrap a summary in `<think>…</think>` or paste it into a prompt. The words are those of the ux
lane, so they are kept there alone; what stands around them was shown to the model and is evidence.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Hole(NamedTuple):
    """One cut: offset and length in characters of the whole text, and the summary's commitment."""

    offset: int
    length: int
    commit: str


class Ux:
    """The readable reasoning texts of one cluster, by commitment, and where they show in others."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        # The longest first: a text inside another summary is part of that one's hole.
        self._ordered = sorted(texts.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        self._known: dict[str, tuple[str, list[Hole]]] = {}

    def cut(self, commit: str, text: str) -> tuple[str, list[Hole]]:
        """A text with each summary replaced by `[ux N]`, and the holes in order."""
        if commit not in self._known:
            holes = self._holes(text)
            self._known[commit] = (cut(text, holes), holes)
        return self._known[commit]

    def _holes(self, text: str) -> list[Hole]:
        found: list[Hole] = []
        for commit, summary in self._ordered:
            at = text.find(summary)
            while at >= 0:
                end = at + len(summary)
                if all(end <= h.offset or at >= h.offset + h.length for h in found):
                    found.append(Hole(at, len(summary), commit))
                at = text.find(summary, end)
        return sorted(found)


def cut(text: str, holes: list[Hole]) -> str:
    """`text` with its holes cut out."""
    out: list[str] = []
    at = 0
    for hole in holes:
        out += [text[at : hole.offset], f"[ux {hole.length}]"]
        at = hole.offset + hole.length
    return "".join([*out, text[at:]])
