"""Which observations are of one turn, and what the turn is by all of them together."""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from facta.model.observation import Observation
from facta.resolve.chains import Chains
from facta.resolve.keys import Key, both, issued, used
from facta.resolve.tree import Tree
from facta.resolve.union import Union

RANK = {"target": 0, "tap": 1, "tool_span": 2, "response": 3, "later_request": 4, "importer": 5}
_TWIN_NS = 10_000_000_000


@dataclass(slots=True)
class Seen:
    """One observation with its body opened."""

    o: Observation
    body: dict[str, Any]

    def order(self) -> tuple[int, int, str]:
        """Precedence: rank of the observer, then the sender's clock, then the id; never arrival."""
        return RANK.get(self.o.observer, 9), self.o.start_ns, self.o.id


@dataclass(slots=True)
class Turn:
    """One turn: its observations in order of precedence, and what they say together."""

    turn_id: str
    seen: list[Seen]
    service: str
    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    issued: set[Key] = field(default_factory=set)
    used: list[Key] = field(default_factory=list)
    parent: "Turn | None" = None
    basis: str = ""
    session: str = ""
    ordinal: int = 0

    @property
    def started_ns(self) -> int:
        """The earliest start that any observer gives; 0 only where none gives one."""
        return min((s.o.start_ns for s in self.seen if s.o.start_ns), default=0)

    @property
    def ended_ns(self) -> int:
        """The latest end that any observer gives."""
        return max(s.o.end_ns for s in self.seen)

    @property
    def traces(self) -> set[str]:
        """The traces that it was seen in."""
        return {s.o.trace_id for s in self.seen if s.o.trace_id}

    def setting(self, name: str) -> Any:
        """A setting by the observation of highest precedence that has it."""
        told = (s.body["settings"].get(name) for s in self.seen)
        return next((value for value in told if value not in (None, "")), None)

    def usage(self, name: str) -> int | None:
        """A count of tokens, likewise."""
        return next((v for s in self.seen if (v := s.body["usage"].get(name)) is not None), None)

    def first(self, name: str) -> str:
        """Any other text of the body, likewise."""
        return next((s.body[name] for s in self.seen if s.body.get(name)), "")


def merge(tenant: str, seen: list[Seen], tree: Tree, chains: Chains) -> list[Turn]:
    """The turns that these observations tell of; aggregates tell of none."""
    own = [s for s in seen if s.o.kind == "turn" and s.body["role"] != "aggregate"]
    union = Union([s.o.id for s in own])
    _by_span(own, union)
    _by_response(own, union)
    _by_group(own, union)
    _by_nesting(own, union, tree)
    _by_twin(own, union)
    _by_stream(own, union)
    groups: dict[str, list[Seen]] = defaultdict(list)
    for s in own:
        groups[union.find(s.o.id)].append(s)
    turns = (_turn(tenant, group, chains) for group in groups.values())
    return sorted(turns, key=lambda t: (t.started_ns, t.turn_id))


def _by_span(own: list[Seen], union: Union) -> None:
    """A span and its log events; fragments are events of the span that they name."""
    named: dict[tuple[str, str, str], str] = {}
    for s in own:
        if s.o.span_id and s.body["role"] != "member":
            key = (s.o.service, s.o.trace_id, s.o.span_id)
            union.join(named.setdefault(key, s.o.id), s.o.id)


def _by_response(own: list[Seen], union: Union) -> None:
    """Two libraries that saw one response: in one trace, or at one time where each made its own."""
    named: dict[tuple[str, str], dict[str, list[Seen]]] = defaultdict(lambda: defaultdict(list))
    for s in own:
        if s.body["response_id"]:
            named[s.o.service, s.body["response_id"]][s.o.trace_id].append(s)
    for traces in named.values():
        groups = sorted(traces.values(), key=lambda g: min((s.o.start_ns, s.o.id) for s in g))
        for n, group in enumerate(groups):
            for s in group[1:]:
                union.join(group[0].o.id, s.o.id)
            other = next((g for g in groups[:n] if _beside(g, group)), None)
            if other is not None:
                union.join(other[0].o.id, group[0].o.id)


def _beside(one: list[Seen], other: list[Seen]) -> bool:
    """Whether two traces show one response by different libraries at overlapping times."""
    if {s.o.scope_name for s in one} & {s.o.scope_name for s in other}:
        return False
    return any(
        a.o.start_ns <= b.o.end_ns and b.o.start_ns <= a.o.end_ns for a in one for b in other
    )


def _by_group(own: list[Seen], union: Union) -> None:
    """Records of one stream: each opener starts a turn, what precedes the first belongs to it."""
    streams: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for s in own:
        if s.body["role"] == "member":
            streams[s.o.service, s.body["group"]].append(s)
    for stream in streams.values():
        stream.sort(key=lambda s: (s.body["sequence"], s.o.start_ns, s.o.id))
        current = waiting = ""
        for s in stream:
            if s.body["opens"] == "next":
                waiting = union.join(waiting, s.o.id) if waiting else s.o.id
            elif s.body["opens"] == "this" or not current:
                current, waiting = (union.join(waiting, s.o.id) if waiting else s.o.id), ""
            else:
                union.join(current, s.o.id)


def _by_nesting(own: list[Seen], union: Union, tree: Tree) -> None:
    """A model span right below another that names no response of its own: one request, seen twice."""
    at = {(s.o.trace_id, s.o.span_id): s for s in own if s.o.span_id and s.body["role"] == "whole"}
    below: dict[str, list[Seen]] = defaultdict(list)
    for s in at.values():
        above = next((at[a] for a in tree.ancestors(s.o) if a in at), None)
        if above is not None and above.o.service == s.o.service:
            below[above.o.id].append(s)
    by_id = {s.o.id: s for s in own}
    for name, children in below.items():
        ids = {c.body["response_id"] for c in children} | {by_id[name].body["response_id"]}
        if len(children) == 1 and len(ids - {""}) <= 1:
            union.join(name, children[0].o.id)


