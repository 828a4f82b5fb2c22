"""The layers and carriers that a sealed value can stand in, and what stays around it."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from facta.model.records import Event, Record, Scope
from facta.sealing import seal

Make = Callable[..., Record]
Gone = Callable[[Record, str | bytes], None]


def sha(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def _part(value: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": "t", "signature": value}


def _unmarked(text: str, value: str) -> str:
    """The text with the value back in the place of its only mark."""
    return re.sub(r"\ue000[0-9a-f]+:\d+\ue001", lambda _: value, text)


def _nested(value: str, layers: int) -> str:
    text = json.dumps([_part(value)])
    for _ in range(layers - 1):
        text = json.dumps({"text": text, "n": 10.50, "e": 'café \u2615 \\ " /'})
    return text


@pytest.mark.parametrize("layers", [1, 2, 3, 4])
def test_json_in_strings(blobs: Any, span: Make, assert_gone: Gone, layers: int) -> None:
    value = blobs.random(752)
    text = _nested(value, layers)
    record = seal(span(("output.value", text)))
    assert_gone(record, value)
    facts = [(s.kind, s.confidence, s.size, s.sha256) for s in record.marks.sealed]
    assert facts == [("anthropic.signature", 1.0, 752, sha(value))]
    same = _unmarked(str(record.attributes[0][1]), value) == text
    assert same


def test_json_in_json_in_a_list_of_strings_in_a_map(
    blobs: Any, span: Make, assert_gone: Gone
) -> None:
    value = blobs.random(752)
    body = {"messages": [_nested(value, 1), _nested(value, 2)], "n": None}
    record = seal(span(body=body))
    assert_gone(record, value)
    assert [s.sha256 for s in record.marks.sealed] == [sha(value)] * 2


@pytest.mark.parametrize(
    "escaped",
    [
        lambda value: value.replace("/", "\\/"),
        lambda value: value.replace("+", "\\u002b").replace("=", "\\u003d"),
        lambda value: value.replace("/", "\\u002F"),
    ],
    ids=["slash", "plus and equals", "slash as code"],
)
def test_escapes_inside_the_value(
    blobs: Any, span: Make, assert_gone: Gone, escaped: Callable[[str], str]
) -> None:
    value = blobs.random(752)
    text = '[{"type": "thinking", "signature": "' + escaped(value) + '", "x": "\\u00e9\\/"}]'
    record = seal(span(("output.value", text)))
    assert_gone(record, value)
    assert [(s.size, s.sha256) for s in record.marks.sealed] == [(752, sha(value))]
    same = _unmarked(str(record.attributes[0][1]), escaped(value)) == text
    assert same


def test_spacing_of_other_text_is_kept(blobs: Any, span: Make) -> None:
    value = blobs.openai()
    text = '{ "a" : 10.50,\n\t"reasoning":{"type":"reasoning" ,"encrypted_content":"%s"},"b":"\\u00e9" }'
    record = seal(span(("output.value", text % value)))
    same = _unmarked(str(record.attributes[0][1]), value) == text % value
    assert same
    assert len(record.marks.sealed) == 1


def test_a_python_repr(blobs: Any, span: Make, assert_gone: Gone) -> None:
    value = blobs.openai(900)
    items = [
        {
            "id": "rs_1",
            "summary": [{"text": 'it\'s "so"\n'}],
            "encrypted_content": value,
            "type": "reasoning",
            "n": None,
        }
    ]
    record = seal(span(("llm.None.output", repr(items))))
    assert_gone(record, value)
    assert [(s.kind, s.sha256) for s in record.marks.sealed] == [("openai.reasoning", sha(value))]
    same = _unmarked(str(record.attributes[0][1]), value) == repr(items)
    assert same


def test_a_repr_of_a_class(blobs: Any, span: Make, assert_gone: Gone) -> None:
    value = blobs.random(900)
    text = f"Message(id='m', content=[ThinkingBlock(signature='{value}', thinking='it', type='thinking')])"
    record = seal(span(("output.value", text)))
    assert_gone(record, value)
    assert [(s.kind, s.size) for s in record.marks.sealed] == [("anthropic.signature", 900)]


@pytest.mark.parametrize("where", ["json", "repr", "alone"])
def test_a_bytes_repr(blobs: Any, span: Make, assert_gone: Gone, where: str) -> None:
    raw = base64.b64decode(blobs.gemini(640))
    parts: Any = [
        {"function_call": {"name": "f"}, "thought_signature": raw if where == "repr" else repr(raw)}
    ]
    attribute = ("mlflow.spanOutputs", repr(parts) if where == "repr" else json.dumps(parts))
    if where == "alone":
        attribute = ("gen_ai.thought_signature", repr(raw))
    record = seal(span(attribute))
    assert_gone(record, raw)
    assert_gone(record, repr(raw)[2:-1])
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.state, sealed.alphabet) == (
        "gemini.thought_signature",
        "whole",
        "bytes",
    )
    assert (sealed.size, sealed.sha256, sealed.sha256_decoded) == (len(raw), sha(raw), sha(raw))


def test_raw_bytes(blobs: Any, span: Make, assert_gone: Gone) -> None:
    raw = base64.b64decode(blobs.random(1064))
    record = seal(span(body={"content": {"parts": [{"thought_signature": raw}]}}))
    assert_gone(record, raw)
    assert [(s.size, s.sha256_decoded, s.alphabet) for s in record.marks.sealed] == [
        (len(raw), sha(raw), "bytes")
    ]


def test_text_in_bytes(blobs: Any, span: Make, assert_gone: Gone) -> None:
    value = blobs.random(640)
    parts = json.dumps([{"thought_signature": value}]).encode()
    record = seal(span(body=parts))
    assert_gone(record, value)
    assert [(s.size, s.sha256) for s in record.marks.sealed] == [(640, sha(value))]


def test_joined_json(blobs: Any, span: Make, assert_gone: Gone) -> None:
    values = [blobs.random(640, str(n)) for n in range(3)]
    one, two, three = (json.dumps(_part(value)) for value in values)
    record = seal(span(("gen_ai.completion", f"{one}, {two}\n{three}")))
    for value in values:
        assert_gone(record, value)
    assert [s.sha256 for s in record.marks.sealed] == [sha(value) for value in values]


@pytest.mark.parametrize("tail", ["", "...", "…", "\n\n[TRUNCATED - Content exceeds 60KB limit]"])
@pytest.mark.parametrize("kept", [17, 100, 751])
def test_cut_json(blobs: Any, span: Make, assert_gone: Gone, kept: int, tail: str) -> None:
    whole, value = blobs.random(752, "w"), blobs.anthropic(752)
    text = json.dumps([_part(whole), _part(value)])
    text = text[: text.index(value) + kept] + tail
    record = seal(span(("gen_ai.output.messages", text)))
    assert_gone(record, whole)
    assert_gone(record, value[:kept])
    assert [(s.state, s.size, s.sha256) for s in record.marks.sealed] == [
        ("whole", 752, sha(whole)),
        ("truncated", kept, ""),
    ]
    assert str(record.attributes[0][1]).endswith(tail)


def test_cut_json_in_json(blobs: Any, span: Make, assert_gone: Gone) -> None:
    value = blobs.random(752)
    text = _nested(value, 3)
    text = text[: text.index(value) + 300]
    record = seal(span(("gen_ai.output.messages", text)))
    assert_gone(record, value)
    assert [(s.state, s.size) for s in record.marks.sealed] == [("truncated", 300)]


def test_a_cut_value_declares_more_than_there_is(blobs: Any, span: Make) -> None:
    record = seal(
        span(
            (
                "llm.output_messages.0.message.contents.0.message_content.signature",
                blobs.anthropic(752)[:400],
            )
        )
    )
    assert [(s.state, s.size, s.sha256) for s in record.marks.sealed] == [("truncated", 400, "")]


def _deltas(pieces: list[str], index: int) -> list[dict[str, Any]]:
    return [
        {
            "type": "content_block_delta",
            "index": index,
            "delta": {"type": "signature_delta", "signature": piece},
        }
        for piece in pieces
    ]


def _cut_up(value: str, size: int) -> list[str]:
    return [value[at : at + size] for at in range(0, len(value), size)]


@pytest.mark.parametrize("form", ["array", "lines", "events", "native"])
@pytest.mark.parametrize("size", [7, 40, 128])
def test_stream_deltas_are_one_value(
    blobs: Any, span: Make, assert_gone: Gone, form: str, size: int
) -> None:
    values = [blobs.random(752, "1"), blobs.random(400, "2")]
    events: list[dict[str, Any]] = []
    for index, value in enumerate(values):
        events += [
            {"type": "content_block_start", "index": index},
            *_deltas(_cut_up(value, size), index),
        ]
    if form == "events":
        record = span(
            events=[Event("chunk", 0, [("delta", json.dumps(event))]) for event in events]
        )
    elif form == "native":
        record = span(("gen_ai.output.messages", events))
    elif form == "lines":
        record = span(
            (
                "response_body",
                "".join(f"event: e\ndata: {json.dumps(event)}\n\n" for event in events),
            )
        )
    else:
        record = span(("output.value", json.dumps(events)))
    sealed = seal(record)
    assert [(s.state, s.size, s.sha256) for s in sealed.marks.sealed] == [
        ("whole", 752, sha(values[0])),
        ("whole", 400, sha(values[1])),
    ]
    for value in values:
        assert_gone(sealed, value)
    assert not any(
        piece in str(sealed.attributes)
        for value in values
        for piece in _cut_up(value, size)
        if size > 7
    )


def test_pieces_that_do_not_join_are_cut_values(blobs: Any, span: Make, assert_gone: Gone) -> None:
    value = blobs.random(752).rstrip("=")[:701]
    record = seal(span(("output.value", json.dumps(_deltas(_cut_up(value, 100), 0)))))
    assert_gone(record, value)
    assert [(s.state, s.size) for s in record.marks.sealed] == [("truncated", 100)] * 7 + [
        ("truncated", 1)
    ]


def test_bedrock_chunks_are_padded_each(blobs: Any, span: Make, assert_gone: Gone) -> None:
    raw = base64.b64decode(blobs.random(1328))
    chunks = [base64.b64encode(raw[:700]).decode(), base64.b64encode(raw[700:]).decode()]
    events = [
        {
            "contentBlockDelta": {
                "contentBlockIndex": 0,
                "delta": {"reasoningContent": {"redactedContent": chunk}},
            }
        }
        for chunk in chunks
    ]
    record = seal(span(("output.value", json.dumps(events))))
    for chunk in chunks:
        assert_gone(record, chunk)
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.state, sealed.sha256_decoded) == (
        "bedrock.redacted",
        "whole",
        sha(raw),
    )


@pytest.mark.parametrize("form", ["mark in id", "sentinel in id"])
def test_a_call_id_with_a_signature_is_cut_to_the_id(
    blobs: Any, span: Make, assert_gone: Gone, form: str
) -> None:
    value = blobs.gemini() if form == "mark in id" else "skip_thought_signature_validator"
    call = {
        "type": "function",
        "id": f"call_1__thought__{value}",
        "function": {"name": "f", "arguments": "{}"},
    }
    record = seal(
        span(
            ("gen_ai.input.messages", json.dumps([{"role": "assistant", "tool_calls": [call]}])),
            ("tool_call_id", call["id"]),
            body={"id": call["id"]},
        )
    )
    assert_gone(record, value)
    assert [(s.size, s.sha256) for s in record.marks.sealed] == [(len(value), sha(value))] * 3
    assert re.fullmatch("call_1\ue000[0-9a-f]+:\\d+\ue001", str(record.attributes[1][1]))


TRACEBACK = """Traceback (most recent call last):
  File "agent.py", line 7, in <module>
    client.messages.create(model="m")  # it's here
