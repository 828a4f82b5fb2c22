"""Observations and appends made from a number alone, and what must hold of a ledger with them."""

import hashlib
from collections import Counter
from collections.abc import Iterable

from facta.ledger import Ledger, Row
from facta.model.observation import Append, Object, Observation, commit_of

TENANT = "acme"
PER_BATCH = 3


def observation(number: int, *, tenant: str = TENANT, body: bytes | None = None) -> Observation:
    return Observation(
        tenant=tenant,
        producer="shop",
        service="assistant",
        observer="tap",
        kind="turn",
        convention="genai",
        scope_name="scope",
        scope_version="1.0",
        schema_url="",
        trace_id=f"{number // 10:032x}",
        span_id=f"{number:016x}",
        parent_span_id="",
        session="session-1",
        start_ns=number,
        end_ns=number + 1,
        body=f'{{"number":{number}}}'.encode() if body is None else body,
    )


def text(key: bytes, content: bytes, kind: str = "text") -> Object:
    commit, salt, sha256 = commit_of(key, content)
    return Object(commit, kind, content, salt, sha256)  # type: ignore[arg-type]


def item(content: bytes) -> Object:
    return Object(hashlib.sha256(content).hexdigest(), "item", content)


def batch(number: int, key: bytes) -> Append:
    """Batch `number`: three observations of its own, a text of its own, one it shares, an item."""
    numbers = range(number * PER_BATCH, (number + 1) * PER_BATCH)
    shared = text(key, f"shared {number // 4} ".encode() * 40)
    own = text(key, f"own {number} ".encode() * 40, "deed")
    return Append([observation(n) for n in numbers], [shared, own, item(f"[{number}]".encode())])


def all_rows(ledger: Ledger) -> list[Row]:
    rows: list[Row] = []
    while more := ledger.rows(rows[-1].seq if rows else -1, 1_000):
        rows += more
    return rows


def failings(ledger: Ledger, acknowledged: Iterable[int], sent: Iterable[int]) -> list[str]:
    """What does not hold after any fault, given the batches that were acknowledged and sent."""
    rows = all_rows(ledger)
    key = ledger.tenant_key(TENANT)
    found = list(ledger.verify())
    found += [f"seq {row.seq} at place {n}" for n, row in enumerate(rows) if row.seq != n]
    if len(rows) != ledger.size:
        found.append(f"{len(rows)} rows but size {ledger.size}")
    counts = Counter(row.observation.start_ns for row in rows)
    found += [f"observation {n} is there {k} times" for n, k in counts.items() if k > 1]
    strange = {n // PER_BATCH for n in counts} - set(sent)
    found += [f"batch {n} was never sent" for n in sorted(strange)]
    for number in sorted(set(acknowledged)):
        append = batch(number, key)
        if not all(counts[obs.start_ns] for obs in append.observations):
            found.append(f"batch {number} was acknowledged and is gone")
        kept = ledger.objects([obj.commit for obj in append.objects], TENANT)
        if {obj.commit: obj for obj in append.objects} != kept:
            found.append(f"a content of batch {number} was acknowledged and is gone")
    return found
