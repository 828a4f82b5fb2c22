"""From a cluster of observations to the rows of the resolved tables: a pure function.

A cluster is all observations that share a trace, a claim or an issued item, directly or through
others. Nothing here depends on the order or the number of their arrivals.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import orjson

from facta.model.observation import Observation
from facta.resolve import rows
from facta.resolve.calls import Call, Calls
from facta.resolve.chains import Chains, Reader
from facta.resolve.effects import Surroundings, effects_of
from facta.resolve.holes import Ux
from facta.resolve.lanes import Lists, Summaries, context_rows, is_ux, sighting_rows
from facta.resolve.rows import Row, key_of
from facta.resolve.sessions import Claims, Session, session_id, sessions_of
from facta.resolve.tree import Tree
from facta.resolve.turns import Seen, Turn, merge

Tables = dict[str, list[Row]]
_ITEM_DIGITS = 10  # an item's index fits 32 bits


@dataclass(slots=True)
class Work:
    """One session while it is being resolved."""

    session: Session
    lists: Lists
    calls: Calls
    spans: list[Seen] = field(default_factory=list)
    aggregates: list[Seen] = field(default_factory=list)
    asides: list[Seen] = field(default_factory=list)
    issuers: dict[str, Turn] = field(default_factory=dict)


def resolve(
    tenant: str, observations: list[Observation], read: Reader, chains: Chains | None = None
) -> Tables:
    """The rows of one cluster, by table (columns as in schema/migrations, tenant left out).

    `chains` are those that the tenant's objects have been read with before, if there are any.
    """
    return Cluster(tenant, observations, chains or Chains(read)).tables()


class Cluster:
    """One cluster's observations, and what they come to."""

    def __init__(self, tenant: str, observations: list[Observation], chains: Chains) -> None:
        unique = {o.id: o for o in observations}
        self.tenant = tenant
        self.seen = [Seen(o, orjson.loads(o.body)) for _, o in sorted(unique.items())]
        self.chains = chains
        self.tree = Tree(s.o for s in self.seen)
        self.claims = Claims([s.o for s in self.seen], self.tree)
        self.works: dict[str, Work] = {}
        self.turn_at: dict[tuple[str, str], Turn] = {}
        self.call_at: dict[tuple[str, str], tuple[Call, Work]] = {}
        self._told: set[str] = set()
        self.out: Tables = defaultdict(list)

    def of(self, *kinds: str) -> list[Seen]:
        """The observations of some kinds, in order of precedence."""
        return sorted((s for s in self.seen if s.o.kind in kinds), key=Seen.order)

    def tables(self) -> Tables:
        """All rows."""
        turns = merge(self.tenant, self.seen, self.tree, self.chains)
        for session in sessions_of(self.tenant, turns, self.claims):
            self._open(session)
        self._place_spans()
        self._place("aggregates", [s for s in self.of("turn") if s.body["role"] == "aggregate"])
        for work in list(self.works.values()):
            self._finish_calls(work)
        self._place("asides", self.of("aside"))
        ux = self._ux()
        effects = self._effects()
        for _, work in sorted(self.works.items()):
            self._write(work, ux, effects)
        self.out["evidence.effects"] += effects.pop("", [])  # stated ones of no known session
        self._write_others()
        return dict(self.out)

    def _open(self, session: Session) -> None:
        work = Work(session, Lists(self.chains), Calls(self.chains))
        self.works[session.session_id] = work
        for turn in session.turns:
            delta = work.lists.add(turn)
            work.calls.carried(turn, delta.links)
            work.calls.asked(turn)
            for link in work.lists.responses[turn.turn_id]:
                for part in link.item["parts"]:
                    if part["k"] == "call" and part.get("c"):
                        work.issuers.setdefault(part["c"], turn)
            for s in turn.seen:
                if s.o.span_id and s.body["role"] != "member":
                    self.turn_at[s.o.trace_id, s.o.span_id] = turn

    def _place_spans(self) -> None:
        """Give each tool span to a session: by call id, claim, trace, or what lies above it."""
        by_id: dict[tuple[str, str], list[Work]] = defaultdict(list)
        for work in self.works.values():
            for call_id in {c.call_id for c in work.calls.all if c.call_id} | work.issuers.keys():
                by_id[work.session.service, call_id].append(work)
        rest: list[Seen] = []
        for s in self.of("call"):
            found = by_id.get((s.o.service, s.body["call_id"]), []) if s.body["call_id"] else []
            near = [w for w in found if s.o.trace_id in w.session.traces] or found
            claimed = self.claims.of(s.o)
            near = [w for w in near if claimed in w.session.claims] or near
            (near[0].spans if near else rest).append(s)
        self._place("spans", rest)

    def _place(self, where: str, told: list[Seen]) -> None:
        depth = {s.o.id: sum(1 for _ in self.tree.ancestors(s.o)) for s in told}
        for s in sorted(told, key=lambda s: (depth[s.o.id], s.order())):
            work = self._around(s.o) or self._bare(s)
            getattr(work, where).append(s)

    def _around(self, o: Observation) -> Work | None:
        """The session around an observation: its span's turn, its claim, what is above, its trace."""
        here = (o.trace_id, o.span_id)
        if here in self.turn_at and self.turn_at[here].service == o.service:
            return self.works[self.turn_at[here].session]
        claim = self.claims.of(o)
        mine = [w for _, w in sorted(self.works.items()) if w.session.service == o.service]
        if claim:
            return next((w for w in mine if claim in w.session.claims), None)
        above = set(self.tree.ancestors(o))
        for w in self.works.values():
            if any((s.o.trace_id, s.o.span_id) in above for s in w.spans):
                return w
        near = [w for w in mine if o.trace_id and o.trace_id in w.session.traces]
        return near[0] if near else None

    def _bare(self, s: Seen) -> Work:
        """A session of calls without turns: over its claim, else over its trace."""
        o, claim = s.o, self.claims.of(s.o)
        basis, value = ("claim", claim) if claim else ("trace", o.trace_id or o.id)
        name = session_id(self.tenant, o.service, basis, value)
        if name not in self.works:
            session = Session(name, o.service, claims={claim} if claim else set(), aliases={name})
            session.bases = {"claimed" if claim else "trace"}
            self.works[name] = Work(session, Lists(self.chains), Calls(self.chains))
        work = self.works[name]
        work.session.traces |= {o.trace_id} - {""}
        return work

    def _finish_calls(self, work: Work) -> None:
        work.calls.ran(work.spans, self.tree)
        for s in work.aggregates:
            whole = Turn("", [s], s.o.service)
            for side in ("request", "response"):
                if s.body[side]:
                    work.calls.carried(whole, self.chains.items(s.body[side]["head"]))
        for call in work.calls.all:
            _attribute(call, work.session)
            for s in call.spans:
                if s.o.span_id:
                    self.call_at.setdefault((s.o.trace_id, s.o.span_id), (call, work))

    def _ux(self) -> Ux:
        """All reasoning texts of the cluster that are long enough to be told from chance."""
        commits: set[str] = set()
        visited: set[str] = set()
        for s in self.of("turn"):
            for told in (s.body["request"], s.body["response"]):
                for link in (
                    self.chains.back(told["head"], stop=visited.__contains__) if told else ()
                ):
                    visited.add(link.name)
                    commits |= {part["t"] for part in link.item["parts"] if is_ux(part)}
        for s in self.of("aside"):
            commits |= {e["part"]["t"] for e in s.body["entries"] if is_ux(e["part"])}
        return Ux({c: text for c in commits if (text := self.chains.text(c))})

    def _parts(self, s: Seen, turn: Turn | None = None) -> list[tuple[str, dict[str, Any], str]]:
        """The parts of a telling's lists, each link once; what the turn itself tells is left out."""
        out: list[tuple[str, dict[str, Any], str]] = []
        for side, told in (
            ("request", turn and turn.request),
            ("response", turn and turn.response),
        ):
            mine = s.body[side]
            if not mine or (told and told["head"] == mine["head"]):
                continue
            for link in self.chains.back(mine["head"], stop=self._told.__contains__)[::-1]:
                if turn is not None:
                    self._told.add(link.name)
                out += [
                    (side, part, f"{link.depth}.{n}") for n, part in enumerate(link.item["parts"])
                ]
        return out

    def _effects(self) -> dict[str, list[Row]]:
        by_id: dict[str, list[Call]] = defaultdict(list)
        owner: dict[int, Work] = {}
        for work in self.works.values():
            for call in work.calls.all:
                owner[id(call)] = work
                if call.call_id:
                    by_id[call.call_id].append(call)
        around = Surroundings(
            self.tree, {k: c for k, (c, _) in self.call_at.items()}, by_id, set(self.turn_at)
        )
        out: dict[str, list[Row]] = defaultdict(list)
        for effect in effects_of(self.of("effect"), around):
            home = owner[id(effect.call)] if effect.call else self._around(effect.told[0].o)
            name = home.session.session_id if home else ""
            out[name].append(rows.effect_row(effect, name))
        return out

    def _write(self, work: Work, ux: Ux, effects: dict[str, list[Row]]) -> None:
        session, name = work.session, work.session.session_id
        calls = [rows.call_row(call, name, self.chains) for call in work.calls.all]
        if not session.turns and not calls:
            effects.setdefault("", []).extend(
                {**row, "session_id": ""} for row in effects.pop(name, [])
            )
        summaries = Summaries(name, self.chains)
        sealed: list[Row] = []
        for turn in session.turns:
            delta = work.lists.deltas[turn.turn_id]
            self.out["evidence.turns"].append(
                rows.turn_row(turn, (delta.context_of, delta.kept, delta.rewritten))
            )
            self.out["evidence.context"] += context_rows(turn, work.lists, ux)
            sealed += sighting_rows(turn, work.lists)
            summaries.of_turn(turn, work.lists, work.issuers)
        self._beside(work, summaries, sealed)
        sealed = list({row["row_key"]: row for row in reversed(sealed)}.values())
        self.out["evidence.sightings"] += sealed
        self.out["ux.summaries"] += list({row["row_key"]: row for row in summaries.rows}.values())
        self.out["evidence.tool_calls"] += calls
        self.out["evidence.effects"] += effects.pop(name, [])
        if session.turns or calls:
            mine = self.out["evidence.effects"]
            counts = {
                "calls": len(calls),
                "effects": sum(e["session_id"] == name for e in mine),
                "sealed": len(sealed),
            }
            row = rows.session_row(session, counts, work.calls.all, _gaps(session, calls))
            self.out["evidence.sessions"].append(row)

    def _beside(self, work: Work, summaries: Summaries, sealed: list[Row]) -> None:
        """What lies outside the items, and what only an agent's span shows."""
        known = {
            (row["turn_id"], row["direction"], row["sha256_decoded"] or row["sha256"])
            for row in sealed
        }
        if work.aggregates:
            known |= {("", "", digest) for _, _, digest in known}
        for s in work.asides:
            turn = self._turn_of(s.o)
            for n, e in enumerate(s.body["entries"]):
                item, _, _ = e["position"].partition(".")
                place = (
                    e["position"],
                    int(item) if item.isdecimal() and len(item) < _ITEM_DIGITS else 0,
                    "",
                    e["place"] or f"aside {n}",
                )
                summaries.aside(e["part"], turn, e["direction"], e["position"])
                sealed += [
                    rows.sighting_row(
                        work.session.session_id,
                        turn.turn_id if turn else "",
                        e["direction"],
                        place,
                        x,
                        [s.o.observer],
                    )
                    for x in e["part"].get("s", ())
                ]
        for s, told_by, where in self._untold(work):
            for direction, part, position in self._parts(s, told_by):
                summaries.aside(part, told_by, direction, position)
                turn_id = told_by.turn_id if told_by else ""
                at = (position, int(position.partition(".")[0]) if told_by else 0, "", where)
                sealed += [
                    rows.sighting_row(
                        work.session.session_id, turn_id, direction, at, x, [s.o.observer]
                    )
                    for x in part.get("s", ())
                    if (turn_id, direction, x[4] or x[3]) not in known
                    and ("", "", x[4] or x[3]) not in known
                ]

    @staticmethod
    def _untold(work: Work) -> list[tuple[Seen, Turn | None, str]]:
        """Lists that no turn is told by: an agent's span, and a turn's less full tellings."""
        out: list[tuple[Seen, Turn | None, str]] = [
            (s, None, "agent span") for s in work.aggregates
        ]
        for turn in work.session.turns:
            out += [
                (s, turn, "another observer") for s in turn.seen if s.body["role"] != "fragment"
            ]
        return out

    def _turn_of(self, o: Observation) -> Turn | None:
        """The turn that an observation stands in: its own span's, the call's, or the nearest above."""
        for place in ((o.trace_id, o.span_id), *self.tree.ancestors(o)):
            if place in self.turn_at:
                return self.turn_at[place]
            if place in self.call_at:
                return self.call_at[place][0].turn
        return None

    def _write_others(self) -> None:
        turn_of_response = {
            s.body["response_id"]: t
            for t in self.turn_at.values()
            for s in t.seen
            if s.body["response_id"]
        }
        for s in self.of("retrieval", "evaluation", "transition", "refusal"):
            turn = turn_of_response.get(s.body.get("response_id", "")) or self._turn_of(s.o)
            work = self.works.get(turn.session) if turn else self._around(s.o)
            base: Row = {
                "session_id": work.session.session_id if work else "",
                "row_key": key_of(s.o.id),
                "trace_id": s.o.trace_id,
                "span_id": s.o.span_id,
            }
            table, row = _other(s, turn, self.chains)
            self.out[table].append(base | row)


