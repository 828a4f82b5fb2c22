"""A timeline as lines to be read at night: one per step, evidence first, summaries apart."""

from collections.abc import Iterator
from typing import Any

from facta.cli.output import as_cell
from facta.dashboard.rows import duration, moment, offset
from facta.dashboard.text import line

Row = dict[str, Any]
Cells = tuple[str, str, str, str]

_WHAT_WIDTH = 62
_KIND_WIDTH = 10
_RULE = "-" * 20
BASES = {
    "acknowledged": "acknowledged by the tool, never observed",
    "instrumented": "instrumented (same producer)",
    "observed": "observed by the target",
    "verified": "verified (read back)",
    "conflict": "CONFLICT: the sources disagree",
}


def lines(answer: dict[str, Any], *, ux: bool = False) -> Iterator[str]:
    """The lines of what the API answers for a timeline; every text is made visible.

    `ux` says that summaries were asked for.
    """
    session, steps = answer["session"], answer["steps"]
    start = session["started_ns"]
    yield _head(session)
    yield ""
    yield _laid_out(("#", "at", "step", "what it rests on"))
    evidence = [step for step in steps if step["lane"] == "evidence"]
    numbers = _numbers(evidence)
    issued = _issued(evidence, numbers)
    for step, number in zip(evidence, numbers, strict=True):
        for place, (kind, what, rests) in enumerate(_DESCRIBED[step["kind"]](step)):
            head = (number, offset(step["at_ns"], start)) if not place else ("", "")
            origin = issued.get(step.get("sha256", ""), "") if _is_carried(step) else ""
            yield _laid_out((*head, f"{kind:<{_KIND_WIDTH}}{what}{origin}", rests))
    yield ""
    yield from _why(steps, start, ux=ux)


def _numbers(steps: list[Row]) -> list[str]:
    """Turns and calls are counted; what belongs to them has no number."""
    count = 0
    numbers = []
    for step in steps:
        counted = step["kind"] in {"turn", "call"}
        count += counted
        numbers.append(str(count) if counted else "")
    return numbers


def _issued(steps: list[Row], numbers: list[str]) -> dict[str, str]:
    """By its hash, the number of the turn whose response first showed a sealed value."""
    turns = {
        step["turn_id"]: number
        for step, number in zip(steps, numbers, strict=True)
        if step["kind"] == "turn"
    }
    found: dict[str, str] = {}
    for step in steps:
        if step["kind"] == "sighting" and not _is_carried(step) and step["sha256"]:
            found.setdefault(step["sha256"], f" ← {turns.get(step['turn_id'], '?')}")
    return found


def _is_carried(step: Row) -> bool:
    return (step["kind"], step.get("direction")) == ("sighting", "request")


def _head(session: Row) -> str:
    counts = [_count(session[name], name) for name in ("turns", "calls", "effects")]
    gaps = len(session["gaps"])
    parts = [
        session["service"],
        " → ".join(session["models"]),
        *counts,
        f"{session['sealed']:,} sealed" if session["sealed"] else "",
        _count(gaps, "gaps") if gaps else "",
    ]
    known = " · ".join(line(part) for part in parts if part)
    lasted = session["ended_ns"] - session["started_ns"]
    took = f", {duration(lasted)}" if lasted > 0 and session["started_ns"] else ""
    when = f"{moment(session['started_ns'])}{took}"
    return f"session {line(session['session_id'])}  {known}  {when}".rstrip()


def _why(steps: list[Row], start: int, *, ux: bool) -> Iterator[str]:
    """What is known of reasons: nothing, and where somebody said something about them."""
    said = [step for step in steps if step["lane"] == "ux"]
    if not said and ux:
        yield "why       not recorded, and no summary was kept either."
        return
    if not said:
        yield "why       not recorded. Summaries are not evidence; --ux shows those that were kept."
        return
    yield f"{_RULE} NOT EVIDENCE: what the model or its provider said about it {_RULE}"
    for step in said:
        text = line(step["ux_reasoning_summary"], 2_000)
        yield f"{offset(step['at_ns'], start):>9}  {line(step['ux_kind'])}: {text}"


def _laid_out(cells: Cells) -> str:
    number, at, what, rests = cells
    return f"{number:>3}  {at:>9}  {what:<{_WHAT_WIDTH + _KIND_WIDTH}}  {rests}".rstrip()


