"""Tool calls: what a model asked for, what was run, and what came back, as one row a call.

Sources in order of precedence: the target, a tool's own span, the response that asked, a later
request that carries call and result back. Within a rank the earlier place counts; different values
of one rank are a conflict. A later request that shows another value does not overwrite the first.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from facta.resolve.chains import Chains, Link
from facta.resolve.keys import strong
from facta.resolve.tree import Place, Tree
from facta.resolve.turns import RANK, Seen, Turn

Part = dict[str, Any]


@dataclass(slots=True)
class Value:
    """One telling of an argument or result."""

    observer: str
    commit: str
    canonical: str
    turn_id: str = ""
    is_error: bool | None = None
    cut: bool = False


@dataclass(slots=True)
class Call:
    """One call of a session, with every telling of it in order of precedence."""

    call_id: str
    tool: str
    turn: Turn | None
    key: str
    arguments: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    spans: list[Seen] = field(default_factory=list)
    decisions: list[Seen] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Told:
    """A call's or a result's part in a turn's list: where it stood, and whether it may be cut."""

    turn: Turn
    part: Part
    place: str
    observer: str
    cut: bool = False
    link: str = ""

    def value(self, canonical: str) -> Value:
        """What it says."""
        text, error = self.part.get("t", ""), self.part.get("e")
        return Value(self.observer, text, canonical, self.turn.turn_id, error, self.cut)


def _may_be_cut(side: dict[str, Any] | None, link: Link, place: int) -> bool:
    """Whether a part is the last one of a list whose text was cut."""
    if not side or not side.get("cut") or link.name != side["head"]:
        return False
    return place == len(link.item["parts"]) - 1


