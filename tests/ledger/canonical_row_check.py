"""Checks canonical-row-vectors.json with nothing but the standard library: an independent reading.

Usage: canonical_row_check.py VECTORS. Prints what differs; exits 1 if anything does.
"""

import hashlib
import hmac
import json
import sys
from pathlib import Path

TEXTS = [
    "tenant",
    "producer",
    "service",
    "observer",
    "kind",
    "convention",
    "scope_name",
    "scope_version",
    "schema_url",
    "trace_id",
    "span_id",
    "parent_span_id",
    "session",
]


def text(raw: bytes) -> bytes:
    return b"s" + len(raw).to_bytes(8, "big") + raw


def integer(value: str) -> bytes:
    return b"i" + int(value).to_bytes(8, "big", signed=True)


def statement(columns: dict[str, str]) -> bytes:
    texts = b"".join(text(columns[name].encode()) for name in TEXTS)
    times = integer(columns["start_ns"]) + integer(columns["end_ns"])
    return b"\x01" + texts + times + text(bytes.fromhex(columns["body"]))


def root(leaves: list[bytes]) -> bytes:
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256(b"").digest()
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + root(leaves[:half]) + root(leaves[half:])).digest()


def differences(path: Path) -> list[str]:
    file = json.loads(path.read_text())
    key, leaves, found = bytes.fromhex(file["tenant_key"]), [], []
    for case in file["cases"]:
        said = statement(case["columns"])
        row = said + integer(case["received_ns"])
        leaves.append(hashlib.sha256(b"\x00" + row).digest())
        mine = (row.hex(), hmac.digest(key, said, "sha256")[:16].hex(), leaves[-1].hex())
        found += [case["name"]] if mine != (case["row"], case["id"], case["leaf"]) else []
    roots = [root(leaves[:size]).hex() for size in range(len(leaves) + 1)]
    return found + ([] if roots == file["roots"] else ["roots"])


if __name__ == "__main__":
    different = differences(Path(sys.argv[1]))
    print("\n".join(different) or "all equal")  # noqa: T201 - a script
    raise SystemExit(bool(different))
