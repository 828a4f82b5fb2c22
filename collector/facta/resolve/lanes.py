"""Context, sightings and summaries of a session's turns, as deltas: each item where it first shows."""

from dataclasses import dataclass, field
from typing import Any

from facta.resolve import rows
from facta.resolve.chains import Chains, Link
from facta.resolve.holes import Ux
from facta.resolve.kinds import ux_kind
from facta.resolve.rows import Row, key_of
from facta.resolve.turns import Turn

MIN_UX = 24


@dataclass(slots=True)
class Delta:
    """What a turn's request adds: its new links, and the turn whose request has the same first items."""

    links: list[Link]
    context_of: str
    kept: int
    rewritten: bool


@dataclass(slots=True)
class Lists:
    """A session's item lists: for each turn the delta of its request, and its response."""

    chains: Chains
    deltas: dict[str, Delta] = field(default_factory=dict)
    responses: dict[str, list[Link]] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)

    def add(self, turn: Turn) -> Delta:
        """Read a turn; turns come in causal order."""
        head = turn.request["head"] if turn.request else ""
        links = self.chains.back(head, stop=self._shown.__contains__)[::-1]
        before = links[0].parent if links else head
        kept = links[0].depth if links else (turn.request["n"] if turn.request else 0)
        delta = Delta(links, self._shown.get(before, ""), kept, _rewritten(turn, kept))
        for link in links:
            self._shown[link.name] = turn.turn_id
        self.deltas[turn.turn_id] = delta
        self.responses[turn.turn_id] = (
            self.chains.items(turn.response["head"]) if turn.response else []
        )
        return delta


def _rewritten(turn: Turn, kept: int) -> bool:
    """Whether a request has other items than its parent's; where either was cut, nobody can tell."""
    mine, before = turn.request, turn.parent.request if turn.parent else None
    if mine is None or before is None or mine.get("cut") or before.get("cut"):
        return False
    return bool(mine["head"]) and kept < int(before["n"])


def is_ux(part: dict[str, Any]) -> bool:
    """Whether a part is reasoning text that the ux lane keeps as such everywhere."""
    return bool(part["k"] == "reasoning" and part.get("n", 0) >= MIN_UX)


def context_rows(turn: Turn, lists: Lists, ux: Ux) -> list[Row]:
    """The items that a turn's request adds, and those of its response."""
    out = [
        rows.context_row(turn, "request", link, lists.chains, ux)
        for link in lists.deltas[turn.turn_id].links
    ]
    out += [
        rows.context_row(turn, "response", link, lists.chains, ux)
        for link in lists.responses[turn.turn_id]
    ]
    return out


def sighting_rows(turn: Turn, lists: Lists) -> list[Row]:
    """The sealed values in those items."""
    observers = sorted({s.o.observer for s in turn.seen})
    out: list[Row] = []
    for direction, links in (
        ("request", lists.deltas[turn.turn_id].links),
        ("response", lists.responses[turn.turn_id]),
    ):
        for link in links:
            for n, part in enumerate(link.item["parts"]):
                place = (f"{link.depth}.{n}", link.depth, link.name, "")
                out += [
                    rows.sighting_row(
                        turn.session, turn.turn_id, direction, place, sealed, observers
                    )
                    for sealed in part.get("s", ())
                ]
    return out


class Summaries:
    """The ux lane of one session: each text once, under the turn that produced it."""

    def __init__(self, session: str, chains: Chains) -> None:
        self._session = session
        self._chains = chains
        self._known: set[str] = set()
        self.rows: list[Row] = []

    def of_turn(self, turn: Turn, lists: Lists, issuers: dict[str, Turn]) -> None:
        """A turn's own reasoning, and what its request shows of earlier turns' for the first time."""
        links = lists.deltas[turn.turn_id].links
        for i, link in enumerate(links):
            for n, part in enumerate(link.item["parts"]):
                if part["k"] == "reasoning" and part.get("t") and part["t"] not in self._known:
                    producer = _producer(links[i:], issuers) or turn.parent or turn
                    self._add(part, producer, "request", f"{link.depth}.{n}")
        for link in lists.responses[turn.turn_id]:
            for n, part in enumerate(link.item["parts"]):
                if part["k"] == "reasoning" and part.get("t"):
                    self._add(part, turn, "response", f"{link.depth}.{n}")

    def aside(self, part: dict[str, Any], turn: Turn | None, direction: str, position: str) -> None:
        """A text that lies outside the items, where it is not known from them."""
        if part["k"] == "reasoning" and part.get("t") and part["t"] not in self._known:
            self._add(part, turn, direction, position)

    def _add(self, part: dict[str, Any], turn: Turn | None, direction: str, position: str) -> None:
        self._known.add(part["t"])
        text = self._chains.text(part["t"])
        if text is None:
            return
        model = (
            (turn.setting("response_model") or turn.setting("request_model") or "") if turn else ""
        )
        provider = (turn.setting("provider") or "") if turn else ""
        self.rows.append(
            {
                "session_id": self._session,
                "row_key": key_of(turn.turn_id if turn else "", part["t"]),
                "turn_id": turn.turn_id if turn else "",
                "direction": direction,
                "position": position,
                "ux_kind": part.get("u") or ux_kind(provider, model),
                "ux_reasoning_summary": text,
                "ux_commit": part["t"],
                "size": len(text),
                "started_ns": turn.started_ns if turn else 0,
            }
        )


def _producer(links: list[Link], issuers: dict[str, Turn]) -> Turn | None:
    """The turn that issued the next call in a list: its reasoning stands before its calls."""
    for link in links:
        for part in link.item["parts"]:
            if part["k"] == "call" and part.get("c") in issuers:
                return issuers[part["c"]]
        if link.item["role"] in ("user", "tool"):
            return None
    return None
