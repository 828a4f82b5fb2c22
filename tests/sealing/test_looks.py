"""Sealed values with other looks than the recorded ones, in the places where providers put them."""

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from facta.model.records import Record
from facta.model.sealed import Sealed
from facta.sealing import classify, facts, seal

Make = Callable[..., Record]
Gone = Callable[[Record, str], None]


def sha(data: str | bytes) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


# kind, look, size, and the part of a message around the value ("@")
PARTS: list[tuple[str, str, int, dict[str, Any]]] = [
    ("openai.reasoning", "openai", 868, {"type": "reasoning", "encrypted_content": "@"}),
    ("openai.reasoning", "random", 17676, {"type": "reasoning", "encrypted_content": "@"}),
    ("openai.reasoning", "xai", 1731, {"type": "reasoning", "encrypted_content": "@"}),
    ("bedrock.reasoning", "mantle", 1200, {"type": "reasoning", "encrypted_content": "@"}),
    ("openai.compaction", "openai", 42360, {"type": "compaction", "encrypted_content": "@"}),
    ("openai.compaction", "random", 5260, {"type": "compaction", "encrypted_content": "@"}),
    ("tool_sealed", "random", 900, {"type": "web_search_result", "encrypted_content": "@"}),
    ("tool_sealed", "random", 140, {"type": "web_search_result_location", "encrypted_index": "@"}),
    ("anthropic.signature", "anthropic", 300, {"type": "thinking", "thinking": "", "signature": "@"}),
    ("anthropic.signature", "random", 10632, {"type": "thinking", "thinking": "x", "signature": "@"}),
    ("anthropic.signature", "random", 332, {"thinking": "x", "signature": "@"}),
    ("anthropic.redacted_thinking", "random", 976, {"type": "redacted_thinking", "data": "@"}),
    ("anthropic.redacted_thinking", "anthropic", 1020, {"type": "reasoning", "content": "@"}),
    ("bedrock.redacted", "random", 1328, {"reasoningContent": {"redactedContent": "@"}}),
    ("anthropic.signature", "random", 400, {"reasoningContent": {"reasoningText": {"text": "t", "signature": "@"}}}),
    ("gemini.thought_signature", "gemini", 72, {"functionCall": {"name": "f"}, "thoughtSignature": "@"}),
    ("gemini.thought_signature", "random", 4304, {"text": "", "thought_signature": "@"}),
    ("gemini.thought_signature", "gemini", 1064, {"type": "thinking", "signature": "@"}),
    ("gemini.thought_signature", "random", 640, {"type": "thought", "signature": "@"}),
    ("gemini.thought_signature", "random", 640, {"toolUse": {"name": "f", "reasoningSignature": "@"}}),
    ("gemini.thought_signature", "random", 640, {"tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": "{}"}, "extra_content": {"google": {"thought_signature": "@"}}}]}),
    ("openai.reasoning", "random", 868, {"type": "reasoning", "providerOptions": {"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "@"}}}),
    ("anthropic.signature", "random", 868, {"type": "reasoning", "providerOptions": {"anthropic": {"signature": "@"}}}),
    ("anthropic.redacted_thinking", "random", 868, {"type": "reasoning", "providerMetadata": {"anthropic": {"redactedData": "@"}}}),
    ("gemini.thought_signature", "random", 868, {"type": "tool-call", "providerOptions": {"google": {"thoughtSignature": "@"}}}),
    ("openai.reasoning", "random", 500, {"reasoning_details": [{"type": "reasoning.encrypted", "data": "@"}]}),
    ("xai.reasoning", "xai", 1731, {"reasoning_details": [{"type": "reasoning.encrypted", "format": "xai-responses-v1", "data": "@"}]}),
    ("anthropic.signature", "random", 500, {"reasoning_details": [{"type": "reasoning.text", "format": "anthropic-claude-v1", "text": "t", "signature": "@"}]}),
    ("gemini.thought_signature", "random", 500, {"provider_specific_fields": {"thought_signatures": ["@"]}}),
    ("gemini.thought_signature", "random", 500, {"additional_kwargs": {"__gemini_function_call_thought_signatures__": {"call_1": "@"}}}),
    ("gemini.thought_signature", "random", 500, {"type": "function_call", "id": "c", "arguments": {}, "signature": "@"}),
    ("unknown", "random", 500, {"type": "tool_call", "id": "c", "extras": {"signature": "@"}}),
    ("unknown", "random", 500, {"type": "reasoning", "content": "@"}),
    ("unknown", "random", 1100, {"type": "text", "content": "@"}),
]  # fmt: skip


def _ids() -> list[str]:
    return [f"{kind}-{look}-{size}-{at}" for at, (kind, look, size, _) in enumerate(PARTS)]


def _filled(part: Any, value: str) -> Any:
    return json.loads(json.dumps(part).replace("@", value))


@pytest.mark.parametrize("form", ["json", "native", "json in json", "repr"])
@pytest.mark.parametrize(("kind", "look", "size", "part"), PARTS, ids=_ids())
def test_a_value_in_its_place_is_sealed_whole(
    blobs: Any,
    span: Make,
    assert_gone: Gone,
    form: str,
    kind: str,
    look: str,
    size: int,
    part: Any,
) -> None:
    value = getattr(blobs, look)(size, f"{kind}{size}")
    messages = [{"role": "assistant", "parts": [_filled(part, value)]}]
    shown: Any = messages
    if form == "json":
        shown = json.dumps(messages)
    elif form == "json in json":
        shown = json.dumps([{"role": "assistant", "content": json.dumps(messages)}])
    elif form == "repr":
        shown = repr(messages)
    record = seal(span(("gen_ai.output.messages", shown)))
    assert_gone(record, value)
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.state, sealed.size) == (kind, "whole", len(value))
    assert sealed.sha256 == sha(value)
    body = value.removeprefix("rsn_").translate(str.maketrans("-_", "+/"))
    whole = len(body.rstrip("=")) % 4 != 1
    decoded = base64.b64decode(body + "=" * (-len(body) % 4)) if whole else None
    assert sealed.sha256_decoded == (sha(decoded) if decoded is not None else "")


FLATTENED = [
    ("message.contents.0.message_content.encrypted_content", "openai.reasoning", "reasoning"),
    ("message.contents.0.message_content.signature", "anthropic.signature", "reasoning"),
    ("message.contents.0.message_content.data", "anthropic.redacted_thinking", "reasoning"),
    ("message.tool_calls.0.tool_call.reasoning_signature", "gemini.thought_signature", ""),
    ("message.tool_calls.0.tool_call.signature", "gemini.thought_signature", ""),
]


@pytest.mark.parametrize(("tail", "kind", "type_"), FLATTENED)
def test_a_flattened_attribute_is_a_place(
    blobs: Any, span: Make, assert_gone: Gone, tail: str, kind: str, type_: str
) -> None:
    value, key = blobs.random(700), f"llm.input_messages.2.{tail}"
    record = seal(span((f"{key.rpartition('.')[0]}.type", type_), (key, value)))
    assert_gone(record, value)
    assert [(s.kind, s.size) for s in record.marks.sealed] == [(kind, 700)]


def test_the_vendor_in_the_telemetry_makes_a_kind_narrower(blobs: Any, span: Make) -> None:
    part = [{"type": "reasoning", "encrypted_content": blobs.xai()}]
    record = seal(span(("gen_ai.provider.name", "x_ai"), ("output.value", json.dumps(part))))
    assert [s.kind for s in record.marks.sealed] == ["xai.reasoning"]


@pytest.mark.parametrize(
    "sentinel", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"]
)
@pytest.mark.parametrize("form", ["plain", "base64", "url"])
def test_a_sentinel_is_a_placeholder(span: Make, sentinel: str, form: str) -> None:
    raw = sentinel.encode()
    texts = {
        "plain": sentinel,
        "base64": base64.b64encode(raw).decode(),
        "url": base64.urlsafe_b64encode(raw).decode(),
    }
    text = texts[form]
    part = [{"functionCall": {"name": "f"}, "thoughtSignature": text}]
    record = seal(span(("gen_ai.input.messages", json.dumps(part))))
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.state, sealed.size) == ("placeholder", "whole", len(text))
    assert (sealed.sha256, sealed.sha256_decoded) == (sha(text), sha(raw))


