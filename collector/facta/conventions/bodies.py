"""Requests and responses as providers define them: OpenAI Responses and Chat, Anthropic Messages, Gemini.

Instrumentations that keep the raw body (OpenInference, Claude Code, Gemini CLI and others) give the
most faithful reading there is: item ids, settings, compaction items, exact order.
"""

from facta.conventions.messages import read_items
from facta.conventions.parts import clean_id, truncated
from facta.conventions.values import count, dump, load, text_of
from facta.model.facts import Item, Turn
from facta.model.records import Value
from facta.model.sealed import Marks

Shape = dict[str, Value]
_USAGE = {
    "input_tokens": ("input_tokens", "prompt_tokens", "promptTokenCount", "prompt_token_count"),
    "output_tokens": (
        "output_tokens",
        "completion_tokens",
        "candidatesTokenCount",
        "candidates_token_count",
    ),
    "reasoning_tokens": (
        "thoughtsTokenCount",
        "thoughts_token_count",
        "reasoning_tokens",
        "thinking_tokens",
    ),
    "cached_tokens": (
        "cache_read_input_tokens",
        "cachedContentTokenCount",
        "cached_content_token_count",
        "cached_tokens",
    ),
}


def read_request(value: Value, turn: Turn, marks: Marks) -> bool:
    """Read a provider's request body into `turn`; False where it is none."""
    body, cut = load(value)
    if not isinstance(body, dict):
        return False
    for key in ("input", "messages", "contents"):
        if key in body:
            turn.input = read_items(_opened(body[key]), marks)
            break
    else:
        return False
    if cut:
        turn.flags += truncated("request", value, marks)
    turn.instructions = turn.instructions or _instructions(body, marks)
    if body.get("tools"):
        turn.tools = turn.tools or marks.render(dump(body["tools"]))
    _settings(body, turn)
    return True


def _opened(value: Value) -> Value:
    opened, _ = load(value)
    return opened if isinstance(opened, list) else value


def _instructions(body: Shape, marks: Marks) -> str:
    for key in ("instructions", "system", "system_instruction", "systemInstruction"):
        value = body.get(key)
        if value:
            if isinstance(value, str):
                return marks.render(value)
            items = read_items(value, marks, "system")
            return "\n".join(part.text for item in items for part in item.parts if part.text)
    return ""


def _settings(body: Shape, turn: Turn) -> None:
    seen: Shape = {
        "request_model": body.get("model"),
        "store": body.get("store"),
        "background": body.get("background"),
        "include": body.get("include"),
        "previous_response_id": body.get("previous_response_id"),
        "conversation_id": body.get("conversation"),
    }
    reasoning = body.get("reasoning")
    if isinstance(reasoning, dict):
        seen |= {"effort": reasoning.get("effort"), "reasoning_context": reasoning.get("context")}
        seen["thinking"] = reasoning.get("summary")
    seen["effort"] = seen.get("effort") or body.get("reasoning_effort")
    for key in ("thinking", "thinking_config", "thinkingConfig"):
        if isinstance(body.get(key), dict):
            seen["thinking"] = dump(body[key])
    for column, value in seen.items():
        if value is not None and value != "":
            kept = value if isinstance(value, (bool, list)) else text_of(value)
            turn.settings.setdefault(column, kept)


def read_response(value: Value, turn: Turn, marks: Marks) -> bool:
    """Read a provider's response body into `turn`; False where it is none."""
    body, cut = load(value)
    if isinstance(body, list):
        body = _streamed(body)
    if not isinstance(body, dict):
        return False
    output = _output(body, marks)
    if output is None:
        return False
    if cut:
        turn.flags += truncated("response", value, marks)
    turn.output = output
    turn.response_id = turn.response_id or clean_id(
        body.get("id") or body.get("response_id") or body.get("responseId"), marks
    )
    model = body.get("model") or body.get("model_version") or body.get("modelVersion")
    if model:
        turn.settings.setdefault("response_model", text_of(model))
    _read_usage(body, turn)
    _finish(body, turn)
    return True


def _streamed(chunks: list[Value]) -> Value:
    """Gemini's streamed chunks as one response: all parts in order, the rest as the last one has it."""
    whole: Shape = {}
    parts: list[Value] = []
    for chunk in chunks:
        candidates = chunk.get("candidates") if isinstance(chunk, dict) else None
        if not isinstance(chunk, dict) or not isinstance(candidates, list):
            return None
        whole |= chunk
        for candidate in candidates:
            content = candidate.get("content") if isinstance(candidate, dict) else None
            if isinstance(content, dict) and isinstance(content.get("parts"), list):
                parts += content["parts"]  # type: ignore[arg-type]
    return (
        {**whole, "candidates": [{"content": {"role": "model", "parts": parts}}]} if parts else None
    )


def _output(body: Shape, marks: Marks) -> list[Item] | None:
    if isinstance(body.get("output"), list):
        return read_items(body["output"], marks, "assistant")
    choices = body.get("choices")
    if isinstance(choices, list):
        messages = [c.get("message") or c.get("delta") for c in choices if isinstance(c, dict)]
        return read_items(messages, marks, "assistant")
    candidates = body.get("candidates")
    if isinstance(candidates, list):
        contents = [
            c.get("content") for c in candidates if isinstance(c, dict) and c.get("content")
        ]
        return read_items(contents, marks, "assistant")
    if isinstance(body.get("content"), list) and body.get("role") == "assistant":
        return read_items([{"role": "assistant", "content": body["content"]}], marks, "assistant")
    return None


def _read_usage(body: Shape, turn: Turn) -> None:
    usage = body.get("usage") or body.get("usage_metadata") or body.get("usageMetadata")
    if not isinstance(usage, dict):
        return
    flat: Shape = dict(usage)
    for inner in usage.values():
        if isinstance(inner, dict):
            flat = {**inner, **flat}
    for column, keys in _USAGE.items():
        for key in keys:
            amount = count(flat.get(key))
            if amount is not None:
                turn.usage.setdefault(column, amount)
                break


def _finish(body: Shape, turn: Turn) -> None:
    if turn.finish_reasons:
        return
    found = [body.get("stop_reason")]
    for key in ("choices", "candidates"):
        entries = body.get(key)
        if isinstance(entries, list):
            found += [
                e.get("finish_reason") or e.get("finishReason")
                for e in entries
                if isinstance(e, dict)
            ]
    turn.finish_reasons = [text_of(reason) for reason in found if reason]
