"""Sightings unfolded: a turn shows the sealed values of the history that it carries again.

The table holds each place once, in the turn that first showed it. A turn names in `context_of` the
turn whose request begins with the same `context_kept` items; what that request shows before that
item, this one shows too, at the same positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from facta.store.store import Row

REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Chain:
    """A session's turns in order, by id, and its stored sightings by turn, in order of place."""

    turns: dict[str, Row]
    own: dict[str, list[Row]]

    @classmethod
    def of(cls, turns: Sequence[Row], sightings: Sequence[Row]) -> "Chain":
        """From rows of the views chain_of_turns and sightings_of_sessions."""
        own: dict[str, list[Row]] = {}
        for row in sightings:
            own.setdefault(row["turn_id"], []).append(row)
        return cls({row["turn_id"]: row for row in turns}, own)

    def ids(self) -> list[str]:
        """The turns in order, then what belongs to no known turn."""
        return [*self.turns, *sorted(self.own.keys() - self.turns.keys())]

    def sightings(self, turn_id: str) -> list[Row]:
        """All that a turn shows: its request's in order of place, then its response's.

        Each row has the turn's id, and in `first_turn_id` the one that first showed the place.
        """
        own = self.own.get(turn_id, [])
        request = [row for row in own if row["direction"] == REQUEST]
        response = [row for row in own if row["direction"] != REQUEST]
        inherited = self._inherited(turn_id)
        return [
            row | {"turn_id": turn_id, "first_turn_id": row["turn_id"]}
            for row in [*inherited, *request, *response]
        ]

    def count_inherited(self, turn_id: str) -> int:
        """How many sightings a turn shows again."""
        return len(self._inherited(turn_id))

    def _inherited(self, turn_id: str) -> list[Row]:
        """What the shared part of the history shows, in order of place.

        What the turn itself is told to show at such a place (by a second observer) is not repeated.
        """
        told = {_place(row) for row in self.own.get(turn_id, []) if row["direction"] == REQUEST}
        shown = [row for row in self._shared(turn_id) if _place(row) not in told]
        return sorted(shown, key=lambda row: row["item"])

    def _shared(self, turn_id: str) -> Iterator[Row]:
        """Walks back along `context_of`; each step can only narrow how much is shared.

        Only places of an item list are: a sealed value beside the lists has no position.
        """
        turn = self.turns.get(turn_id)
        shared = turn["context_kept"] if turn else 0
        seen = {turn_id}
        while turn and shared > 0 and turn["context_of"] not in seen:
            before = turn["context_of"]
            seen.add(before)
            for row in self.own.get(before, []):
                if row["direction"] == REQUEST and row["position"] and row["item"] < shared:
                    yield row
            turn = self.turns.get(before)
            shared = min(shared, turn["context_kept"]) if turn else 0


def _place(row: Row) -> tuple[str, str, int, str]:
    return row["position"], row["kind"], row["size"], row["sha256"]