Part = tuple[str, str, str]
"""kind, what, what it rests on: one line each."""


def _turn(step: Row) -> Iterator[Part]:
    told = []
    items, kept = step["request_items"], step["context_kept"]
    if items is not None:
        told.append(
            f"+ {_count(items - kept, 'items')}" if kept else _count(items, "items") + " shown"
        )
    if step["context_rewritten"]:
        told.append("history rewritten")
    if step["reasoning_tokens"] is not None:
        told.append(f"{step['reasoning_tokens']:,} reasoning tokens")
    if step["sealed_again"]:
        told.append(f"{step['sealed_again']:,} sealed again")
    model = step["response_model"] or step["request_model"]
    rests = [*step["observers"], step["response_id"]]
    yield "turn", _cut(", ".join([model, *told] if model else told)), _joined(rests)
    for message in step["messages"]:
        answer = message["direction"] == "response"
        role = "" if answer else f"{message['role']}: "
        yield "answer" if answer else "shown", _cut(f"{role}{message['text']}"), ""
    if step["error"]:
        yield "error", _cut(step["error"]), ""
    for flag in step["flags"]:
        yield "", _cut(flag), ""


def _call(step: Row) -> Iterator[Part]:
    rests = f"asked: {step['arguments_observer']}" if step["arguments_observer"] else ""
    yield "call", _cut(f"{step['tool']} {step['arguments']}"), line(rests)
    if step["conflict"]:
        yield "CONFLICT", "the sources disagree; --format json has what each says", ""
    outcome = step["status"] if step["result"] is None else step["result"]
    took = f"  {duration(step['duration_ns'])}" if step["duration_ns"] is not None else ""
    if step["result"] is None and not outcome:
        yield "result", "not seen", ""
    else:
        room = _WHAT_WIDTH - len(took)
        yield "result", _cut(outcome, room) + took, line(step["result_observer"])
    if step["error"]:
        yield "error", _cut(step["error"]), ""


def _effect(step: Row) -> Iterator[Part]:
    status = f" → {step['status']}" if step["status"] else ""
    what = f"{step['operation']} {step['target']}{status}"
    yield "effect", _cut(what), BASES.get(step["basis"], line(step["basis"]))


def _sighting(step: Row) -> Iterator[Part]:
    digest = f"{step['sha256'][:8]}…" if step["sha256"] else "no hash"
    what = f"{step['sealed_kind']} {step['state']} {step['size']:,} {digest}"
    rests = f"in the {step['direction']} at {step['position']}, by {step['sealed_by']}"
    yield "sealed", _cut(what), line(rests)


def _evaluation(step: Row) -> Iterator[Part]:
    score = "" if step["score"] is None else f" {step['score']:g}"
    reads = f"the evaluator read: {step['reads']}" if step["reads"] else "what it read is not known"
    yield "scored", _cut(f"{step['name']}{score} {step['label']}".rstrip()), line(reads)


def _retrieval(step: Row) -> Iterator[Part]:
    documents = f" → {_count(len(step['document_ids']), 'documents')}"
    yield (
        "looked up",
        _cut(step["query"], _WHAT_WIDTH - len(documents)) + documents,
        line(step["observer"]),
    )


def _transition(step: Row) -> Iterator[Part]:
    yield "state", _cut(f"{step['name']}: {step['before']} → {step['after']}"), ""


def _refusal(step: Row) -> Iterator[Part]:
    what = f"{step['reason']}, {step['place']}, {step['size']:,} B"
    yield "refused", _cut(what), f"sha256 {line(step['sha256'][:8])}…"


def _gap(step: Row) -> Iterator[Part]:
    yield "gap", _cut(step["gap"]), ""


def _count(count: int, things: str) -> str:
    return f"{count:,} {things if count != 1 else things.removesuffix('s')}"


def _cut(text: str, limit: int = _WHAT_WIDTH) -> str:
    shown = line(text, limit)
    return shown if len(shown) <= limit else f"{line(text[: limit * 4])[: limit - 1]}…"


def _joined(parts: list[Any]) -> str:
    return line(" · ".join(as_cell(part) for part in parts if part))


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
