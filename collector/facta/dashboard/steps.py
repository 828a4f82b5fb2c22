"""A timeline's steps as blocks to draw: what happened, and what it rests on.

One block per row of the API's evidence lane, in the API's order; turns and calls are numbered, and
what came of them stands below without a number, as `facta timeline` has it. The sealed values of one
turn that follow each other share a block. Nothing is concluded here: a block says what its row
says. Its texts are as received, so whoever draws them shows them as text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import orjson

from facta.dashboard import rows as read

Row = dict[str, Any]

INLINE = 16_384
"""Characters of a text that a row of the API holds at most; the API's /content has the rest."""

COUNTED = ("turn", "call")

BASES = {
    "acknowledged": "acknowledged: the tool's own reply says so",
    "instrumented": "instrumented: a client span of the same producer",
    "observed": "observed: another producer, the target, says so",
    "verified": "verified: read back",
    "conflict": "conflict: the sources disagree",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A text that may be long. A row holds no more than INLINE characters of it; `pointer` is the
    API's path to all of it, "" where there is none.
    """

    label: str
    text: str
    pointer: str = ""

    @property
    def cut(self) -> bool:
        """Whether the row may hold only the beginning."""
        return len(self.text) == INLINE


@dataclass(frozen=True, slots=True)
class Block:
    """What one step shows. `kind` and the labels of `values` are our words, the rest is not.

    `number` is that of the step, 0 where it has none; `place` is that of its row in the evidence
    lane, from 1, and 0 in the ux lane. `what` is one line, `facts`
    are lines, `rests` is one line each. `flagged` says that the row is marked as a conflict.
    """

    kind: str
    number: int
    place: int
    at: str
    what: str
    rests: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    flagged: bool = False
    rows: list[Row] = field(default_factory=list)

    @property
    def evidence(self) -> bool:
        """Whether this is the evidence lane; all else is drawn as NOT EVIDENCE."""
        return self.place > 0


def blocks(session: Row, steps: list[Row]) -> list[Block]:
    """The blocks of a timeline, in the order of its steps."""
    start = read.whole(session, "started_ns")
    made: list[Block] = []
    number, place = 0, 1
    for _, group in groupby(enumerate(steps), key=_grouped_by):
        members = [row for _, row in group]
        if members[0].get("lane") != "evidence":
            made += [_summary(row, start) for row in members]
            continue
        counted = members[0].get("kind") in COUNTED
        number += counted
        made.append(_block(members, number if counted else 0, place, start))
        place += len(members)
    return made


def _grouped_by(numbered: tuple[int, Row]) -> tuple[str, str]:
    place, row = numbered
    if row.get("lane") == "evidence" and row.get("kind") == "sighting":
        return "sighting", read.text(row, "turn_id")
    return "alone", str(place)


def _block(members: list[Row], number: int, place: int, start: int | None) -> Block:
    row = members[0]
    kind = read.text(row, "kind")
    describe = _DESCRIBED.get(kind)
    parts = (
        describe(members) if describe else _Parts(what=read.first(row, "reason", "name", "text"))
    )
    return Block(
        kind=kind if describe else "other",
        number=number,
        place=place,
        at=read.offset(read.whole(row, "at_ns") or read.whole(row, "started_ns"), start),
        what=parts.what,
        rests=[line for line in parts.rests if line],
        facts=[line for line in parts.facts if line],
        values=[value for value in parts.values if value.text],
        flagged=row.get("conflict") is True or row.get("basis") == "conflict",
        rows=members,
    )


def _summary(row: Row, start: int | None) -> Block:
    text = Value("summary", read.text(row, "ux_reasoning_summary"))
    at = read.offset(read.whole(row, "at_ns") or read.whole(row, "started_ns"), start)
    return Block("ux", 0, 0, at, read.text(row, "ux_kind"), values=[text], rows=[row])


@dataclass(slots=True)
class _Parts:
    what: str
    rests: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)


def _turn(members: list[Row]) -> _Parts:
    row = members[0]
    requested, answered = read.text(row, "request_model"), read.text(row, "response_model")
    both = requested and answered and requested != answered
    return _Parts(
        what=f"{requested} → {answered}" if both else answered or requested,
        rests=[
            read.joined(row, "observers"),
            read.joined(row, "conventions"),
            read.text(row, "response_id"),
        ],
        facts=[read.dotted(_shown(row)), read.dotted(_usage(row)), *_settings(row), *_told(row)],
        values=[*_messages(row), Value("error", read.text(row, "error")), *_alternatives(row)],
    )


def _messages(row: Row) -> Iterator[Value]:
    for message in row.get("messages") or []:
        answer = message.get("direction") == "response"
        said = (
            read.text(message, "text")
            if answer
            else f"{read.text(message, 'role')}: {read.text(message, 'text')}"
        )
        yield Value("answer" if answer else "shown", said, read.content(message, "commit"))


def _shown(row: Row) -> Iterator[str]:
    items, kept = read.whole(row, "request_items"), read.whole(row, "context_kept")
    if items is not None:
        yield f"items shown: {items:,}" + (f", the first {kept:,} as before" if kept else "")
    if again := read.whole(row, "sealed_again"):
        yield f"sealed values shown again: {again:,}"
    if row.get("context_rewritten") is True:
        yield "history rewritten"
    if (answered := read.whole(row, "response_items")) is not None:
        yield f"answered: {answered:,}"
    if reasons := read.joined(row, "finish_reasons"):
        yield f"finished: {reasons}"


def _usage(row: Row) -> Iterator[str]:
    counts = [
        f"{count:,} {name}"
        for name in ("input", "cached", "output", "reasoning")
        if (count := read.whole(row, f"{name}_tokens")) is not None
    ]
    if counts:
        yield f"tokens: {', '.join(counts)}"
    if cost := read.text(row, "reported_cost"):
        yield f"reported cost: {cost}"


def _settings(row: Row) -> Iterator[str]:
    names = ("effort", "thinking", "reasoning_context", "store", "background", "include", "attempt")
    named = [f"{name} {value}" for name in names if (value := read.joined(row, name))]
    if named:
        yield f"settings: {', '.join(named)}"
    route = [read.text(row, name) for name in ("provider", "surface", "protocol", "endpoint")]
    if any(route):
        yield f"route: {read.dotted(route)}"


def _told(row: Row) -> Iterator[str]:
    if unseen := read.joined(row, "not_observable"):
        yield f"not observable here: {unseen}"
    if flags := read.joined(row, "flags"):
        yield f"flags: {flags}"


def _call(members: list[Row]) -> _Parts:
    row = members[0]
    asked, ran = read.text(row, "arguments_observer"), read.text(row, "result_observer")
    outcome = [read.text(row, "status"), read.duration(read.whole(row, "duration_ns"))]
    unseen = "no result was seen" if row.get("result") is None else ""
    named = [unseen, f"call {call}" if (call := read.text(row, "call_id")) else "", *_told(row)]
    return _Parts(
        what=read.text(row, "tool"),
        rests=[
            f"arguments: {asked}" if asked else "",
            f"result: {ran}" if ran else "",
            "" if asked or ran else read.joined(row, "observers"),
        ],
        facts=[read.dotted([*outcome, *named])],
        values=[
            Value("arguments", read.text(row, "arguments"), read.content(row, "arguments_commit")),
            Value("result", read.text(row, "result"), read.content(row, "result_commit")),
            Value("error", read.text(row, "error")),
            *_alternatives(row),
        ],
    )


def _effect(members: list[Row]) -> _Parts:
    row = members[0]
    status, basis = read.text(row, "status"), read.text(row, "basis")
    did = f"{read.text(row, 'operation')} {read.text(row, 'target')}".strip()
    call = read.text(row, "call_id")
    return _Parts(
        what=f"{did} → {status}" if status else did,
        rests=[BASES.get(basis, basis), read.text(row, "observer"), read.text(row, "service")],
        facts=[f"of call {call}" if call else "", *_told(row)],
        values=_alternatives(row),
    )


def _sighting(members: list[Row]) -> _Parts:
    kinds = sorted({read.text(row, "sealed_kind") for row in members} - {""})
    return _Parts(
        what=read.dotted([f"{len(members):,} values" if len(members) > 1 else "", *kinds]),
        rests=sorted({read.joined(row, "observers") for row in members}),
        facts=[_sealed(row) for row in members],
    )


def _sealed(row: Row) -> str:
    size, digest = read.whole(row, "size"), read.text(row, "sha256")
    parts = [
        read.text(row, "sealed_kind"),
        read.text(row, "state"),
        "" if size is None else f"size {size:,}",
        f"sha256 {digest[:8]}…" if digest else "no sha256",
        f"in the {direction}" if (direction := read.text(row, "direction")) else "",
        f"at {place}" if (place := read.text(row, "position")) else "",
        f"by {sealed_by}" if (sealed_by := read.text(row, "sealed_by")) else "",
    ]
    return read.dotted(parts)


def _evaluation(members: list[Row]) -> _Parts:
    row = members[0]
    score, label = read.text(row, "score"), read.text(row, "label")
    reads = read.text(row, "reads")
    return _Parts(
        what=" ".join(part for part in (read.text(row, "name"), score, label) if part),
        rests=[f"the evaluator read: {reads}" if reads else "what the evaluator read is not known"],
        values=[Value("explanation", read.text(row, "explanation"))],
    )


def _retrieval(members: list[Row]) -> _Parts:
    row = members[0]
    documents = row.get("document_ids")
    count = len(documents) if isinstance(documents, list) else 0
    return _Parts(
        what=f"{count:,} documents",
        rests=[read.text(row, "observer")],
        values=[
            Value("query", read.text(row, "query")),
            Value("documents", read.joined(row, "document_ids", "\n")),
            Value("content", read.text(row, "content")),
        ],
    )


def _transition(members: list[Row]) -> _Parts:
    row = members[0]
    before, after = read.text(row, "before"), read.text(row, "after")
    return _Parts(
        what=read.text(row, "name"), values=[Value("before", before), Value("after", after)]
    )


def _refusal(members: list[Row]) -> _Parts:
    row = members[0]
    size, digest = read.whole(row, "size"), read.text(row, "sha256")
    return _Parts(
        what=read.text(row, "reason"),
        facts=[
            f"in: {place}" if (place := read.text(row, "place")) else "",
            "" if size is None else f"{size:,} bytes",
            f"sha256 {digest}" if digest else "",
        ],
    )


def _gap(members: list[Row]) -> _Parts:
    return _Parts(what=read.first(members[0], "gap", "reason", "text", "name"))


def _alternatives(row: Row) -> list[Value]:
    told = row.get("alternatives")
    empty = told in (None, "", "[]", "{}", [], {})
    return [] if empty else [Value("alternatives", read.text(row, "alternatives"))]


_DESCRIBED = {
    "turn": _turn,
    "call": _call,
    "effect": _effect,
    "sighting": _sighting,
    "evaluation": _evaluation,
    "retrieval": _retrieval,
    "transition": _transition,
    "refusal": _refusal,
    "gap": _gap,
}


def whole_rows(block: Block) -> str:
    """All fields of a block's rows, as indented JSON."""
    try:
        return orjson.dumps(block.rows, option=orjson.OPT_INDENT_2, default=str).decode()
    except (TypeError, orjson.JSONEncodeError):
        return repr(block.rows)
