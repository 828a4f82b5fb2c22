"""What a record says happened, as `conventions` reads it: plain facts with their texts inside.

Facts hold no ids, salts or hashes; `ledger.interning` turns them into observations, in which each
text is a commitment. Times are the sender's, in nanoseconds.
"""

from dataclasses import dataclass, field
from typing import Literal

from facta.model.records import Value
from facta.model.sealed import Sealed

PartKind = Literal["text", "reasoning", "call", "result", "sealed", "compaction", "other"]
UxKind = Literal["provider_summary", "thinking", "raw_reasoning", "may_be_summary", "unknown"]
Observer = Literal["target", "tap", "tool_span", "response", "later_request", "importer"]
Basis = Literal["acknowledged", "instrumented", "observed", "verified", "conflict"]


@dataclass(slots=True)
class Part:
    """One part of an item.

    text, other: `text`. reasoning: `text` is the summary or thinking (may be ""), of `ux_kind`.
    call: `call_id`, `tool`, `text` the arguments as received (a JSON text where the telemetry had
    an object). result: `call_id`, `tool`, `text` the result, `is_error`. Any of them may carry
    sealed values in `sealed`.
    """

    kind: PartKind
    text: str = ""
    call_id: str = ""
    tool: str = ""
    is_error: bool | None = None
    ux_kind: UxKind = "unknown"
    sealed: list[Sealed] = field(default_factory=list)


@dataclass(slots=True)
class Item:
    """One message or item of a request's or response's ordered list; `item_id` where it has one."""

    role: str
    parts: list[Part]
    item_id: str = ""


@dataclass(slots=True)
class Turn:
    """One model request and its response, as far as this record shows them.

    `input` and `output` are None where the record cannot show them (not the same as empty).
    `settings` and `usage` hold only what was seen, under the names of the columns of
    evidence.turns. `instructions` and `tools` are the system text and the tool definitions.

    `role` says what the record is to its turn: whole, fragment (one message of it, as a log event),
    aggregate (an agent's span that repeats the items of several turns and is itself none), or
    member of a `group`: there a convention spreads turns over a stream of records (Claude Code's
    and Codex's logs), ordered by `sequence`; one that `opens` "this" starts a turn, one that opens
    "next" belongs to the turn that the next of those starts.
    """

    role: Literal["whole", "fragment", "aggregate", "member"] = "whole"

    settings: dict[str, Value] = field(default_factory=dict)
    usage: dict[str, int | float] = field(default_factory=dict)
    input: list[Item] | None = None
    output: list[Item] | None = None
    instructions: str = ""
    tools: str = ""
    response_id: str = ""
    finish_reasons: list[str] = field(default_factory=list)
    error: str = ""
    group: str = ""
    sequence: int = 0
    opens: Literal["", "this", "next"] = ""
    flags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Call:
    """One tool execution as its own span or log record tells it; None where it does not say."""

    call_id: str = ""
    tool: str = ""
    arguments: str | None = None
    result: str | None = None
    status: str = ""
    error: str = ""
    duration_ns: int | None = None
    decision: str = ""
    flags: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Effect:
    """Something that was done to the world outside: operation, target, status, and how it is known.

    `stated` says that somebody named it as an effect (`facta.effect`), so it needs no call above it.
    """

    operation: str
    target: str
    status: str = ""
    basis: Basis = "instrumented"
    call_id: str = ""
    stated: bool = False


@dataclass(slots=True)
class Retrieval:
    """A look-up in a store of documents."""

    query: str = ""
    document_ids: list[str] = field(default_factory=list)
    content: str = ""


@dataclass(slots=True)
class Evaluation:
    """A score that somebody gave. `explanation` is a judge's prose: evidence, not a summary."""

    name: str
    score: float | None = None
    label: str = ""
    explanation: str = ""
    response_id: str = ""
    reads: str = ""


@dataclass(slots=True)
class Transition:
    """A change of state that the framework reports (gen_ai.execution.state.changed and like it)."""

    name: str
    before: str = ""
    after: str = ""


@dataclass(slots=True)
class Entry:
    """One part outside any item list: where it stood, and what that place says about it."""

    part: Part
    direction: str = ""
    position: str = ""
    place: str = ""


@dataclass(slots=True)
class Aside:
    """Sealed values and summaries that lie outside the items: in odd attributes, or told by a tap."""

    entries: list[Entry] = field(default_factory=list)


Body = Turn | Call | Effect | Retrieval | Evaluation | Transition | Aside


@dataclass(slots=True)
class Fact:
    """One thing that a record says, with who says it."""

    body: Body
    observer: Observer
    start_ns: int = 0
    end_ns: int = 0


@dataclass(slots=True)
class Reading:
    """All that one record says.

    `session` is the session as claimed, `convention` the name of the reading convention.
    `attributes` are those that no fact took, with marks rendered and summaries cut out.
    `agent` is an agent's name where the record gives one.
    """

    convention: str
    session: str = ""
    service: str = ""
    agent: str = ""
    facts: list[Fact] = field(default_factory=list)
    attributes: dict[str, Value] = field(default_factory=dict)
    confidence: float = 1.0
