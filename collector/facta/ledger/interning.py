"""From what a record says to what the ledger holds: texts become commitments, lists become links.

A list of items is kept as a chain: each link names its parent link and one item, by hash. A request
that repeats n items and adds two therefore adds two links, whatever n is, and its last link commits
to the whole list (a rolling prefix hash).
"""

import hashlib
import hmac
from dataclasses import dataclass, field, replace

import orjson

from facta.ledger.canonical import observation_id
from facta.model.facts import (
    Aside,
    Call,
    Effect,
    Evaluation,
    Fact,
    Item,
    Part,
    Reading,
    Retrieval,
    Transition,
    Turn,
)
from facta.model.identity import Identity
from facta.model.observation import Object, ObjectKind, Observation, commit_of
from facta.model.records import Record, Refusal

ROOT = ""
LATEST_NS = (1 << 63) - 1
_KINDS = {
    Turn: "turn",
    Call: "call",
    Effect: "effect",
    Retrieval: "retrieval",
    Evaluation: "evaluation",
    Transition: "transition",
    Aside: "aside",
}


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys and no blanks: the one form in which bodies and items are hashed."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=_odd)


def _odd(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def link_hash(parent: str, item: str) -> str:
    """The hash of one link of an item list; `parent` is empty for the first."""
    return hashlib.sha256(
        b"link\x00" + bytes.fromhex(parent or "00" * 32) + bytes.fromhex(item)
    ).hexdigest()


@dataclass(slots=True)
class Interning:
    """Collects the objects of one request for one tenant."""

    identity: Identity
    tenant_key: bytes
    objects: dict[tuple[str, str], Object] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)

    def text(self, text: str, kind: ObjectKind) -> str:
        """Keep a text and return its commitment; an empty text has none."""
        if not text:
            return ""
        data = text.encode("utf-8", "surrogatepass")
        commit, salt, sha256 = commit_of(self.tenant_key, data)
        self.objects.setdefault((commit, kind), Object(commit, kind, data, salt, sha256))
        return commit

    def canonical(self, arguments: str) -> str:
        """A keyed hash of arguments as a value: equal for the same JSON however it is written."""
        try:
            data = canonical_json(orjson.loads(arguments))
        except orjson.JSONDecodeError:
            data = arguments.encode("utf-8", "surrogatepass")
        return hmac.new(self.tenant_key, data, hashlib.sha256).hexdigest()[:32]

    def part(self, part: Part) -> dict[str, object]:
        """A part with its text as a commitment; keys are short, since there are many."""
        kind: ObjectKind = (
            "ux"
            if part.kind == "reasoning"
            else "deed"
            if part.kind in ("call", "result")
            else "text"
        )
        out: dict[str, object] = {"k": part.kind}
        if part.text:
            out |= {"t": self.text(part.text, kind), "n": len(part.text)}
        if part.kind == "call":
            out["a"] = self.canonical(part.text)
        for key, value in (("c", part.call_id), ("o", part.tool), ("e", part.is_error)):
            if value not in ("", None):
                out[key] = value
        if part.kind == "reasoning" and part.ux_kind != "unknown":
            out["u"] = part.ux_kind
        if part.sealed:
            out["s"] = [
                [
                    s.kind,
                    s.state,
                    s.size,
                    s.sha256,
                    s.sha256_decoded,
                    s.alphabet,
                    s.sealed_by,
                    s.confidence,
                ]
                for s in part.sealed
            ]
        return out

    def items(self, items: list[Item] | None) -> dict[str, object] | None:
        """A list of items as the head of its chain, with its counts."""
        if items is None:
            return None
        head, parts, sealed = ROOT, 0, 0
        for item in items:
            shape: dict[str, object] = {
                "role": item.role,
                "parts": [self.part(p) for p in item.parts],
            }
            if item.item_id:
                shape["id"] = item.item_id
            data = canonical_json(shape)
            name = hashlib.sha256(b"item\x00" + data).hexdigest()
            self.objects.setdefault((name, "item"), Object(name, "item", data))
            parent, head = head, link_hash(head, name)
            link = Object(head, "link", bytes.fromhex(parent or "") + bytes.fromhex(name))
            self.objects.setdefault((head, "link"), link)
            parts += len(item.parts)
            sealed += sum(len(part.sealed) for part in item.parts)
        return {"head": head, "n": len(items), "parts": parts, "sealed": sealed}

    def body(self, fact: Fact) -> dict[str, object]:
        """The body of a fact's observation."""
        told = fact.body
        if isinstance(told, Turn):
            return self._turn(told)
        if isinstance(told, Call):
            return self._call(told)
        if isinstance(told, Effect):
            return {"operation": told.operation, "target": told.target, "status": told.status,
                    "basis": told.basis, "call_id": told.call_id, "stated": told.stated}  # fmt: skip
        if isinstance(told, Retrieval):
            return {"query": self.text(told.query, "deed"), "document_ids": told.document_ids,
                    "content": self.text(told.content, "deed")}  # fmt: skip
        if isinstance(told, Evaluation):
            return {"name": told.name, "score": told.score, "label": told.label, "reads": told.reads,
                    "explanation": self.text(told.explanation, "deed"), "response_id": told.response_id}  # fmt: skip
        if isinstance(told, Transition):
            return {
                "name": told.name,
                "before": self.text(told.before, "deed"),
                "after": self.text(told.after, "deed"),
            }
        entries = [
            {
                "part": self.part(e.part),
                "direction": e.direction,
                "position": e.position,
                "place": e.place,
            }
            for e in told.entries
        ]
        return {"entries": entries}

    def _turn(self, turn: Turn) -> dict[str, object]:
        body: dict[str, object] = {
            "role": turn.role,
            "settings": turn.settings,
            "usage": turn.usage,
            "request": self.items(turn.input),
            "response": self.items(turn.output),
            "instructions": self.text(turn.instructions, "deed"),
            "tools": self.text(turn.tools, "deed"),
            "response_id": turn.response_id,
            "finish_reasons": turn.finish_reasons,
            "error": turn.error,
            "flags": sorted(set(turn.flags)),
        }
        if turn.role in ("member", "fragment"):
            body |= {"group": turn.group, "sequence": turn.sequence, "opens": turn.opens}
        return body

    def _call(self, call: Call) -> dict[str, object]:
        arguments, result = call.arguments, call.result
        return {
            "call_id": call.call_id,
            "tool": call.tool,
            "arguments": None if arguments is None else self.text(arguments, "deed"),
            "canonical": "" if arguments is None else self.canonical(arguments),
            "result": None if result is None else self.text(result, "deed"),
            "status": call.status,
            "error": call.error,
            "duration_ns": call.duration_ns,
            "decision": call.decision,
            "flags": sorted(set(call.flags)),
        }

    def add(self, record: Record, reading: Reading) -> None:
        """One record with all that it says: an observation a fact, or one for the bare record."""
        extra: dict[str, object] = {}
        if reading.attributes:
            extra["attributes"] = self.text(canonical_json(reading.attributes).decode(), "deed")
        if reading.agent:
            extra["agent"] = reading.agent
        if not reading.facts:
            bare: dict[str, object] = {"status": record.status, "kind": record.kind, **extra}
            self._observe(
                record, reading, record.signal, "response", (record.start_ns, record.end_ns), bare
            )
        for fact in reading.facts:
            kind = _KINDS[type(fact.body)]
            self._observe(
                record,
                reading,
                kind,
                fact.observer,
                (fact.start_ns, fact.end_ns),
                {**self.body(fact), **extra},
            )
            extra.pop("attributes", None)
        for refusal in [*record.refusals, *_beyond(record)]:
            self._observe(
                record,
                reading,
                "refusal",
                "response",
                (record.start_ns, record.end_ns),
                _refused(refusal),
            )

    def refuse(self, refusals: list[Refusal]) -> None:
        """What was refused of the request as a whole."""
        for refusal in refusals:
            self._append(
                "refusal",
                "",
                "",
                ("", "", ""),
                "response",
                "",
                ("", "", ""),
                (0, 0),
                _refused(refusal),
            )

    def _observe(
        self,
        record: Record,
        reading: Reading,
        kind: str,
        observer: str,
        times: tuple[int, int],
        body: dict[str, object],
    ) -> None:
        scope = (record.scope.name, record.scope.version, record.scope.schema_url)
        span = (record.trace_id, record.span_id, record.parent_span_id)
        self._append(
            kind,
            reading.service,
            reading.session,
            span,
            observer,
            reading.convention,
            scope,
            times,
            body,
        )

    def _append(
        self,
        kind: str,
        service: str,
        session: str,
        span: tuple[str, str, str],
        observer: str,
        convention: str,
        scope: tuple[str, str, str],
        times: tuple[int, int],
        body: dict[str, object],
    ) -> None:
        bare = Observation(
            self.identity.tenant, self.identity.producer, service, observer, kind, convention,
            *scope, *span, session, _held(times[0]), _held(times[1]), canonical_json(body),
        )  # fmt: skip
        named = observation_id(self.tenant_key, bare)
        self.observations.append(replace(bare, id=named))


def _held(nanoseconds: int) -> int:
    """A time as a row can hold it: 0, as an absent one, beyond the year 2262."""
    return nanoseconds if nanoseconds <= LATEST_NS else 0


def _beyond(record: Record) -> list[Refusal]:
    """The record's times that no row can hold, as refusals: they cost the time, not the record."""
    times = {"start time": record.start_ns, "end time": record.end_ns}
    raws = {place: ns.to_bytes(8, "little") for place, ns in times.items() if ns > LATEST_NS}
    reason = "a time beyond the year 2262"
    return [
        Refusal(reason, place, len(raw), hashlib.sha256(raw).hexdigest())
        for place, raw in raws.items()
    ]


def _refused(refusal: Refusal) -> dict[str, object]:
    return {
        "reason": refusal.reason,
        "place": refusal.place,
        "size": refusal.size,
        "sha256": refusal.sha256,
    }


__all__ = ["Interning", "canonical_json", "link_hash"]