class Calls:
    """The calls of one session, built from its turns in causal order, then from its tool spans."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._by_id: dict[str, list[Call]] = defaultdict(list)
        self.all: list[Call] = []
        self._doubtful: dict[str, list[Value]] = defaultdict(list)

    def asked(self, turn: Turn) -> None:
        """The calls that a turn's response asks for."""
        for link in self._chains.items(turn.response["head"]) if turn.response else ():
            for place, part in enumerate(link.item["parts"]):
                told = Told(turn, part, f"{link.depth}.{place}", "response")
                told.cut = _may_be_cut(turn.response, link, place)
                told.link = f"response {link.name}"
                if self._names_nothing(told):
                    continue
                if part["k"] == "call":
                    self._asked(told)
                elif part["k"] == "result":
                    self._returned(told, [])

    def _asked(self, told: "Told") -> None:
        turn, part = told.turn, told.part
        call_id = part.get("c", "")
        known = self._same(call_id, part) if strong(call_id) else None
        call = known or self._new(call_id, part.get("o", ""), turn, f"{turn.turn_id} {told.place}")
        call.turn = call.turn or turn
        call.arguments.append(self._value(told, part.get("a", "")))

    def _value(self, told: "Told", canonical: str) -> Value:
        value = told.value(canonical)
        if value.cut:
            self._doubtful[told.link].append(value)
        return value

    def _confirm(self, name: str) -> None:
        """A request goes on behind a link: what stands there was whole, wherever another was cut."""
        for value in self._doubtful.pop(name, ()):
            value.cut = False

    def _known(self, told: "Told") -> list[Call]:
        """The calls of a part's id; where the part may be cut, its id may be as well."""
        call_id = told.part.get("c", "")
        if told.cut:
            return [c for c in self.all if call_id and c.call_id.startswith(call_id)]
        return self._by_id.get(call_id, []) if call_id else []

    def _names_nothing(self, told: "Told") -> bool:
        """Whether so little is left of a cut part that no call can be made of it."""
        if not told.cut or self._known(told):
            return False
        return not (told.part.get("c") and told.part.get("t"))

    def _same(self, call_id: str, part: Part) -> Call | None:
        return next((c for c in self._by_id[call_id] if c.tool in ("", part.get("o", ""))), None)

    def _new(self, call_id: str, tool: str, turn: Turn | None, key: str) -> Call:
        call = Call(call_id, tool, turn, key)
        self.all.append(call)
        if call_id:
            self._by_id[call_id].append(call)
        return call

    def carried(self, turn: Turn, links: list[Link], observer: str = "later_request") -> None:
        """The calls and results in the items that a request shows for the first time."""
        if links or not (turn.request and turn.request.get("cut")):
            self._confirm(links[0].parent if links else (turn.request or {}).get("head", ""))
        open_calls: list[Call] = []
        for link in links:
            for place, part in enumerate(link.item["parts"]):
                told = Told(turn, part, f"q{link.depth}.{place}", observer)
                told.cut = _may_be_cut(turn.request, link, place)
                told.link = link.name
                if self._names_nothing(told):
                    continue
                if part["k"] == "call":
                    open_calls.append(self._carried(told))
                elif part["k"] == "result":
                    self._returned(told, open_calls)

    def _carried(self, told: "Told") -> Call:
        turn, part = told.turn, told.part
        call_id, canonical = part.get("c", ""), part.get("a", "")
        known = self._known(told)
        call = next((c for c in reversed(known) if canonical in _canonicals(c)), None) or (
            known[-1] if known else None
        )
        if call is None and not call_id:
            call = next(
                (
                    c
                    for c in reversed(self.all)
                    if c.tool == part.get("o", "") and canonical in _canonicals(c)
                ),
                None,
            )
        if call is None:
            place = f"{turn.turn_id} {told.place}"
            call = self._new(call_id, part.get("o", ""), turn.parent, place)
        call.arguments.append(self._value(told, canonical))
        return call

    def _returned(self, told: "Told", open_calls: list[Call]) -> None:
        turn, part = told.turn, told.part
        call_id = part.get("c", "")
        known = self._known(told)
        call = known[-1] if known else None
        if call is None:
            named = [c for c in open_calls if not c.results and part.get("o", "") in ("", c.tool)]
            call = (
                named[0]
                if named
                else next(
                    (
                        c
                        for c in self.all
                        if not c.results and not call_id and c.tool == part.get("o")
                    ),
                    None,
                )
            )
            if call is not None:
                call.flags.add("paired_by_order")
                if call_id:
                    self._by_id[call_id].append(call)
        if call is None:
            call = self._new(call_id, part.get("o", ""), turn.parent, f"{turn.turn_id} r{call_id}")
        call.results.append(self._value(told, part.get("t", "")))

    def ran(self, spans: list[Seen], tree: Tree) -> None:
        """Tool spans and a host's tool events, matched by id, else by what lies above, else by value.

        A tool span below another one of the same tool is the same call (an MCP server's, say).
        """
        at: dict[Place, Call] = {}
        depth = {s.o.id: sum(1 for _ in tree.ancestors(s.o)) for s in spans}
        for s in sorted(
            spans, key=lambda s: (not s.body["call_id"], depth[s.o.id], s.o.start_ns, s.o.id)
        ):
            above = next(
                (at[a] for a in tree.ancestors(s.o) if a in at and at[a].tool == s.body["tool"]),
                None,
            )
            call = self._run_by_id(s) if s.body["call_id"] else above or self._run_by_value(s)
            if call is None:
                call = self._new(
                    s.body["call_id"],
                    s.body["tool"],
                    None,
                    f"{s.o.trace_id} {s.o.span_id or s.o.id}",
                )
            if s.o.span_id:
                at.setdefault((s.o.trace_id, s.o.span_id), call)
            self._tell(call, s)

    def _run_by_id(self, s: Seen) -> Call | None:
        known = self._by_id.get(s.body["call_id"], [])
        if len(known) <= 1:
            return known[0] if known else None
        free = [
            c
            for c in known
            if not c.spans and (c.turn is None or c.turn.started_ns <= s.o.start_ns)
        ]
        return (free or known)[-1]

    def _run_by_value(self, s: Seen) -> Call | None:
        near = [c for c in self.all if not c.spans and c.tool == s.body["tool"]]
        near = [
            c for c in near if c.turn is None or s.o.trace_id in c.turn.traces or not s.o.trace_id
        ] or near
        exact = [c for c in near if s.body["canonical"] and s.body["canonical"] in _canonicals(c)]
        found = (exact or ([] if s.body["canonical"] else near))[:1]
        if found and not exact:
            found[0].flags.add("paired_by_order")
        return found[0] if found else None

    @staticmethod
    def _tell(call: Call, s: Seen) -> None:
        body = s.body
        call.tool = call.tool or body["tool"]
        call.flags.update(body["flags"])
        (call.decisions if body["decision"] else call.spans).append(s)
        if body["arguments"] is not None:
            call.arguments.append(Value(s.o.observer, body["arguments"], body["canonical"]))
        if body["result"] is not None:
            call.results.append(Value(s.o.observer, body["result"], body["result"]))


def _canonicals(call: Call) -> set[str]:
    return {value.canonical for value in call.arguments}


def chosen(values: list[Value]) -> tuple[Value | None, bool, bool]:
    """(the value that counts, whether its rank conflicts, whether a later request shows another).

    What may be cut counts only where nothing whole is there, and contradicts nothing.
    """
    whole = [v for v in values if not v.cut] or values[:1]
    if not whole:
        return None, False, False
    ranked = sorted(whole, key=lambda v: RANK.get(v.observer, 9))
    best = ranked[0]
    same = [v for v in ranked if v.observer == best.observer]
    later = best.observer == "later_request"
    conflict = not later and len({v.canonical for v in same}) > 1
    if conflict:
        best = min(same, key=lambda v: v.commit)
    requests = [v for v in whole if v.observer == "later_request"]
    changed = any(v.canonical != requests[0].canonical for v in requests)
    return best, conflict, changed
