"""The cases that concern names, clocks, the engine and what may be written."""

import base64
import json
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.testclient import TestClient
from tests.evidence.chdb import facta, rows_of, send, settle
from tests.evidence.harness import IDENTITY, append_of
from tests.evidence.making import (
    CHAT,
    Seen,
    call,
    chat,
    event,
    logged,
    records_of,
    resolved,
    says,
    sent,
    span,
    thought,
    tool,
    traces,
)

from facta.api.app import create_app
from facta.app.service import Facta
from facta.model.identity import Identity
from facta.model.observation import Append
from facta.model.records import Batch

C1 = "call_8fKq3LmZ0aBcDeFgHiJk"
USER = says("user", "u")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facta]:
    with facta(tmp_path_factory.mktemp("scenarios")) as opened:
        yield opened


def test_t12_rows_that_the_engine_has_not_merged_yet_are_read_once(home: Facta) -> None:
    """Inserts of one row as two parts, as a projector that was killed leaves them behind."""
    records = records_of(
        traces([chat("m", [USER], [says("assistant", "a")], trace="12", response_id="r12")])
    )
    send(home, [Batch(records)], IDENTITY)
    settle(home)
    for table in ("evidence.sessions", "evidence.turns", "evidence.context", "evidence.content"):
        rows = home.store.query(f"SELECT * FROM {table} FINAL")
        for row in rows:
            for key in ("commit", "salt", "sha256"):
                if key in row:
                    row[key] = row[key].decode() if isinstance(row[key], bytes) else row[key]
        home.store.insert(table, rows)
        assert len(home.store.query(f"SELECT 1 FROM {table}")) > len(rows), "not merged"
    client = TestClient(create_app(home.store, home.status, None, home.settings, home.metrics))
    (turn,) = client.get("/api/v1/turns").json()["items"]
    (session,) = client.get("/api/v1/sessions").json()["items"]
    assert turn["session_id"] == session["session_id"]
    timeline = client.get(f"/api/v1/sessions/{session['session_id']}/timeline").json()
    assert sum(step.get("response_id") == "r12" for step in timeline["steps"]) == 1


def _turn_in(form: str) -> Seen:
    """One turn with prompt, call and answer, as a version of the conventions writes it."""
    base: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.response.id": "r1",
        "gen_ai.usage.input_tokens": 7,
    }
    old, new = {"gen_ai.system": "openai"}, {"gen_ai.provider.name": "openai"}
    asks = {"id": C1, "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}
    request, response = [says("user", "u")], [says("assistant", "hm", call(C1, {"a": 1}))]
    if form == "messages":
        told = base | new
        told |= {"gen_ai.input.messages": json.dumps(request)}
        told |= {"gen_ai.output.messages": json.dumps(response)}
        payload = traces(
            [span("m", told, trace="1", kind=Span.SPAN_KIND_CLIENT)], schema_url="https://x/1.38.0"
        )
        return resolved_payload(payload)
    if form == "indexed":
        told = base | old | {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "u"}
        told |= {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "hm"}
        told |= {f"gen_ai.completion.0.tool_calls.0.{k}": v for k, v in _flat(C1).items()}
        payload = traces(
            [span("m", told, trace="1", kind=Span.SPAN_KIND_CLIENT)], schema_url="https://x/1.27.0"
        )
        return resolved_payload(payload)
    if form == "span events":
        model = span("m", base | old, trace="1", kind=Span.SPAN_KIND_CLIENT)
        prompt, completion = model.events.add(), model.events.add()
        prompt.name, completion.name = "gen_ai.content.prompt", "gen_ai.content.completion"
        told_prompt = json.dumps([{"role": "user", "content": "u"}])
        told_answer = json.dumps([{"role": "assistant", "content": "hm", "tool_calls": [asks]}])
        for e, key, value in (
            (prompt, "gen_ai.prompt", told_prompt),
            (completion, "gen_ai.completion", told_answer),
        ):
            e.time_unix_nano = model.start_time_unix_nano + (e is completion)
            pair = e.attributes.add()
            pair.key, pair.value.string_value = key, value
        return resolved_payload(traces([model], schema_url="https://x/1.28.0"))
    model = span("m", base | old, trace="1", kind=Span.SPAN_KIND_CLIENT)
    user = event("gen_ai.user.message", old, trace="1", on="m", body={"content": "u"})
    choice = event(
        "gen_ai.choice",
        old,
        trace="1",
        on="m",
        at=1,
        body={"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": "hm", "tool_calls": [asks]}},
    )  # fmt: skip
    payload = traces([model], schema_url="https://x/1.30.0")
    return resolved(sent_payload(payload), logged(user, choice))


def _flat(call_id: str) -> dict[str, str]:
    return {"id": call_id, "name": "look", "arguments": '{"a":1}'}


def sent_payload(payload: bytes) -> Append:
    return append_of(records_of(payload))


def resolved_payload(payload: bytes) -> Seen:
    return resolved(sent_payload(payload))


@pytest.mark.parametrize(
    ("form", "version"),
    [
        ("messages", "1.38.0"),
        ("indexed", "1.27.0"),
        ("span events", "1.28.0"),
        ("log events", "1.30.0"),
    ],
)
def test_t18_old_and_new_names_come_to_one_row(form: str, version: str) -> None:
    seen = _turn_in(form)
    turn = seen.one("turns")
    assert (turn["provider"], turn["request_model"]) == ("openai", "gpt-5.4")
    assert (turn["response_id"], turn["input_tokens"]) == ("r1", 7)
    assert turn["schema_urls"] == [f"https://x/{version}"]
    assert turn["scopes"][-1] == "some.library 1.2.3"
    items = [
        (row["direction"], row["role"], [p.get("text") for p in json.loads(row["parts"])])
        for row in sorted(seen.rows("context"), key=lambda row: row["direction"])
    ]
    assert items == [
        ("request", "user", ["u"]),
        ("response", "assistant", ["hm", '{"a":1}']),
    ]
    made = seen.one("tool_calls")
    assert (made["call_id"], made["arguments"], made["tool"]) == (C1, '{"a":1}', "look")


