"""Large and hostile bodies: small ones go on being answered, and memory stays bounded."""

import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import httpx
import pytest
from tests.intake.conftest import Served
from tests.intake.samples import (
    SPAN,
    TRACE,
    attribute,
    field,
    json_request,
    json_span,
    request,
    span,
    string,
)

from facta.intake import json, protobuf
from facta.intake.errors import DecodeFailed
from facta.intake.limits import Limits

MEBIBYTE = 1 << 20
BODY = 64 * MEBIBYTE
PROTOBUF, JSON = "application/x-protobuf", "application/json"


def typical() -> bytes:
    attributes = b"".join(attribute(b"key%d" % at, string(b"v" * 60)) for at in range(30))
    body = request(span(attributes, own=at.to_bytes(8, "big")) for at in range(1, 1001))
    return body * (BODY // len(body))


def typical_json() -> bytes:
    pairs = ",".join(
        f'{{"key":"k{at}","value":{{"stringValue":"{"v" * 60}"}}}}' for at in range(30)
    )
    text = json_span(f"[{pairs}]")
    return json_request([text] * (BODY // (len(text) + 1) - 1))


@pytest.mark.parametrize(("media_type", "make"), [(PROTOBUF, typical), (JSON, typical_json)])
def test_a_body_of_64_mib_delays_small_ones_by_less_than_a_second(
    server: Served, media_type: str, make: Callable[[], bytes]
) -> None:
    body, small = make(), request([span()])
    answers: list[httpx.Response] = []
    kept: list[int] = []
    server.recorder.before = lambda batch: kept.append(len(batch.records))
    posting = threading.Thread(
        target=lambda: answers.append(server.post("/v1/traces", body, content_type=media_type))
    )
    delays = []
    with httpx.Client(base_url=server.url, timeout=60) as client:
        posting.start()
        while posting.is_alive():
            begin = time.perf_counter()
            answer = client.post("/v1/traces", content=small, headers={"content-type": PROTOBUF})
            delays.append(time.perf_counter() - begin)
            assert answer.status_code == 200
            server.recorder.batches.clear()
    assert answers[0].status_code == 200
    assert sum(kept) > 20_000
    assert max(kept) <= 1000
    assert len(delays) > 5
    assert max(delays) < 1.0, sorted(delays)[-5:]


def one_span(content: bytes) -> bytes:
    return request([span(content)])


EMPTIES = 20 * MEBIBYTE
HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "empty spans": (
        PROTOBUF,
        lambda: request([b""] * 2) + field(1, field(2, b"\x12\x00" * EMPTIES)),
    ),
    "empty attributes": (PROTOBUF, lambda: one_span(b"\x4a\x00" * EMPTIES)),
    "empty events": (PROTOBUF, lambda: one_span(b"\x5a\x00" * EMPTIES)),
    "unknown fields": (PROTOBUF, lambda: b"\x78\x00" * EMPTIES),
    "one list": (PROTOBUF, lambda: one_span(attribute(b"k", field(5, b"\x0a\x00" * EMPTIES)))),
    "broken attributes": (
        PROTOBUF,
        lambda: request([span(b"\x4a\x02\x0a\x05" * 4000)] * (BODY // 16_100)),
    ),
    "groups": (PROTOBUF, lambda: b"\x0b" * BODY),
    "json lists": (JSON, lambda: b"[" * BODY),
    "json empty spans": (JSON, lambda: json_request(["{}"] * (BODY // 4))),
    "json nested value": (
        JSON,
        lambda: json_request(
            [json_span('[{"key":"k","value":' + "[" * EMPTIES + "]" * EMPTIES + "}]")]
        ),
    ),
    "json nested maps": (JSON, lambda: json_request(['{"a":' * (BODY // 6)])),
    "json one list": (
        JSON,
        lambda: json_request(
            [
                json_span(
                    '[{"key":"k","value":{"arrayValue":{"values":[' + "{}," * EMPTIES + "{}]}}}]"
                )
            ]
        ),
    ),
    "json quotes": (
        JSON,
        lambda: json_request([json_span('[{"key":"' + '\\"' * EMPTIES + '"}]')]),
    ),
    "json backslashes": (
        JSON,
        lambda: json_request([json_span('[{"key":"' + "\\\\" * EMPTIES + '"}]')]),
    ),
}

PROBE = """
import resource, sys, time
from tests.intake.test_pressure import HOSTILE, read
media_type, make = HOSTILE[sys.argv[1]]
body = make()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begin = time.process_time()
read(media_type, body)
seconds = time.process_time() - begin
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, round(seconds, 1))
"""


def read(media_type: str, body: bytes) -> None:
    decode = protobuf.decode_slices if media_type == PROTOBUF else json.decode_slices
    try:
        for _ in decode(body, "traces", Limits()):
            pass
    except DecodeFailed:
        pass


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_of_64_mib_take_bounded_memory_and_time(name: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROBE, name],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    mebibytes, seconds = found.stdout.split()
    assert int(mebibytes) < 700, found.stdout
    assert float(seconds) < 60, found.stdout


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_of_any_size_are_answered(
    server: Served, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "BODY", 2 * MEBIBYTE)
    monkeypatch.setattr(sys.modules[__name__], "EMPTIES", MEBIBYTE // 2)
    media_type, make = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = server.post("/v1/traces", make(), content_type=media_type)
    assert answer.status_code in {200, 400}
    # These hold nothing that has to be refused at this size.
    fine = {"unknown fields", "one list", "json one list", "json backslashes", "json quotes"}
    if answer.status_code == 200 and name not in fine:
        assert len(answer.content) > 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 * 1024


def test_ids_before_the_rubbish_still_name_their_span() -> None:
    broken = span(b"\x4a\x02\x0a\x05" * 4000)
    batches = protobuf.decode_slices(request([broken] * 30), "traces", Limits(steps=50_000))
    records = [record for batch in batches for record in batch.records]
    assert len(records) == 30
    assert {(record.trace_id, record.span_id) for record in records} == {(TRACE.hex(), SPAN.hex())}
    assert all(record.refusals for record in records)