anthropic.BadRequestError: Error code: 400 - {'type': 'error', 'error': {'message': 'messages.1.content.0: Invalid `signature` in `thinking` block: %s'}}
"""


@pytest.mark.parametrize("look", ["openai", "anthropic", "gemini", "mantle"])
def test_a_traceback(blobs: Any, span: Make, assert_gone: Gone, look: str) -> None:
    value = getattr(blobs, look)(800)
    event = Event(
        "exception",
        0,
        [("exception.stacktrace", TRACEBACK % value), ("exception.message", f"bad {value}")],
    )
    record = seal(span(events=[event], status_message=f"rejected: {value}"))
    assert_gone(record, value)
    assert [(s.state, s.size, s.sha256) for s in record.marks.sealed] == [
        ("whole", 800, sha(value))
    ] * 3


@pytest.mark.parametrize(
    "words",
    [
        "Signature: ",
        "signature=",
        'with "encrypted_content": "',
        "Redacted Thinking: ",
        "thoughtSignature='",
    ],
)
def test_a_value_in_prose_is_known_by_the_words_before_it(
    blobs: Any, span: Make, assert_gone: Gone, words: str
) -> None:
    value = blobs.random(500)
    text = f"Thinking: I don't know.\n{words}{value}\nThe end."
    record = seal(span(("gen_ai.prompt", text)))
    assert_gone(record, value)
    assert [(s.size, s.sha256) for s in record.marks.sealed] == [(500, sha(value))]


@pytest.mark.parametrize(
    "place",
    [
        "name",
        "status_message",
        "event name",
        "attribute name",
        "key",
        "resource",
        "scope attribute",
        "scope name",
        "link",
    ],
)
def test_every_string_of_a_record(blobs: Any, span: Make, assert_gone: Gone, place: str) -> None:
    value = blobs.openai()
    whole = Scope(
        value if place == "scope name" else "s",
        resource=[("a", value)] if place == "resource" else [],
        attributes=[("a", value)] if place == "scope attribute" else [],
    )
    record = span(
        (value if place == "attribute name" else "k", {value: 1} if place == "key" else "v"), body=1
    )
    record.scope = whole
    record.name = value if place == "name" else "n"
    record.status_message = value if place == "status_message" else ""
    record.events = [Event(value if place == "event name" else "e", 0, [])]
    record.links = [(value if place == "link" else "0" * 32, "1" * 16)]
    sealed = seal(record)
    assert_gone(sealed, value)
    assert [s.sha256 for s in sealed.marks.sealed] == [sha(value)]
    assert sealed.scope.resource == [] or sealed.scope is not record.scope


@pytest.mark.parametrize("look", ["openai", "anthropic", "gemini", "mantle"])
@pytest.mark.parametrize(
    "attribute", ["gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "http.request.body"]
)
def test_structure_alone_is_enough_in_a_tools_data(
    blobs: Any, span: Make, assert_gone: Gone, attribute: str, look: str
) -> None:
    value = getattr(blobs, look)(800)
    record = seal(span((attribute, json.dumps({"output": value}))))
    assert_gone(record, value)
    assert [(s.sealed_by, s.size) for s in record.marks.sealed] == [("structure", len(value))]


def test_shape_alone_is_not(blobs: Any, span: Make) -> None:
    value = blobs.random(800)
    messages = [
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"x": value}}],
        },
        {"role": "tool", "content": value},
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "response": value}]},
        {"role": "user", "content": f"see {value}"},
    ]
    record = span(
        ("gen_ai.tool.call.result", value),
        ("http.x", value),
        ("gen_ai.input.messages", json.dumps(messages)),
    )
    assert seal(record) == record
