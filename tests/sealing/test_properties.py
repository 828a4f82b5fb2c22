"""What holds for any record: purity, exactness outside sealed values, no exception, no forged mark."""

import copy
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facta.model.records import Event, Record, Scope, Value
from facta.model.sealed import Marks
from facta.sealing import classify, facts, layers, seal

Make = Callable[..., Record]

KEYS = st.sampled_from(
    [
        "type",
        "signature",
        "data",
        "encrypted_content",
        "thinking",
        "content",
        "text",
        "role",
        "parts",
        "delta",
        "index",
        "arguments",
        "reasoning",
        "thoughtSignature",
        "redactedContent",
        "tool_call_id",
        "x",
    ]
)
WORDS = st.sampled_from(
    ["thinking", "reasoning", "redacted_thinking", "compaction", "tool", "signature_delta", "text"]
)
ODD = st.sampled_from(
    ['{"signature": "', "b'\\x12", "[{'a': b'", "\\", '\\"', "\ud800", "\x00", "data: {", "__thought__", "gAAAAAB", "\ue0000:0\ue001", "...", "<REDACTED>"]
)  # fmt: skip
BASE64 = st.text("ABCDEFGHabcdefgh0123456789+/-_=", min_size=30, max_size=150)
TEXTS = st.one_of(st.text(max_size=60), WORDS, ODD, BASE64)
MIXED = st.lists(TEXTS, max_size=6).map("".join)
SCALARS = st.one_of(
    MIXED, st.binary(max_size=120), st.integers(), st.floats(), st.booleans(), st.none()
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS | st.text(max_size=8), inner, max_size=5),
        inner.map(lambda value: json.dumps(value, default=repr)),
        inner.map(repr),
    ),
    max_leaves=20,
)
NAMES = st.sampled_from(
    ["gen_ai.output.messages", "output.value", "gen_ai.tool.call.result", "x", "llm.None.output",
     "llm.output_messages.0.message.contents.0.message_content.signature", "exception.message"]
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn) -> Record:
    pairs = st.lists(st.tuples(NAMES | MIXED, VALUES), max_size=4)
    events = [Event(draw(MIXED), 0, draw(pairs)) for _ in range(draw(st.integers(0, 2)))]
    scope = Scope(draw(MIXED), "1", resource=draw(pairs))
    return Record(
        "log",
        scope,
        "0" * 32,
        "",
        draw(MIXED),
        attributes=draw(pairs),
        body=draw(VALUES),
        events=events,
    )


def _comparable(record: Record) -> str:
    """All content but the nonce, which differs by record."""
    shown = [record.name, record.attributes, record.body, record.scope, record.events]
    return repr(shown).replace(record.marks.nonce, "nonce")


@given(records())
def test_any_record_is_sealed_without_an_error_and_is_left_as_it_was(record: Record) -> None:
    before = repr(record)
    seal(record)
    assert repr(record) == before


@given(records())
def test_sealing_twice_changes_nothing(record: Record) -> None:
    once = seal(record)
    assert _comparable(seal(once)) == _comparable(once)
    assert seal(once).marks.sealed == once.marks.sealed


@given(records())
def test_the_same_record_gives_the_same_facts_whatever_came_before(record: Record) -> None:
    again = copy.deepcopy(record)
    again.marks = Marks()
    first = seal(record)
    seal(Record("span", Scope(), "", "", attributes=[("gen_ai.prompt", "x" * 99)]))
    second = seal(again)
    assert first.marks.sealed == second.marks.sealed
    assert _comparable(first) == _comparable(second)


def _output(text: str) -> Record:
    return seal(Record("span", Scope(), "", "", attributes=[("gen_ai.output.messages", text)]))


@given(MIXED, MIXED, st.integers(44, 3000))
def test_text_around_a_value_is_exact(before: str, after: str, size: int) -> None:
    value = ("kQ7/aZ+3xB9m" * 250)[: size - size % 4]
    part = {"a": before, "type": "thinking", "signature": value, "b": after}
    text = json.dumps([part, before], ensure_ascii=False)
    record = _output(text)
    left = str(record.attributes[0][1])
    gone = value not in left
    assert gone
    without = json.dumps([part | {"signature": ""}, before])
    if not _output(without).marks.sealed:  # else more than the value is sealed
        low, _, high = text.partition(value)
        mark = f"\ue000{record.marks.nonce}:0\ue001"
        same = left == low + mark + high
        assert same


