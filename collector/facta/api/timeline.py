"""A session's steps in causal order: under each turn what it asked for, and what came of it.

A pure function of the session's rows. What belongs to no turn stands where its time puts it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from facta.store import Row
from facta.store.unfold import REQUEST, Chain

Step = dict[str, Any]

_NEVER = 2**63

_KINDS = {
    "tool_calls": "call",
    "effects": "effect",
    "retrievals": "retrieval",
    "evaluations": "evaluation",
    "state_transitions": "transition",
    "refusals": "refusal",
}
VIEWS = ("turns", "context", *_KINDS)
"""The views whose rows of one session `steps` wants."""


def steps(session: Row, rows: Mapping[str, list[Row]], chain: Chain, ux: list[Row]) -> list[Step]:
    """The steps of a session; `ux` are the rows of the ux lane to show, as not evidence.

    A turn holds the texts that its request first showed and those of its response (`messages`). It
    is followed by the sealed values that it first showed (`sealed_again` counts those of its
    history), its summaries, its calls with their effects, and the evaluations of it.
    """
    turns = rows["turns"]
    placed = _Placed(turns)
    effects = _effects_by_call(rows)
    for call in rows["tool_calls"]:
        after = [_step("call", call), *(_step("effect", row) for row in effects.pop(id(call), []))]
        placed.put(call, after)
    for row in effects.pop(0, []):
        placed.put(row, [_step("effect", row)])
    for view in ("retrievals", "evaluations", "state_transitions", "refusals"):
        for row in rows[view]:
            placed.put(row, [_step(_KINDS[view], row)])
    shown, messages = _by_turn(ux), _by_turn(rows["context"])
    found = placed.before()
    for number, turn in enumerate(turns):
        turn_id = turn["turn_id"]
        said = {"messages": _messages(messages.get(turn_id, []))}
        found.append(_step("turn", turn) | {"sealed_again": chain.count_inherited(turn_id)} | said)
        found += [_sighting(row, turn["started_ns"]) for row in _shown_first(chain, turn_id)]
        found += [_summary(row) for row in shown.pop(turn_id, [])]
        found += placed.under(number)
    for turn_id in sorted(chain.own.keys() - chain.turns.keys()):
        found += [_sighting(row, 0) for row in chain.own[turn_id]]
    found += [_summary(row) for rest in shown.values() for row in rest]
    return found + [{**_gap(session), "gap": gap} for gap in session["gaps"]]


class _Placed:
    """What stands under each turn, and before the first one: groups of steps, to be put in order."""

    def __init__(self, turns: list[Row]) -> None:
        self._before: list[list[Step]] = []
        self._under: list[list[list[Step]]] = [[] for _ in turns]
        self._number = {turn["turn_id"]: number for number, turn in enumerate(turns)}
        timed = [(turn["started_ns"], number) for number, turn in enumerate(turns)]
        self._timed = sorted(pair for pair in timed if pair[0])

    def put(self, row: Row, made: list[Step]) -> None:
        """Under the turn that the row names, else under the last one that had begun by then."""
        number = self._number.get(row.get("turn_id", ""))
        if number is None:
            number = self._by_time(row["started_ns"])
        (self._before if number < 0 else self._under[number]).append(made)

    def before(self) -> list[Step]:
        """What was there before any turn."""
        return _in_order(self._before)

    def under(self, number: int) -> list[Step]:
        """What stands under a turn, in the order of its times."""
        return _in_order(self._under[number])

    def _by_time(self, at: int) -> int:
        if not at or not self._timed:
            return len(self._under) - 1
        place = bisect_right(self._timed, (at, len(self._under)))
        return self._timed[place - 1][1] if place else -1


def _in_order(groups: list[list[Step]]) -> list[Step]:
    """The steps of all groups by the time of each group's first; those without a time come last."""
    ordered = sorted(groups, key=lambda group: group[0]["at_ns"] or _NEVER)
    return [step for group in ordered for step in group]


def _shown_first(chain: Chain, turn_id: str) -> list[Row]:
    """What a turn shows that none before it did: the request's before the response's."""
    return sorted(chain.own.get(turn_id, []), key=lambda row: row["direction"] != REQUEST)


def _effects_by_call(rows: Mapping[str, list[Row]]) -> dict[int, list[Row]]:
    """Effects by the id() of their call's row; those of no known call under 0.

    A call id is not unique in a session; then the call of the effect's turn is meant.
    """
    calls: dict[str, list[Row]] = {}
    for call in rows["tool_calls"]:
        calls.setdefault(call["call_id"], []).append(call)
    found: dict[int, list[Row]] = {}
    for effect in rows["effects"]:
        candidates = calls.get(effect["call_id"], []) if effect["call_id"] else []
        same_turn = [call for call in candidates if call["turn_id"] == effect["turn_id"]]
        owner = next(iter(same_turn or candidates), None)
        found.setdefault(id(owner) if owner else 0, []).append(effect)
    return found


def _messages(items: list[Row]) -> list[Row]:
    """The readable texts of a turn's new items, the request's first; summaries are not among them."""
    found: list[Row] = []
    for item in sorted(items, key=lambda row: (row["direction"] != REQUEST, row["position"])):
        for n, part in enumerate(orjson.loads(item["parts"])):
            if part["kind"] in ("text", "compaction", "other") and part.get("text"):
                place = {"position": f"{item['position']}.{n}", "commit": part.get("commit", "")}
                said = {"role": item["role"], "text": part["text"], "cut": part.get("cut", False)}
                found.append({"direction": item["direction"], **place, **said})
    return found


def _by_turn(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["turn_id"], []).append(row)
    return found


def _step(kind: str, row: Row) -> Step:
    return {**row, "lane": "evidence", "kind": kind, "at_ns": row["started_ns"]}


def _sighting(row: Row, at: int) -> Step:
    renamed = {**row, "sealed_kind": row["kind"]}
    return {**renamed, "lane": "evidence", "kind": "sighting", "at_ns": at}


def _summary(row: Row) -> Step:
    lane = {"lane": "ux", "kind": "ux", "at_ns": row["started_ns"], "not_evidence": True}
    return {**row, **lane}


def _gap(session: Row) -> Step:
    return {"lane": "evidence", "kind": "gap", "at_ns": session["ended_ns"]}
