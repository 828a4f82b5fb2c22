"""No value of a payload in an answer or a log line, whatever goes wrong, at debug level."""

import base64
import gzip
import logging

import pytest
from tests.intake.conftest import Served
from tests.intake.samples import attribute, field, json_request, json_span, request, span, string

from facta.model.errors import Unavailable

CANARY = b"CANARY-7f3a91"
FORMS = (
    CANARY.decode(),
    CANARY.hex(),
    base64.b64encode(CANARY).decode()[:-2],
    base64.b64encode(b"x" + CANARY).decode()[2:-2],
)
PROTOBUF, JSON = "application/x-protobuf", "application/json"
ROTTEN = CANARY + b"\xff"

BODIES: dict[str, tuple[str, bytes]] = {
    "good": (PROTOBUF, request([span(attribute(CANARY, string(CANARY)))])),
    "bad value": (PROTOBUF, request([span(attribute(b"k", string(ROTTEN)))])),
    "bad key": (PROTOBUF, request([span(attribute(ROTTEN, string(CANARY)))])),
    "bad name": (PROTOBUF, request([span(field(5, ROTTEN))])),
    "bad ids": (PROTOBUF, request([span(own=CANARY)])),
    "bad resource": (PROTOBUF, request([span()], field(1, field(1, ROTTEN)), field(1, ROTTEN))),
    "garbage": (PROTOBUF, CANARY),
    "cut": (PROTOBUF, request([span(attribute(b"k", string(CANARY * 9)))])[:-40]),
    "json": (JSON, json_request([json_span(f'[{{"key":"{CANARY.decode()}","value":5}}]')])),
    "json garbage": (JSON, CANARY),
    "json surrogate": (JSON, json_request([json_span(f'[{{"key":"{CANARY.decode()}\\ud800"}}]')])),
    "json ids": (JSON, json_request([json_span(span_id=CANARY.decode())])),
    "json cut": (JSON, json_request([json_span(more=f',"name":"{CANARY.decode()}')])),
    "json enum": (JSON, json_request([json_span(more=f',"kind":"{CANARY.decode()}"')])),
}
ERRORS = [None, Unavailable(1), ValueError(CANARY), KeyError(CANARY.decode())]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("name", BODIES)
def test_no_value_is_told(
    server: Served,
    name: str,
    error: Exception | None,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    media_type, body = BODIES[name]
    server.recorder.error = error
    said = []
    with caplog.at_level(logging.DEBUG):
        for path in ("/v1/traces", "/v1/logs", "/v1/metrics"):
            for coding in ("", "gzip"):
                packed = gzip.compress(body) if coding else body
                headers = {"content_type": media_type, "content_encoding": coding}
                answer = server.post(path, packed, **headers)
                said += [answer.text, str(answer.headers)]
        odd = {"content_type": CANARY.decode(), "content_encoding": CANARY.decode()}
        said.append(server.post("/v1/traces", body, **odd).text)
    # httpx is the test's own client; it logs what it sends.
    said += [record.getMessage() for record in caplog.records if not record.name.startswith("http")]
    said += [str(record.exc_info) for record in caplog.records if record.exc_info]
    said += capfd.readouterr()
    for form in FORMS:
        assert form not in "\n".join(said)


@pytest.mark.parametrize("name", BODIES)
def test_no_value_is_in_a_refusal(server: Served, name: str) -> None:
    media_type, body = BODIES[name]
    server.post("/v1/traces", body, content_type=media_type)
    refusals = [refusal for batch in server.recorder.batches for refusal in batch.refusals]
    refusals += [refusal for record in server.recorder.records for refusal in record.refusals]
    assert refusals or name == "good"
    assert CANARY.decode() not in repr(refusals)