@given(
    st.lists(
        st.one_of(st.text(max_size=20), ODD, st.just("\\" * 9), st.just("x" * 40)), max_size=40
    )
)
def test_offsets_in_a_literal_are_those_of_its_characters(pieces: list[str]) -> None:
    """Checked against the plain definition: what stands before an offset decodes to its text."""
    for literal in (json.dumps("".join(pieces) * 30), repr("".join(pieces) * 30)):
        inner = literal[1:-1]
        text = layers.unescape(inner)
        wanted = sorted({0, len(text) // 3, len(text) // 2, len(text)})
        offsets = layers.raw_offsets(inner, wanted)
        assert [layers.unescape(inner[: offsets[at]]) == text[:at] for at in wanted] == [
            True
        ] * len(wanted)


@given(TEXTS)
def test_the_small_functions_take_any_text(text: str) -> None:
    assert facts(text).size == len(text)
    classify(text)
    classify(text, "gen_ai.output.messages.0.signature")


FORGED = [
    "\ue000000000000000:0\ue001",
    "\ue000:0\ue001",
    "[sealed openai.reasoning whole 1316 sha256:0123456789abcdef]",
]


@pytest.mark.parametrize("forged", FORGED)
def test_text_that_looks_like_a_mark_is_text(blobs: Any, span: Make, forged: str) -> None:
    part = json.dumps(
        [{"type": "reasoning", "encrypted_content": blobs.openai()}], ensure_ascii=False
    )
    record = seal(
        span(("gen_ai.prompt", f"see {forged}"), ("output.value", part), ("note", forged))
    )
    text = record.attributes[0][1]
    assert text == f"see {forged}"
    assert record.marks.find(str(text)) == []
    assert not record.marks.is_mark(str(record.attributes[2][1]))
    assert record.marks.render(str(text)) == text
    assert len(record.marks.sealed) == 1


def test_a_forged_mark_in_a_sealed_place_is_no_sealed_value(span: Make) -> None:
    part = [{"type": "reasoning", "encrypted_content": FORGED[0]}]
    assert seal(span(("output.value", json.dumps(part)))).marks.sealed == []


def test_marks_that_a_record_has_already_stay_valid(blobs: Any, span: Make) -> None:
    once = seal(span(("gen_ai.thought_signature", blobs.gemini())))
    once.attributes.append(("gen_ai.prompt.0.reasoning_signature", blobs.anthropic()))
    twice = seal(once)
    kinds = [twice.marks.find(str(value))[0].kind for _, value in twice.attributes]
    assert kinds == ["gemini.thought_signature", "anthropic.signature"]
    assert len(once.marks.sealed) == 1


def test_scopes_are_shared_where_nothing_in_them_is_sealed(blobs: Any, span: Make) -> None:
    record = span(("gen_ai.thought_signature", blobs.gemini()))
    assert seal(record).scope is record.scope


# ---- limits


def _deep(depth: int, value: Value) -> Value:
    for at in range(depth):
        value = [value] if at % 2 else {"a": value}
    return value


def test_deep_nesting(blobs: Any, span: Make) -> None:
    part: Value = {"type": "thinking", "signature": blobs.random(400)}
    native = seal(span(("gen_ai.output.messages", _deep(400, part))))
    assert len(native.marks.sealed) == 1
    text = "[" * 5000 + json.dumps(part) + "]" * 5000
    assert len(seal(span(("gen_ai.output.messages", text))).marks.sealed) == 1


SIZE = 2_000_000
HEAVY: list[tuple[str, Callable[[str], str]]] = [
    ("brackets", lambda value: "[" * SIZE + value),
    ("quotes", lambda value: '{"' * (SIZE // 2) + value),
    ("backslashes", lambda value: '{"signature": "' + "\\" * SIZE + value),
    ("apostrophes", lambda value: f"signature {value}" + "'a " * (SIZE // 3)),
    ("equals", lambda value: value + "=" * SIZE + value),
    ("one run", lambda value: value * (SIZE // len(value))),
    ("prose", lambda value: f'{{"signature": "{value}", "text": "' + "I don't know. " * (SIZE // 14) + '"}'),
    ("names", lambda value: "signature " * (SIZE // 10) + value),
    ("objects", lambda value: json.dumps([{"a": 1, "b": "c"}] * (SIZE // 19)) + value),
    ("escapes", lambda value: json.dumps(json.dumps({"t": 'a"\\\n' * (SIZE // 30), "type": "thinking", "signature": value}))),
    ("spaces", lambda value: "[" + " " * SIZE + value),
    ("redacted", lambda value: "redacted " * (SIZE // 9) + value),
]  # fmt: skip


@pytest.mark.parametrize(("name", "made"), HEAVY, ids=[name for name, _ in HEAVY])
@pytest.mark.parametrize("attribute", ["gen_ai.output.messages", "gen_ai.tool.call.result"])
def test_a_large_text_takes_less_than_its_share_of_time(
    blobs: Any, span: Make, attribute: str, name: str, made: Callable[[str], str]
) -> None:
    """CPU time: two cores that others use too make the clock a matter of luck."""
    record = span((attribute, made(blobs.openai())))
    start = time.process_time()
    seal(record)
    spent = time.process_time() - start
    assert spent < 3, f"{name} took {spent:.1f} s"
