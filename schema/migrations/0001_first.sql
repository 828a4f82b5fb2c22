-- The first tables. `evidence` holds what was done; `ux` holds what was said about it, in a database
-- of its own so that a server can grant one without the other. Observations and content are written
-- once; every other table is resolved from them and may be rebuilt: its newest version counts
-- (ReplacingMergeTree, always read with FINAL). `row_key` is the row's identity inside its session.

CREATE DATABASE IF NOT EXISTS evidence;
CREATE DATABASE IF NOT EXISTS ux;

CREATE TABLE IF NOT EXISTS evidence.observations
(
    tenant LowCardinality(String),
    ledger_id LowCardinality(String),
    seq UInt64,
    id FixedString(32),
    received_at DateTime64(9, 'UTC'),
    producer LowCardinality(String),
    service LowCardinality(String),
    observer LowCardinality(String),
    kind LowCardinality(String),
    convention LowCardinality(String),
    scope_name LowCardinality(String),
    scope_version LowCardinality(String),
    schema_url LowCardinality(String),
    trace_id String,
    span_id String,
    parent_span_id String,
    claimed_session String,
    started_ns Int64,
    ended_ns Int64,
    body String CODEC(ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(received_at)
ORDER BY (tenant, trace_id, span_id, id);

CREATE TABLE IF NOT EXISTS evidence.content
(
    tenant LowCardinality(String),
    commit FixedString(64),
    salt FixedString(32),
    sha256 FixedString(64),
    size UInt64,
    text String CODEC(ZSTD(1)),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, commit);

CREATE TABLE IF NOT EXISTS ux.content
(
    tenant LowCardinality(String),
    commit FixedString(64),
    salt FixedString(32),
    sha256 FixedString(64),
    size UInt64,
    text String CODEC(ZSTD(1)),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, commit);

CREATE TABLE IF NOT EXISTS evidence.sessions
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    service LowCardinality(String),
    basis Array(LowCardinality(String)),
    claims Array(String),
    aliases Array(String),
    agents Array(String),
    models Array(String),
    started_ns Int64,
    ended_ns Int64,
    turns UInt32,
    calls UInt32,
    effects UInt32,
    sealed UInt32,
    gaps Array(String),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.turns
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    ordinal UInt32,
    parent_turn_id String,
    link_basis LowCardinality(String),
    service LowCardinality(String),
    agent String,
    provider LowCardinality(String),
    surface LowCardinality(String),
    protocol LowCardinality(String),
    endpoint String,
    deployment String,
    api LowCardinality(String),
    operation LowCardinality(String),
    request_model LowCardinality(String),
    response_model LowCardinality(String),
    response_id String,
    previous_response_id String,
    conversation_id String,
    store Nullable(Bool),
    include Array(String),
    background Nullable(Bool),
    effort LowCardinality(String),
    thinking String,
    reasoning_context LowCardinality(String),
    attempt Nullable(UInt32),
    started_ns Int64,
    ended_ns Int64,
    reported_cost Nullable(Float64),
    input_tokens Nullable(UInt64),
    cached_tokens Nullable(UInt64),
    output_tokens Nullable(UInt64),
    reasoning_tokens Nullable(UInt64),
    finish_reasons Array(LowCardinality(String)),
    error String,
    request_head String,
    request_items Nullable(UInt32),
    response_head String,
    response_items Nullable(UInt32),
    context_of String,
    context_kept UInt32,
    context_rewritten Bool,
    observers Array(LowCardinality(String)),
    conventions Array(LowCardinality(String)),
    scopes Array(LowCardinality(String)),
    schema_urls Array(LowCardinality(String)),
    trace_ids Array(String),
    span_ids Array(String),
    not_observable Array(LowCardinality(String)),
    flags Array(LowCardinality(String)),
    instructions_commit String,
    tools_commit String,
    attributes_commit Array(String),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

-- A turn's items, as a delta: positions from context_kept on for the request, all for the response.
CREATE TABLE IF NOT EXISTS evidence.context
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    direction LowCardinality(String),
    position UInt32,
    prefix_hash String,
    role LowCardinality(String),
    item_id String,
    parts String CODEC(ZSTD(1)),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.tool_calls
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    call_id String,
    tool String,
    arguments String CODEC(ZSTD(1)),
    arguments_commit String,
    arguments_canonical String,
    arguments_observer LowCardinality(String),
    result Nullable(String) CODEC(ZSTD(1)),
    result_commit String,
    result_observer LowCardinality(String),
    result_turn_id String,
    status LowCardinality(String),
    error String,
    started_ns Int64,
    duration_ns Nullable(Int64),
    observers Array(LowCardinality(String)),
    conflict Bool,
    alternatives String CODEC(ZSTD(1)),
    flags Array(LowCardinality(String)),
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.effects
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    call_id String,
    turn_id String,
    operation String,
    target String,
    status String,
    basis LowCardinality(String),
    observer LowCardinality(String),
    service LowCardinality(String),
    started_ns Int64,
    ended_ns Int64,
    flags Array(LowCardinality(String)),
    alternatives String CODEC(ZSTD(1)),
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.retrievals
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    query String CODEC(ZSTD(1)),
    document_ids Array(String),
    content String CODEC(ZSTD(1)),
    observer LowCardinality(String),
    started_ns Int64,
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.evaluations
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    response_id String,
    name String,
    score Nullable(Float64),
    label String,
    explanation String CODEC(ZSTD(1)),
    reads LowCardinality(String),
    started_ns Int64,
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.state_transitions
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    name String,
    `before` String CODEC(ZSTD(1)),
    `after` String CODEC(ZSTD(1)),
    started_ns Int64,
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

-- Sightings as deltas, like evidence.context: one row per place in a list of items, in the turn that
-- first showed that place; later turns that carry the same history show it again when read.
CREATE TABLE IF NOT EXISTS evidence.sightings
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    direction LowCardinality(String),
    position String,
    item UInt32,
    prefix_hash String,
    kind LowCardinality(String),
    state LowCardinality(String),
    size UInt64,
    sha256 String,
    sha256_decoded String,
    alphabet LowCardinality(String),
    sealed_by LowCardinality(String),
    confidence Float32,
    place String,
    observers Array(LowCardinality(String)),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE TABLE IF NOT EXISTS evidence.refusals
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    reason LowCardinality(String),
    place String,
    size UInt64,
    sha256 String,
    service LowCardinality(String),
    started_ns Int64,
    trace_id String,
    span_id String,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

-- What a scan of somebody's controls found; filled by the scanner.
CREATE TABLE IF NOT EXISTS evidence.controls
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    rule String,
    path String,
    line UInt32,
    class LowCardinality(String),
    severity LowCardinality(String),
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

-- Who read the ux lane, and when.
CREATE TABLE IF NOT EXISTS evidence.reads
(
    tenant LowCardinality(String),
    read_at DateTime64(9, 'UTC'),
    reader String,
    route String,
    session_id String
)
ENGINE = MergeTree
ORDER BY (tenant, read_at);

CREATE TABLE IF NOT EXISTS ux.summaries
(
    tenant LowCardinality(String),
    session_id String,
    row_key String,
    turn_id String,
    direction LowCardinality(String),
    position String,
    ux_kind LowCardinality(String),
    ux_reasoning_summary String CODEC(ZSTD(1)),
    ux_commit String,
    size UInt64,
    started_ns Int64,
    version UInt64,
    deleted UInt8
)
ENGINE = ReplacingMergeTree(version, deleted)
ORDER BY (tenant, session_id, row_key);

CREATE VIEW IF NOT EXISTS ux.steps AS
SELECT t.tenant AS tenant, t.session_id AS session_id, t.turn_id AS turn_id, t.ordinal AS ordinal,
       t.request_model AS request_model, t.response_id AS response_id, t.started_ns AS started_ns,
       s.ux_kind AS ux_kind, s.position AS position, s.ux_reasoning_summary AS ux_reasoning_summary
FROM (SELECT * FROM evidence.turns FINAL) AS t
LEFT JOIN (SELECT * FROM ux.summaries FINAL) AS s
    ON s.tenant = t.tenant AND s.session_id = t.session_id AND s.turn_id = t.turn_id;
