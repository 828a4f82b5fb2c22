"""One record, sealed: every leaf is looked at, and every sealed value gives way to a mark."""

from facta.model.records import Record
from facta.model.sealed import Marks, Sealed
from facta.sealing import places
from facta.sealing.judging import decide, scan
from facta.sealing.known import Known, sealed
from facta.sealing.leaves import Leaf, Walk, attribute_node, is_quiet, is_silent, rebuilt
from facta.sealing.places import Place
from facta.sealing.streams import join


def _limit(leaves: list[Leaf]) -> int:
    """The length at which an attribute of this record was visibly cut, or 0."""
    for leaf in leaves:
        for spot in leaf.spots:
            if spot.state == "truncated" and spot.end == len(leaf.text) and spot.start > 0:
                return len(leaf.text)
    return 0


class _Sealing:
    """What is found in one record, and the record without it."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.provider: str | None = None
        self.marks = Marks(record.marks.nonce, list(record.marks.sealed))
        self.leaves = list(Walk(is_quiet).record(record))
        self.changes: list[tuple[Leaf, str]] = []

    def run(self) -> Record:
        for leaf in self.leaves:
            leaf.look()
        join([spot for leaf in self.leaves for spot in leaf.spots if spot.stream])
        known = Known(spot for leaf in self.leaves for spot in leaf.spots)
        self._decide(known)
        self.changes = [(leaf, self._replaced(leaf)) for leaf in self.leaves if leaf.spots]
        if known.values:
            self._copies(known)
        return rebuilt(self.record, self.marks, self.changes) if self.changes else self.record

    def _decide(self, known: Known) -> None:
        for leaf in self.leaves:
            for spot in leaf.spots:
                if not spot.by:
                    known.recognise(spot)
                if not spot.by:
                    decide(spot)
            leaf.spots = [spot for spot in leaf.spots if spot.by]
        limit = _limit(self.leaves)
        for leaf in self.leaves:
            for spot in leaf.spots:
                if limit and spot.end - spot.start == limit == len(leaf.text):
                    spot.state = "truncated"

    def _provider(self) -> str:
        if self.provider is None:
            self.provider = places.provider_of(dict(self.record.attributes))
        return self.provider

    def _replaced(self, leaf: Leaf) -> str:
        """The leaf's text with a mark in the place of each sealed value."""
        text, at = leaf.text, 0
        parts: list[str] = []
        for spot in leaf.spots:
            mark = "" if spot.by == "joined" else self.marks.add(sealed(spot, self._provider()))
            if isinstance(text, bytes):
                return mark
            parts += [text[at : spot.start], spot.before, mark, spot.after]
            at = spot.end
        return "".join([*parts, text[at:]]) if isinstance(text, str) else ""

    def _copies(self, known: Known) -> None:
        """Replace beginnings of the known values wherever else they stand."""
        done = {leaf.path: text for leaf, text in self.changes if not leaf.is_key}
        keys = [(leaf, text) for leaf, text in self.changes if leaf.is_key]
        again: list[tuple[Leaf, str]] = []
        for leaf in Walk(known.passes_over).record(self.record):
            if leaf.is_key or isinstance(leaf.text, bytes):
                continue
            was_changed = leaf.path in done
            leaf.text = done.pop(leaf.path, leaf.text)
            leaf.spots = known.copies(leaf.text)
            if leaf.spots or was_changed:
                again.append((leaf, self._replaced(leaf)))
        kept = [(leaf, text) for leaf, text in self.changes if leaf.path in done]
        self.changes = again + kept + keys


def seal(record: Record) -> Record:
    """The record with a mark in the place of every sealed value, in every string and bytes of it.

    Pure: the given record is left as it is (and given back where nothing in it is sealed), and the
    same record always gives the same sealed facts. All text outside sealed values stays exact. A
    bytes leaf that holds a sealed value becomes a string, as a mark is text.
    """
    return record if is_silent(record) else _Sealing(record).run()


def classify(text: str, path: str = "") -> Sealed | None:
    """What one value alone would be sealed as at an attribute path; None where it is ordinary.

    `path` is a dotted path such as `gen_ai.output.messages.0.parts.0.signature`; without one, the
    value is judged as model output, by its structure and shape.
    """
    key, node = attribute_node(path, {})
    place = Place(key, node, places.zone_of(path) if path else "model")
    spots = scan(text, place)
    if len(spots) != 1:
        return None
    (spot,) = spots
    if not spot.by:
        decide(spot)
    return sealed(spot, "") if spot.by and spot.end - spot.start == len(text.strip()) else None