@pytest.mark.parametrize(
    "handle", ["5f0c1f0e-7a1e-4c57-9a57-0d0b8f1f2a33", "r_5f0c1f0e-7a1e-4c57-9a57-0d0b8f1f2a33"]
)
def test_a_handle_is_no_ciphertext(span: Make, handle: str) -> None:
    part = [{"type": "reasoning", "encrypted_content": handle}]
    record = seal(span(("gen_ai.output.messages", json.dumps(part))))
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.size, sealed.sha256) == ("handle", len(handle), sha(handle))
    assert handle not in str(record.attributes)


REDACTED = [
    ("[REDACTED_SIGNATURE]", "redacted", 20),
    ("<REDACTED>", "withheld", 10),
    ("[REDACTED_ENCRYPTED_CONTENT len=1892 sha=f0869daf]", "redacted", 1892),
    ("[Filtered]", "redacted", 10),
    ("***", "redacted", 3),
]


@pytest.mark.parametrize(("literal", "state", "size"), REDACTED)
@pytest.mark.parametrize("place", ["encrypted_content", "signature", "data"])
def test_a_redacted_literal_has_no_hash(
    span: Make, literal: str, state: str, size: int, place: str
) -> None:
    types = {"encrypted_content": "reasoning", "signature": "thinking", "data": "redacted_thinking"}
    part = [{"type": types[place], place: literal}]
    (sealed,) = seal(span(("output.value", json.dumps(part)))).marks.sealed
    assert (sealed.state, sealed.size, sealed.sha256, sealed.sha256_decoded) == (
        state,
        size,
        "",
        "",
    )


