"""Which turns are of one session: by claim, or by an item that a model issued in an earlier turn.

Links are made within one tenant and one service. Equal prompts never link; where several turns
issued what a request carries, the one of the same trace or claim counts, and without such a one
the request is linked to none.
"""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from facta.model.observation import Observation
from facta.resolve.keys import Key
from facta.resolve.tree import Tree
from facta.resolve.turns import Turn
from facta.resolve.union import Union


@dataclass(slots=True)
class Session:
    """One session: its turns in causal order, its claims, and what links it."""

    session_id: str
    service: str
    turns: list[Turn] = field(default_factory=list)
    claims: set[str] = field(default_factory=set)
    bases: set[str] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)
    traces: set[str] = field(default_factory=set)


class Claims:
    """The session that each observation claims, its own or the nearest ancestor's of its service."""

    def __init__(self, observations: list[Observation], tree: Tree) -> None:
        self._tree = tree
        self._own: dict[tuple[str, str, str], str] = {}
        for o in sorted(observations, key=lambda o: o.id):
            if o.session and o.span_id:
                key = (o.service, o.trace_id, o.span_id)
                self._own[key] = min(self._own.get(key, o.session), o.session)

    def of(self, o: Observation) -> str:
        """The claim, "" where neither the observation nor anything above it claims one."""
        if o.session:
            return o.session
        places = [(o.trace_id, o.span_id), *self._tree.ancestors(o)]
        return next((c for t, s in places if (c := self._own.get((o.service, t, s)))), "")


def sessions_of(tenant: str, turns: list[Turn], claims: Claims) -> list[Session]:
    """The sessions that these turns make, each with its turns in causal order."""
    union = Union([t.turn_id for t in turns])
    claimed = {t.turn_id: sorted({c for s in t.seen if (c := claims.of(s.o))}) for t in turns}
    for t in turns:
        for claim in claimed[t.turn_id]:
            union.join(t.turn_id, f"~claim\x00{t.service}\x00{claim}")
    bases: dict[str, set[str]] = defaultdict(set)
    _link(turns, claimed, union, bases)
    groups: dict[str, list[Turn]] = defaultdict(list)
    for t in turns:
        groups[union.find(t.turn_id)].append(t)
    return [_session(tenant, group, claimed, bases) for _, group in sorted(groups.items())]


def _link(
    turns: list[Turn], claimed: dict[str, list[str]], union: Union, bases: dict[str, set[str]]
) -> None:
    issuers: dict[Key, list[Turn]] = defaultdict(list)
    for t in turns:
        for key in t.issued:
            issuers[key].append(t)
    for t in turns:
        for key in t.used:
            found = _issuer(t, issuers.get(key, []), claimed)
            if found is None or found is t:
                continue
            union.join(found.turn_id, t.turn_id)
            bases[t.turn_id].add(key.basis)
            if t.parent is None and not _descends(found, t):
                t.parent, t.basis = found, key.basis


def _issuer(turn: Turn, found: list[Turn], claimed: dict[str, list[str]]) -> Turn | None:
    if len(found) <= 1:
        return found[0] if found else None
    near = [t for t in found if t.traces & turn.traces and t is not turn]
    if len(near) != 1:
        near = [t for t in near or found if set(claimed[t.turn_id]) & set(claimed[turn.turn_id])]
    return near[0] if len(near) == 1 else None


def _descends(turn: Turn, ancestor: Turn) -> bool:
    here: Turn | None = turn
    while here is not None:
        if here is ancestor:
            return True
        here = here.parent
    return False


def _session(
    tenant: str, turns: list[Turn], claimed: dict[str, list[str]], bases: dict[str, set[str]]
) -> Session:
    ordered = causal(turns)
    service = ordered[0].service
    claims = {c for t in turns for c in claimed[t.turn_id]}
    aliases = {session_id(tenant, service, "claim", c) for c in claims}
    aliases |= {session_id(tenant, service, "turn", t.turn_id) for t in turns}
    first = session_id(
        tenant, service, *(("claim", min(claims)) if claims else ("turn", ordered[0].turn_id))
    )
    session = Session(first, service, ordered, claims, aliases=aliases)
    session.bases = {b for t in turns for b in bases[t.turn_id]} | (
        {"claimed"} if claims else set()
    )
    session.traces = {trace for t in turns for trace in t.traces}
    for ordinal, t in enumerate(ordered):
        t.session, t.ordinal = first, ordinal
    return session


def session_id(tenant: str, service: str, basis: str, value: str) -> str:
    """A session's id: over its claim, else over its first turn (or trace, for calls without turns)."""
    text = f"{tenant}\x00{service}\x00{basis}\x00{value}"
    return "s" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def causal(turns: list[Turn]) -> list[Turn]:
    """Parents before children, else by the sender's clock, else by id."""
    ids = {t.turn_id for t in turns}
    children: dict[str, list[Turn]] = defaultdict(list)
    ready = []
    for t in turns:
        if t.parent is not None and t.parent.turn_id in ids:
            children[t.parent.turn_id].append(t)
        else:
            ready.append(t)
    out: list[Turn] = []
    heap = [(t.started_ns, t.turn_id, t) for t in ready]
    heapify(heap)
    while heap:
        t = heappop(heap)[2]
        out.append(t)
        for child in children[t.turn_id]:
            heappush(heap, (child.started_ns, child.turn_id, child))
    return out
