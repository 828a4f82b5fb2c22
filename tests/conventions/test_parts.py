"""One reader for the parts of messages: the shapes of providers and libraries, by table."""

from typing import Any

import pytest

from facta.conventions.messages import read_items
from facta.conventions.parts import clean_id, read_part, result_text
from facta.model.facts import Part
from facta.model.sealed import Marks, Sealed

ARGUMENTS = '{"order_id":"7"}'

CALLS: dict[str, dict[str, Any]] = {
    "otel": {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"order_id": "7"}},
    "chat": {"type": "function", "id": "c1", "function": {"name": "look", "arguments": ARGUMENTS}},
    "responses": {
        "type": "function_call",
        "id": "fc1",
        "call_id": "c1",
        "name": "look",
        "arguments": ARGUMENTS,
    },
    "anthropic": {"type": "tool_use", "id": "c1", "name": "look", "input": {"order_id": "7"}},
    "gemini": {"functionCall": {"id": "c1", "name": "look", "args": {"order_id": "7"}}},
    "gemini python": {"function_call": {"id": "c1", "name": "look", "args": {"order_id": "7"}}},
    "ai sdk": {
        "type": "tool-call",
        "toolCallId": "c1",
        "toolName": "look",
        "input": {"order_id": "7"},
    },
    "converse": {"toolUse": {"toolUseId": "c1", "name": "look", "input": {"order_id": "7"}}},
}


@pytest.mark.parametrize("shape", CALLS)
def test_a_call_is_read_from_every_shape(shape: str) -> None:
    assert read_part(CALLS[shape], "assistant", Marks()) == [
        Part("call", ARGUMENTS, call_id="c1", tool="look")
    ]


RESULTS: dict[str, tuple[dict[str, Any], str, bool | None]] = {
    "otel": ({"type": "tool_call_response", "id": "c1", "response": "ok 1"}, "", None),
    "pydantic-ai": (
        {"type": "tool_call_response", "id": "c1", "name": "look", "result": "ok 1"},
        "look",
        None,
    ),
    "responses": ({"type": "function_call_output", "call_id": "c1", "output": "ok 1"}, "", None),
    "anthropic": (
        {
            "type": "tool_result",
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "ok 1"}],
            "is_error": True,
        },
        "",
        True,
    ),
    "gemini": (
        {"functionResponse": {"id": "c1", "name": "look", "response": {"result": "ok 1"}}},
        "look",
        None,
    ),
    "ai sdk": (
        {
            "type": "tool-result",
            "toolCallId": "c1",
            "toolName": "look",
            "output": {"type": "text", "value": "ok 1"},
        },
        "look",
        None,
    ),
    "converse": (
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "ok 1"}], "status": "error"}},
        "",
        True,
    ),
}


@pytest.mark.parametrize("shape", RESULTS)
def test_a_result_is_read_from_every_shape(shape: str) -> None:
    given, tool, is_error = RESULTS[shape]
    assert read_part(given, "tool", Marks()) == [
        Part("result", "ok 1", call_id="c1", tool=tool, is_error=is_error)
    ]


REASONING: dict[str, tuple[dict[str, Any], list[str]]] = {
    "otel": ({"type": "reasoning", "content": "why"}, ["why"]),
    "pydantic-ai": ({"type": "thinking", "content": "why"}, ["why"]),
    "anthropic": ({"type": "thinking", "thinking": "why", "signature": ""}, ["why"]),
    "responses": (
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}, {"text": "b"}]},
        ["a", "b"],
    ),
    "traceloop": (
        {"type": "reasoning", "content": '[{"text": "a", "type": "summary_text"}, {"text": "b"}]'},
        ["a", "b"],
    ),
    "gemini": ({"text": "why", "thought": True}, ["why"]),
    "converse": ({"reasoningContent": {"reasoningText": {"text": "why"}}}, ["why"]),
    "empty summary": ({"type": "reasoning", "summary": []}, [""]),
}


@pytest.mark.parametrize("shape", REASONING)
def test_reasoning_is_read_from_every_shape_and_never_as_text(shape: str) -> None:
    given, texts = REASONING[shape]
    parts = read_part(given, "assistant", Marks())
    assert [(p.kind, p.text) for p in parts] == [("reasoning", text) for text in texts]


def test_a_sealed_value_in_a_readable_slot_is_no_text() -> None:
    marks = Marks()
    mark = marks.add(
        Sealed(
            "anthropic.redacted_thinking",
            "whole",
            4800,
            "a" * 64,
            "b" * 64,
            "standard",
            "structure",
            0.9,
        )
    )
    (part,) = read_part({"type": "reasoning", "content": mark}, "assistant", marks)
    assert (part.text, [s.size for s in part.sealed]) == ("", [4800])


def test_an_id_that_holds_a_signature_is_cut_to_the_id() -> None:
    marks = Marks()
    mark = marks.add(
        Sealed(
            "gemini.thought_signature", "whole", 640, "a" * 64, "b" * 64, "standard", "place", 1.0
        )
    )
    assert clean_id(f"call_1__thought__{mark}", marks) == "call_1"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}], "one"),
        ({"result": "r"}, "r"),
        ({"type": "text", "value": "v"}, "v"),
        ({"output": {"rows": 2}}, '{"rows":2}'),
        (
            [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            '[{"type":"text","text":"one"},{"type":"text","text":"two"}]',
        ),
        ({"result": "r", "code": 1}, '{"result":"r","code":1}'),
    ],
)
def test_a_result_is_taken_out_of_wrappings_that_hold_nothing_else(given: Any, text: str) -> None:
    assert result_text(given) == text


def test_every_entry_keeps_its_position() -> None:
    items = read_items([None, "hi", 7, {"role": "user", "content": "x"}], Marks())
    assert [[p.text for p in item.parts] for item in items] == [[], ["hi"], ["7"], ["x"]]


def test_one_call_told_twice_in_a_message_is_one_part() -> None:
    message: dict[str, Any] = {
        "role": "assistant",
        "contents": [
            {
                "message_content": {"type": "tool_use"},
                "tool_call": {"id": "c1", "function": {"name": "look", "arguments": ARGUMENTS}},
            }
        ],
        "tool_calls": [
            {"tool_call": {"id": "c1", "function": {"name": "look", "arguments": ARGUMENTS}}}
        ],
    }
    (item,) = read_items([{"message": message}], Marks())
    assert [(p.kind, p.call_id) for p in item.parts] == [("call", "c1")]
