"""Effects: what was done to the world outside, which call it belongs to, and how it is known.

A span counts as an effect where the nearest thing above it is a tool call; below a model request it
is the request itself. What a client did and what its target saw are one effect: agreeing they are
`observed`, disagreeing they are a `conflict`. A tool's reply alone is no effect.
"""

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from http import HTTPStatus

from facta.resolve.calls import Call
from facta.resolve.tree import Place, Tree
from facta.resolve.turns import Seen

_STRENGTH = ("acknowledged", "instrumented", "observed", "verified", "conflict")
_STATUS_DIGITS = 9
_GOOD = {"ok", "success", "succeeded", "completed", "done", "accepted"}
_BAD = {"error", "failed", "failure", "fail"}


@dataclass(slots=True)
class Effect:
    """One effect with every telling of it."""

    call: Call | None
    operation: str
    target: str
    told: list[Seen] = field(default_factory=list)

    @property
    def statuses(self) -> list[str]:
        """The statuses told, strongest telling first."""
        ranked = sorted(
            self.told, key=lambda s: (-_STRENGTH.index(basis_of(s, self.call)), s.order())
        )
        return [s.body["status"] for s in ranked if s.body["status"]]

    @property
    def basis(self) -> str:
        """The strongest basis of all tellings; conflict where two of them exclude each other."""
        first = self.statuses[:1]
        if any(not compatible(first[0], other) for other in self.statuses[1:]):
            return "conflict"
        return max((basis_of(s, self.call) for s in self.told), key=_STRENGTH.index)

    @property
    def key(self) -> str:
        """Its identity inside the session."""
        text = "\x00".join(sorted(s.o.id for s in self.told))
        return hashlib.sha256(text.encode()).hexdigest()[:24]


def basis_of(s: Seen, call: Call | None) -> str:
    """How one telling knows; a client span of another service than the tool's is the target's own."""
    basis: str = s.body["basis"]
    if basis == "instrumented" and call is not None and call.spans:
        own = {(t.o.service, t.o.producer) for t in call.spans}
        if (s.o.service, s.o.producer) not in own:
            return "observed"
    return basis


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _STATUS_DIGITS


def outcome(status: str) -> str:
    """A status as ok, error, or its own word."""
    word = status.strip().lower()
    if _is_number(word):
        number = int(word)
        if number >= HTTPStatus.BAD_REQUEST:
            return "error"
        return "ok" if number == 0 or number >= HTTPStatus.OK else word
    return "ok" if word in _GOOD else "error" if word in _BAD else word


def compatible(one: str, other: str) -> bool:
    """Whether two statuses may both be true: equal outcomes, or a plain ok beside a word of success."""
    a, b = outcome(one), outcome(other)
    if a == b or not a or not b:
        return not (_is_number(one) and _is_number(other) and one != other)
    return "ok" in (a, b) and "error" not in (a, b)


@dataclass(slots=True)
class Surroundings:
    """What lies around effects: the calls of the cluster by span and by id, and the model requests."""

    tree: Tree
    by_span: dict[Place, Call]
    by_id: dict[str, list[Call]]
    turn_spans: set[Place]


def effects_of(told: list[Seen], around: Surroundings) -> list[Effect]:
    """The effects that these tellings make, what lies nearer to its call first."""
    placed: dict[Place, Effect] = {}
    named: dict[tuple[int, str, str], list[Effect]] = defaultdict(list)
    out: list[Effect] = []
    for s in sorted(told, key=lambda s: (sum(1 for _ in around.tree.ancestors(s.o)), s.order())):
        call, above = _owner(s, placed, around)
        if call is None and not s.body["stated"]:
            continue
        key = (id(call), s.body["operation"], s.body["target"])
        effect = _told_before(s, above, named[key])
        if effect is None:
            effect = Effect(call, s.body["operation"], s.body["target"])
            out.append(effect)
            named[key].append(effect)
        effect.told.append(s)
        if s.o.span_id and not s.body["stated"]:
            placed.setdefault((s.o.trace_id, s.o.span_id), effect)
    return out


def _owner(
    s: Seen, placed: dict[Place, Effect], around: Surroundings
) -> tuple[Call | None, Effect | None]:
    """(the call that an effect belongs to, the effect whose span is right above its own).

    A span that is call and effect at once (an MCP server's) is an effect of the call above it.
    """
    known = around.by_id.get(s.body["call_id"], []) if s.body["call_id"] else []
    if known:
        return known[-1], None
    here = (s.o.trace_id, s.o.span_id)
    if here in around.by_span and s.body["stated"]:
        return around.by_span[here], None
    for n, place in enumerate(around.tree.ancestors(s.o)):
        if place in placed:
            return placed[place].call, placed[place] if n == 0 else None
        if place in around.by_span:
            return around.by_span[place], None
        if place in around.turn_spans:
            break
    return None, None


def _told_before(s: Seen, above: Effect | None, same: list[Effect]) -> Effect | None:
    """The effect that this is another telling of: its client's, or one told by somebody else."""
    if (
        above is not None
        and s.body["basis"] == "observed"
        and above.operation == s.body["operation"]
    ):
        return above
    me = (s.body["stated"], s.o.service, s.body["basis"] if s.body["stated"] else "")
    for effect in same:
        if me not in {
            (t.body["stated"], t.o.service, t.body["basis"] if t.body["stated"] else "")
            for t in effect.told
        }:
            return effect
    return None