def _attribute(call: Call, session: Session) -> None:
    """A call that no recorded response asks for (Codex records none): of the turn before it in time."""
    seen = call.decisions + call.spans
    if call.turn is not None or not seen or not session.turns:
        return
    at = min(s.o.start_ns for s in seen)
    before = [t for t in session.turns if t.started_ns <= at and t.response is None]
    if before:
        call.turn = max(before, key=lambda t: (t.started_ns, t.turn_id))
        call.flags.add("turn_by_time")


def _other(s: Seen, turn: Turn | None, chains: Chains) -> tuple[str, Row]:
    body = s.body

    def text(name: str) -> str:
        return rows.preview(chains.text(body[name]) or "")

    if s.o.kind == "retrieval":
        return "evidence.retrievals", {
            "query": text("query"), "document_ids": body["document_ids"], "content": text("content"),
            "observer": s.o.observer, "started_ns": s.o.start_ns,
        }  # fmt: skip
    if s.o.kind == "evaluation":
        return "evidence.evaluations", {
            "turn_id": turn.turn_id if turn else "", "response_id": body["response_id"], "name": body["name"],
            "score": body["score"], "label": body["label"], "explanation": text("explanation"),
            "reads": body["reads"] or "not observable", "started_ns": s.o.start_ns,
        }  # fmt: skip
    if s.o.kind == "transition":
        return "evidence.state_transitions", {
            "name": body["name"], "before": text("before"), "after": text("after"), "started_ns": s.o.start_ns,
        }  # fmt: skip
    named = {k: body[k] for k in ("reason", "place", "size", "sha256")}
    return "evidence.refusals", {**named, "service": s.o.service, "started_ns": s.o.start_ns}


def _cuts(turn: Turn) -> list[str]:
    """What of a turn was cut or withheld; of a cut with its length the one that has it."""
    flags = {flag for s in turn.seen for flag in s.body["flags"]}
    cuts = [flag for flag in flags if "truncated" in flag or "withheld" in flag]
    return [flag for flag in cuts if not any(f.startswith(f"{flag}_to:") for f in cuts)]


def _gaps(session: Session, calls: list[Row]) -> list[str]:
    """What is visibly missing, in plain words without any text from outside."""
    out = [f"turn {t.ordinal + 1}: {flag}" for t in session.turns for flag in _cuts(t)]
    hidden = [str(t.ordinal + 1) for t in session.turns if t.request is None and t.response is None]
    out += [f"turn {', '.join(hidden)}: no content recorded"] if hidden else []
    missing = sum("result_not_observed" in c["flags"] for c in calls)
    out += [f"{missing} calls without an observed result"] if missing else []
    return sorted(set(out))
