"""Test vectors of the canonical row: `python -m facta.ledger.vectors > FILE` writes them as JSON.

They bind the format: an implementation in any language that gives these bytes gives the same ids,
leaves and roots. See `schema/canonical-row.md`.
"""

import json
import sys
from dataclasses import asdict, replace
from typing import Any

from facta.ledger.canonical import encode_row, leaf_of, observation_id
from facta.ledger.merkle import Frontier
from facta.model.observation import Observation

TENANT_KEY = bytes(range(32))

_PLAIN = Observation(
    tenant="acme",
    producer="shop",
    service="assistant",
    observer="tap",
    kind="turn",
    convention="genai",
    scope_name="opentelemetry.instrumentation.example",
    scope_version="1.2.3",
    schema_url="https://opentelemetry.io/schemas/1.41.0",
    trace_id="0af7651916cd43dd8448eb211c80319c",
    span_id="b7ad6b7169203331",
    parent_span_id="00f067aa0ba902b7",
    session="session-1",
    start_ns=1_700_000_000_000_000_000,
    end_ns=1_700_000_000_123_456_789,
    body=b'{"model":"m-1"}',
)
_INT64 = 2**63

CASES: tuple[tuple[str, Observation, int], ...] = (
    ("plain", _PLAIN, 1_700_000_001_000_000_000),
    ("all empty", Observation("", "", "", "", "", "", "", "", "", "", "", "", "", 0, 0, b""), 0),
    ("NUL and trailing NUL", replace(_PLAIN, session="a\0b\0", body=b"\0\0"), 1),
    (
        "text beyond ASCII",
        replace(
            _PLAIN, service="caf\u00e9 \u65e5\u672c \U0001f600 \ue000", producer="\u202eabc\ufeff"
        ),
        2,
    ),
    ("body that is not UTF-8", replace(_PLAIN, body=bytes(range(256))), 3),
    (
        "largest and smallest integers",
        replace(_PLAIN, start_ns=-_INT64, end_ns=_INT64 - 1),
        _INT64 - 1,
    ),
    ("minus one", replace(_PLAIN, start_ns=-1, end_ns=256), -1),
    ("length with a trailing zero byte", replace(_PLAIN, body=b"x" * 256), 4),
    ("length of 4096", replace(_PLAIN, body=b"y" * 4_096), 5),
    ("columns that run together", replace(_PLAIN, tenant="ac", producer="meshop"), 6),
    ("the same, cut elsewhere", replace(_PLAIN, tenant="acme", producer="shop"), 6),
)


def _case(name: str, observation: Observation, received_ns: int) -> dict[str, Any]:
    row = encode_row(observation, received_ns)
    columns = asdict(observation)
    del columns["id"]
    columns["body"] = observation.body.hex()
    # As text: JSON numbers of other languages do not hold 64 bits.
    columns["start_ns"] = str(observation.start_ns)
    columns["end_ns"] = str(observation.end_ns)
    return {
        "name": name,
        "columns": columns,
        "received_ns": str(received_ns),
        "row": row.hex(),
        "id": observation_id(TENANT_KEY, observation),
        "leaf": leaf_of(row).hex(),
    }


def vectors() -> dict[str, Any]:
    """All vectors: the cases, and the root of the tree over the leaves of the first n of them."""
    tree = Frontier()
    roots = [tree.root().hex()]
    for _, observation, received_ns in CASES:
        tree.append(leaf_of(encode_row(observation, received_ns)))
        roots.append(tree.root().hex())
    return {
        "version": 1,
        "tenant_key": TENANT_KEY.hex(),
        "cases": [_case(*case) for case in CASES],
        "roots": roots,
    }


def text() -> str:
    """The vectors as the file holds them."""
    return json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
