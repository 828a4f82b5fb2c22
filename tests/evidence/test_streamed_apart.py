"""Logfire tells a streamed response in a span, and often a trace, of its own: one turn all the same."""

import json
from typing import Any

from facta.conventions import read
from facta.ledger.interning import Interning
from facta.model.identity import Identity
from facta.model.observation import Object
from facta.model.records import Record, Scope
from facta.resolve.cluster import Tables, resolve
from facta.sealing import seal

SCOPE = Scope(name="logfire.openai", version="5.4.0", resource=[("service.name", "s")])


def span(number: int, at: int, attributes: dict[str, Any], name: str = "Chat Completion") -> Record:
    common = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.4",
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
        ),
    }
    pairs: Any = [*common.items(), *attributes.items()]
    return Record(
        "span", SCOPE, f"{number:032x}", f"{number:016x}", "", name, 3, at, at, attributes=pairs
    )


def answer(number: int, at: int, text: str) -> Record:
    said = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])
    attributes = {"logfire.span_type": "log", "gen_ai.output.messages": said}
    return span(
        number, at, attributes, "streaming response from {request_data[model]!r} took 1.00s"
    )


def tables(records: list[Record]) -> Tables:
    interning = Interning(Identity("default", "local"), b"k" * 32)
    for record in records:
        interning.add(record, read(seal(record)))
    kept: dict[str, Object] = {o.commit: o for o in interning.objects.values()}
    return resolve(
        "default", interning.observations, lambda names: {n: kept[n] for n in names if n in kept}
    )


def test_request_and_streamed_response_are_one_turn() -> None:
    (turn,) = tables([span(1, 10, {}), answer(2, 20, "hello")])["evidence.turns"]
    assert (turn["request_items"], turn["response_items"], turn["flags"]) == (1, 1, [])


def test_samples_of_one_prompt_stay_apart_in_order() -> None:
    records = [span(1, 10, {}), answer(2, 20, "a"), span(3, 30, {}), answer(4, 40, "b")]
    found = tables(records)
    assert len(found["evidence.sessions"]) == 2
    assert [
        (t["started_ns"], t["ended_ns"])
        for t in sorted(found["evidence.turns"], key=lambda t: t["started_ns"])
    ] == [
        (10, 20),
        (30, 40),
    ]