def test_t18_two_versions_of_one_turn_are_one_turn() -> None:
    """A library that writes old and new names on one span, for its readers' sake."""
    told = CHAT | {
        "gen_ai.system": "openai",
        "gen_ai.provider.name": "openai",
        "gen_ai.response.id": "r1",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "u",
        "gen_ai.input.messages": json.dumps([USER]),
        "gen_ai.output.messages": json.dumps([says("assistant", "a")]),
        "gen_ai.completion.0.content": "a",
    }
    turn = resolved(sent(span("m", told, trace="1"))).one("turns")
    assert (turn["request_items"], turn["response_items"], turn["flags"]) == (1, 1, [])


@pytest.mark.parametrize("minutes", [-7, 7])
def test_t20_a_wrong_clock_does_not_turn_the_order_around(minutes: int) -> None:
    answer = says("assistant", "which?")
    history = [USER, answer, says("user", "that")]
    last = [*history, says("assistant", "fine"), says("user", "thanks")]
    seen = resolved(
        sent(
            chat("b", history, [last[3]], trace="2", response_id="r2", at=60 * minutes),
            chat("a", [USER], [answer], trace="1", response_id="r1"),
            chat("c", last, [says("assistant", ".")], trace="3", response_id="r3", at=1),
        )
    )
    assert seen.grouped() == [["r1", "r2", "r3"]]


def test_t20_an_end_before_its_start_is_taken() -> None:
    model = chat("m", [USER], [says("assistant", "a")], trace="1", response_id="r1", at=9)
    model.end_time_unix_nano = model.start_time_unix_nano - 5
    run = tool("t", "look", trace="1", id=C1, result="x")
    run.end_time_unix_nano = run.start_time_unix_nano - 1
    seen = resolved(sent(model, run))
    assert seen.one("turns")["response_id"] == "r1"
    assert seen.one("tool_calls")["duration_ns"] is None


def test_t20_the_time_of_receipt_is_kept(home: Facta) -> None:
    record = records_of(traces([chat("m", [USER], [], trace="20", response_id="r20")]))
    send(home, [Batch(record)], IDENTITY)
    settle(home)
    sql = "SELECT toUnixTimestamp64Nano(received_at) AS at, started_ns FROM evidence.observations FINAL"
    rows = home.store.query(sql)
    assert rows
    for row in rows:
        assert abs(row["at"] - row["started_ns"]) > 1_000_000_000
    received = {row.received_ns for row in home.ledger.rows(-1, 100)}
    assert {row["at"] for row in rows} <= received


def _sealed(seed: str, head: bytes, *, url: bool = False) -> str:
    data = head + random.Random(seed).randbytes(900)
    return (base64.urlsafe_b64encode(data) if url else base64.b64encode(data)).decode()


def test_t22_sealed_attributes_are_hashed_before_anything_is_written(
    home: Facta, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    values = {
        "signature": _sealed("s", b"\x12\xf0\x07\x0a\x5a"),
        "reasoning_signature": _sealed("r", b"\x0a\x24\x01\xd1\xed\x8a\x6b"),
        "extra": _sealed("e", b"\x80\x00\x00\x00\x00\x69\x2c\x11\x22", url=True),
    }
    place = "llm.output_messages.0.message"
    inference = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "claude-opus-4-8",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "u",
        f"{place}.role": "assistant",
        f"{place}.contents.0.message_content.type": "reasoning",
        f"{place}.contents.0.message_content.text": "a summary of what was thought of",
        f"{place}.contents.0.message_content.signature": values["signature"],
        f"{place}.tool_calls.0.tool_call.id": C1,
        f"{place}.tool_calls.0.tool_call.function.name": "look",
        f"{place}.tool_calls.0.tool_call.function.arguments": "{}",
        f"{place}.tool_calls.0.tool_call.reasoning_signature": values["reasoning_signature"],
    }
    output = [says("assistant", thought("", encrypted_content=values["extra"]), "hm")]
    payload = traces(
        [
            span("m", inference, trace="22"),
            chat("n", [USER], output, trace="22b", response_id="r22"),
        ]
    )
    send(home, [Batch(records_of(payload))], Identity("t22", "sender"))
    settle(home)
    tables = rows_of(home, "t22")
    shown = {(s["size"], s["state"]) for s in tables["evidence.sightings"]}
    assert shown == {(len(value), "whole") for value in values.values()}
    assert all(len(s["sha256"]) == 64 for s in tables["evidence.sightings"])
    assert [u["ux_reasoning_summary"] for u in tables["ux.summaries"]] == [
        "a summary of what was thought of"
    ]
    written = json.dumps(tables)
    data = home.settings.data
    kept = [file.read_bytes() for file in data.rglob("*") if file.is_file()]
    assert len(kept) > 10
    for value in values.values():
        for at in range(0, len(value) - 16, 16):
            piece = value[at : at + 16]
            assert piece not in written
            assert piece not in caplog.text
            assert not any(piece.encode() in data for data in kept)
