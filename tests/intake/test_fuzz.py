"""Mutated real bodies over real HTTP: an answer below 500 for each, and nothing of them in logs."""

import gzip
import logging
import random
import resource
import zlib
from collections.abc import Callable

import httpx
import pytest
from backports import zstd
from tests.intake.conftest import Served

pytestmark = pytest.mark.fuzz

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}
INSERTS = [
    b"\xff" * 11,
    b"\x00" * 64,
    b"\\ud800",
    b"[" * 2000,
    b'{"arrayValue":{"values":[' * 100,
    b"\x2a\x02\x0a\x00",
    b"NaN",
    b'"',
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\xed\xa0\x80",
]


def mutate(draw: random.Random, body: bytes, other: bytes) -> bytes:
    changed = bytearray(body)
    for _ in range(draw.choice([1, 1, 2, 5, 40])):
        at = draw.randrange(len(changed) + 1)
        what = draw.randrange(6)
        if what == 0 and at < len(changed):
            changed[at] = draw.randrange(256)
        elif what == 1:
            changed[at:at] = draw.choice(INSERTS)
        elif what == 2:
            del changed[at : at + draw.choice([1, 2, 10, 1000])]
        elif what == 3:
            del changed[at:]
        elif what == 4:
            start = draw.randrange(len(other) + 1)
            changed[at:at] = other[start : start + draw.randrange(2000)]
        elif at < len(changed):
            changed[at] ^= 1 << draw.randrange(8)
    return bytes(changed)


def bodies(
    payloads: dict[str, bytes], json_payloads: dict[str, bytes]
) -> list[tuple[str, str, bytes]]:
    """Path, media type and body of each seed; small ones, so that mutations hit structure."""
    kinds = [("application/x-protobuf", payloads), ("application/json", json_payloads)]
    return [
        ("/v1/logs" if "/logs" in name else "/v1/traces", media_type, body)
        for media_type, found in kinds
        for name, body in found.items()
        if len(body) < 60_000
    ]


def test_no_body_is_a_server_error(
    server: Served,
    payloads: dict[str, bytes],
    json_payloads: dict[str, bytes],
    fuzz_cases: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    draw = random.Random(20_001)
    seeds = bodies(payloads, json_payloads)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen: dict[int, int] = {}
    records = 0
    # Every other case is JSON, though most of the real payloads are not.
    by_type = [[seed for seed in seeds if seed[1].endswith(kind)] for kind in ("protobuf", "json")]
    with caplog.at_level(logging.DEBUG), httpx.Client(base_url=server.url, timeout=30) as client:
        logging.getLogger("httpcore").setLevel(logging.WARNING)
        for case in range(fuzz_cases):
            path, media_type, body = draw.choice(by_type[case % 2])
            mutated = mutate(draw, body, draw.choice(seeds)[2])
            coding = draw.choice(["", "", "gzip", "deflate", "zstd"])
            packed = PACKERS[coding](mutated)
            if coding and draw.randrange(4) == 0:
                packed = mutate(draw, packed, mutated)
            headers = {"content-type": media_type, "content-encoding": coding}
            answer = client.post(path, content=packed, headers=headers)
            seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
            assert answer.status_code < 500, (case, answer.content)
            assert b"CANARY" not in answer.content, case
            records += len(server.recorder.records)
            server.recorder.batches.clear()
        logging.getLogger("httpcore").setLevel(logging.NOTSET)
    assert set(seen) <= {200, 400, 413}
    assert min(seen.get(200, 0), seen.get(400, 0)) > fuzz_cases // 50
    # Salvage is worth something: mutated bodies still yield records.
    assert records > fuzz_cases
    assert "CANARY" not in caplog.text
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 400 * 1024