READABLE = [
    (
        "encrypted_content",
        "reasoning",
        "First I look the order up, then I check whether the policy allows it.",
    ),
    (
        "encrypted_content",
        "reasoning",
        "先查询订单" * 12,
    ),
    ("signature", "thinking", "reasoning_content"),
    ("signature", "thinking", "rs_0a1b2c3d4e5f60718293a4b5c6d7e8f900112233445566778899"),
    ("textSignature", "text", '{"v":1,"id":"msg_1","phase":"final"}'),
    ("signature", "thinking", ""),
    ("thinking", "thinking", "<REDACTED>"),
]


@pytest.mark.parametrize(("key", "type_", "text"), READABLE)
def test_readable_text_in_a_sealed_place_stays(span: Make, key: str, type_: str, text: str) -> None:
    record = span(("output.value", json.dumps([{"type": type_, key: text}], ensure_ascii=False)))
    assert seal(record) == record
    assert seal(record).marks.sealed == []


def test_an_item_in_a_signature_slot_is_looked_into(
    blobs: Any, span: Make, assert_gone: Gone
) -> None:
    value = blobs.openai()
    item = json.dumps(
        {"id": "rs_1", "type": "reasoning", "encrypted_content": value, "summary": []}
    )
    part = [{"type": "thinking", "thinking": "t", "thinkingSignature": item}]
    record = seal(span(("output.value", json.dumps(part))))
    assert_gone(record, value)
    assert [(s.kind, s.size) for s in record.marks.sealed] == [("openai.reasoning", len(value))]
    assert "rs_1" in str(record.attributes)


def test_a_large_gemini_signature(blobs: Any, span: Make) -> None:
    value = blobs.gemini(2_909_844)
    record = seal(span(("output.value", json.dumps([{"text": "", "thoughtSignature": value}]))))
    (sealed,) = record.marks.sealed
    assert (sealed.kind, sealed.size, sealed.sha256) == (
        "gemini.thought_signature",
        len(value),
        sha(value),
    )
    assert sealed.sha256_decoded == sha(base64.b64decode(value))
    assert len(str(record.attributes)) < 200


def test_a_mangled_value_has_no_hash_of_bytes(span: Make, blobs: Any) -> None:
    value = blobs.random(800)[:797]
    part = [{"type": "thinking", "signature": value}]
    (sealed,) = seal(span(("output.value", json.dumps(part)))).marks.sealed
    assert (sealed.size, sealed.sha256, sealed.sha256_decoded) == (797, sha(value), "")


def test_facts_of_text_and_bytes() -> None:
    raw = bytes(range(250, 256)) * 20
    text = base64.b64encode(raw).decode()
    assert facts(text) == (len(text), sha(text), sha(raw), "standard")
    assert facts(text.translate(str.maketrans("+/", "-_")))[2:] == (sha(raw), "url")
    assert facts(raw) == (len(raw), sha(raw), sha(raw), "bytes")
    assert facts(text.rstrip("=")).sha256_decoded == sha(raw)
    assert facts("no base64 at all").sha256_decoded == ""
    assert facts(text[:-1] + "-").alphabet == ""


def test_classify_says_what_one_value_is(blobs: Any) -> None:
    by_place = classify(blobs.random(400), "gen_ai.output.messages.0.parts.0.thoughtSignature")
    assert isinstance(by_place, Sealed)
    assert (by_place.kind, by_place.sealed_by) == ("gemini.thought_signature", "place")
    by_structure = classify(blobs.openai())
    assert by_structure is not None
    assert (by_structure.kind, by_structure.sealed_by) == ("openai.reasoning", "structure")
    assert classify("Order 7 was refunded.") is None
    assert classify(hashlib.sha512(b"x").hexdigest(), "gen_ai.tool.call.result") is None


def test_the_same_value_elsewhere_in_the_record_is_known(
    blobs: Any, span: Make, assert_gone: Gone
) -> None:
    value = blobs.random(900)
    part = json.dumps([{"type": "reasoning", "encrypted_content": value}])
    record = seal(
        span(
            ("gen_ai.tool.call.arguments", json.dumps({"state": value})),
            ("note", f"sent {value[:24]}... to the provider"),
            ("output.value", part),
        )
    )
    assert_gone(record, value)
    seen = sorted((s.sealed_by, s.state) for s in record.marks.sealed)
    assert seen == [("known", "truncated"), ("known", "whole"), ("place", "whole")]