def _by_twin(own: list[Seen], union: Union) -> None:
    """A host's span and its stream of log events: paired by equal usage, nearest in time, one to one."""
    logged: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    twins: dict[tuple[Any, ...], list[Seen]] = defaultdict(list)
    for s in own:
        usage = s.body["usage"]
        if usage.get("input_tokens") is None or usage.get("output_tokens") is None:
            continue
        key = (s.o.service, usage["input_tokens"], usage["output_tokens"])
        if s.body["role"] == "member":
            logged[key].append(s)
        elif "twin" in s.body["flags"]:
            # A span and an event of the same turn both have a partner in the stream.
            twins[*key, s.o.start_ns == s.o.end_ns].append(s)
    for key, spans in twins.items():
        free = sorted(logged.get(key[:3], ()), key=lambda s: (s.o.start_ns, s.o.id))
        for span in sorted(spans, key=lambda s: (s.o.start_ns, s.o.id)):
            at = span.o.end_ns
            distance = [(abs(s.o.end_ns - at), s.o.id, s) for s in free]
            near = min(distance, default=(0, "", None))[2]
            if near is not None and abs(near.o.end_ns - at) <= _TWIN_NS:
                free.remove(near)
                union.join(near.o.id, span.o.id)


def _by_stream(own: list[Seen], union: Union) -> None:
    """A response that was told apart from its request: paired by what was asked, one to one.

    The request in the same trace counts before the one begun last before the response was there.
    """
    asked: dict[tuple[str, str, str], list[Seen]] = defaultdict(list)
    told: list[Seen] = []
    for s in own:
        if s.body["request"] and "streamed_apart" in s.body["flags"]:
            told.append(s)
        elif s.body["request"] and not s.body["response"] and s.body["role"] == "whole":
            asked[_asked(s)].append(s)
    for s in sorted(told, key=lambda s: (s.o.start_ns, s.o.id)):
        open_ = [a for a in asked[_asked(s)] if a.o.start_ns <= s.o.start_ns]
        if open_:
            best = max(open_, key=lambda a: (a.o.trace_id == s.o.trace_id, a.o.start_ns, a.o.id))
            asked[_asked(s)].remove(best)
            union.join(best.o.id, s.o.id)


def _asked(s: Seen) -> tuple[str, str, str]:
    return s.o.service, s.o.scope_name, s.body["request"]["head"]


def _turn(tenant: str, seen: list[Seen], chains: Chains) -> Turn:
    seen.sort(key=Seen.order)
    fragments = [s for s in seen if s.body["role"] == "fragment"]
    fragments.sort(key=lambda s: (s.body["sequence"], s.o.id))
    turn = Turn(_turn_id(tenant, seen), seen, seen[0].o.service)
    turn.request = _best(seen, "request") or _joined(fragments, "request", chains)
    turn.response = _best(seen, "response") or _joined(fragments, "response", chains)
    whole = [s for s in seen if s.body["role"] != "fragment"]
    head = turn.request["head"] if turn.request else ""
    for s in sorted(whole, key=lambda s: (s.body["request"] or {"head": ""})["head"] != head):
        _take_keys(turn, *both(s.o, s.body, chains))
    if fragments:
        told = {**fragments[0].body, "request": turn.request, "response": turn.response}
        o = seen[0].o
        _take_keys(turn, issued(o, told, chains), used(o, told, chains))
    return turn


def _take_keys(turn: Turn, gives: list[Key], takes: list[Key]) -> None:
    turn.issued.update(gives)
    turn.used = list(dict.fromkeys(turn.used + takes))


def _best(seen: list[Seen], side: str) -> dict[str, Any] | None:
    """The fullest list that the observers of highest rank give."""
    told = [s for s in seen if s.body.get(side) and s.body["role"] != "fragment"]
    if not told:
        return None

    def fullest(s: Seen) -> tuple[int, int, int, int, bool, str]:
        items = s.body[side]
        counts = (-items["sealed"], -items["parts"], -items["n"])
        return RANK.get(s.o.observer, 9), *counts, _is_cut(s, side), items["head"]

    best = min(told, key=fullest)
    return {**best.body[side], "cut": _is_cut(best, side)}


def _is_cut(s: Seen, side: str) -> bool:
    """Whether a list's text was cut somewhere, so that its last part may not be whole."""
    return f"{side}_truncated" in s.body["flags"]


def _joined(fragments: list[Seen], side: str, chains: Chains) -> dict[str, Any] | None:
    """The messages of events, each a list of one, as one list in their order."""
    lists = [s.body[side] for s in fragments if s.body.get(side)]
    if not lists:
        return None
    head = chains.joined([entry["head"] for entry in lists])
    return {
        "head": head,
        **{name: sum(e[name] for e in lists) for name in ("n", "parts", "sealed")},
    }


def _turn_id(tenant: str, seen: list[Seen]) -> str:
    """A turn's id: over its response where it has one, else over the first span or record of it."""
    named = sorted((s.o.trace_id, s.body["response_id"]) for s in seen if s.body["response_id"])
    spans = sorted(
        (s.o.trace_id, s.o.span_id) for s in seen if s.o.span_id and s.body["role"] != "member"
    )
    first = named[0] if named else spans[0] if spans else ("", min(s.o.id for s in seen))
    text = "\x00".join((tenant, seen[0].o.service, "r" if named else "s", *first))
    return "t" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


__all__ = ["RANK", "Seen", "Turn", "merge"]
