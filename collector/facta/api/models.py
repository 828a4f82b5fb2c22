"""The rows of the read API, as its OpenAPI names them.

Times are the sender's, in nanoseconds since 1970 (0: not known). Texts come from outside: whoever
shows them shows them as text. A `…_commit` is the commitment under which `/content` has all of a
text.
"""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    """Some rows of a list; `next_cursor` is null at its end."""

    items: list[Item]
    next_cursor: str | None


class Session(BaseModel):
    """One conversation or run; `basis` says how its turns were linked."""

    session_id: str
    row_key: str
    service: str
    basis: list[str]
    claims: list[str]
    aliases: list[str]
    agents: list[str]
    models: list[str]
    started_ns: int
    ended_ns: int
    turns: int
    calls: int
    effects: int
    sealed: int
    gaps: list[str]


class Turn(BaseModel):
    """One model request and its response."""

    session_id: str
    row_key: str
    turn_id: str
    ordinal: int
    parent_turn_id: str
    link_basis: str
    service: str
    agent: str
    provider: str
    surface: str
    protocol: str
    endpoint: str
    deployment: str
    api: str
    operation: str
    request_model: str
    response_model: str
    response_id: str
    previous_response_id: str
    conversation_id: str
    store: bool | None
    include: list[str]
    background: bool | None
    effort: str
    thinking: str
    reasoning_context: str
    attempt: int | None
    started_ns: int
    ended_ns: int
    reported_cost: float | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    finish_reasons: list[str]
    error: str
    request_head: str
    request_items: int | None
    response_head: str
    response_items: int | None
    context_of: str
    context_kept: int
    context_rewritten: bool
    observers: list[str]
    conventions: list[str]
    scopes: list[str]
    schema_urls: list[str]
    trace_ids: list[str]
    span_ids: list[str]
    not_observable: list[str]
    flags: list[str]
    instructions_commit: str
    tools_commit: str
    attributes_commit: list[str]


class ContextItem(BaseModel):
    """One item that a turn added; `parts` is canonical JSON."""

    session_id: str
    row_key: str
    turn_id: str
    direction: str
    position: int
    prefix_hash: str
    role: str
    item_id: str
    parts: str


class ToolCall(BaseModel):
    """One tool call; `result` is null where none was seen."""

    session_id: str
    row_key: str
    turn_id: str
    call_id: str
    tool: str
    arguments: str
    arguments_commit: str
    arguments_canonical: str
    arguments_observer: str
    result: str | None
    result_commit: str
    result_observer: str
    result_turn_id: str
    status: str
    error: str
    started_ns: int
    duration_ns: int | None
    observers: list[str]
    conflict: bool
    alternatives: str
    flags: list[str]
    trace_id: str
    span_id: str


class Effect(BaseModel):
    """Something that was done, and in `basis` how that is known."""

    session_id: str
    row_key: str
    call_id: str
    turn_id: str
    operation: str
    target: str
    status: str
    basis: str
    observer: str
    service: str
    started_ns: int
    ended_ns: int
    flags: list[str]
    alternatives: str
    trace_id: str
    span_id: str


class Retrieval(BaseModel):
    """One look-up in a store of documents."""

    session_id: str
    row_key: str
    query: str
    document_ids: list[str]
    content: str
    observer: str
    started_ns: int
    trace_id: str
    span_id: str


class Evaluation(BaseModel):
    """One score; `reads` is what the evaluator read, where known."""

    session_id: str
    row_key: str
    turn_id: str
    response_id: str
    name: str
    score: float | None
    label: str
    explanation: str
    reads: str
    started_ns: int
    trace_id: str
    span_id: str


class StateTransition(BaseModel):
    """One change of state that a framework reported."""

    session_id: str
    row_key: str
    name: str
    before: str
    after: str
    started_ns: int
    trace_id: str
    span_id: str


class Sighting(BaseModel):
    """A sealed value at one place in one request or response, carried history included.

    `position` is item.part within the ordered items of the request or the response; `first_turn_id`
    is the turn that first showed the place. `size` counts characters of text, bytes of bytes.
    """

    session_id: str
    row_key: str
    turn_id: str
    direction: str
    position: str
    item: int
    first_turn_id: str
    kind: str
    state: str
    size: int
    sha256: str
    sha256_decoded: str
    alphabet: str
    sealed_by: str
    confidence: float
    place: str
    observers: list[str]


class Refusal(BaseModel):
    """Something that could not be read."""

    session_id: str
    row_key: str
    reason: str
    place: str
    size: int
    sha256: str
    service: str
    started_ns: int
    trace_id: str
    span_id: str


class Control(BaseModel):
    """A control that was scanned, and what it reads."""

    session_id: str
    row_key: str
    rule: str
    path: str
    line: int
    class_: str = Field(alias="class")
    severity: str


class UxSummary(BaseModel):
    """A summary or thinking text. NOT EVIDENCE."""

    session_id: str
    row_key: str
    turn_id: str
    direction: str
    position: str
    ux_kind: str
    ux_reasoning_summary: str
    ux_commit: str
    size: int
    started_ns: int


class Content(BaseModel):
    """A text by its commitment: commit = sha256(salt as bytes, text as UTF-8)."""

    commit: str
    lane: Literal["evidence", "ux"]
    salt: str
    sha256: str
    size: int
    text: str


class Step(BaseModel):
    """One step of a timeline: its kind's row, with `lane`, `kind` and `at_ns` beside it.

    A sighting's own kind is in `sealed_kind`. Steps of the lane ux have `not_evidence`.
    """

    model_config = ConfigDict(extra="allow")

    lane: Literal["evidence", "ux"]
    kind: str
    at_ns: int


class Timeline(BaseModel):
    """A session and all its steps, in causal order."""

    session: Session
    steps: list[Step]


class Status(BaseModel):
    """How far the store is: `resolved` is true when nothing that was taken waits."""

    ledger_rows: int
    projected_rows: int
    backlog: int
    resolved: bool
    repeats: int
    refused: int
    last_checkpoint: str | None
    version: str


class Problem(BaseModel):
    """Why a request was not answered, in our words; it never repeats a value of the request."""

    error: str
    fields: list[str] = []


class Finding(BaseModel):
    """Something that is wrong with what arrives; `subject` is the service or scope it is about."""

    check: str
    subject: str = ""
    count: int = 0
    what: str
    hint: str


class Findings(BaseModel):
    """All findings; empty when nothing is wrong."""

    items: list[Finding]
