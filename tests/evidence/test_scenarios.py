"""Cases from public bug reports, one sentence each, as real payloads (named after their ids)."""

import json
import re
from typing import Any

import pytest
from tests.evidence.harness import exact
from tests.evidence.making import (
    CHAT,
    Message,
    call,
    chat,
    event,
    logged,
    resolved,
    result,
    says,
    sent,
    span,
    tool,
)

C1 = "call_8fKq3LmZ0aBcDeFgHiJk"
USER = says("user", "u")


def _only(rows: list[dict[str, Any]]) -> dict[str, Any]:
    (row,) = rows
    return row


# V: what counts as evidence of a call


def test_v01_arguments_written_anew_are_the_same_value() -> None:
    first, again = '{"b":1, "a":"x"}', '{"a":"x","b":1}'
    history = [USER, says("assistant", call(C1, again)), says("tool", result(C1, "ok"))]
    seen = resolved(
        sent(chat("a", [USER], [says("assistant", call(C1, first))], trace="1", response_id="r1")),
        sent(chat("b", history, [says("assistant", "x")], trace="2", response_id="r2", at=3)),
    )
    made = seen.one("tool_calls")
    assert made["arguments"] == first, "as the response had it"
    assert made["flags"] == ["raw_bytes_changed"]
    assert made["conflict"] is False
    assert made["result"] == "ok"


def test_v01_another_value_is_told_from_another_form() -> None:
    def asks(value: str) -> Message:
        return says("assistant", call(C1, value))

    done = [says("assistant", "x")]
    seen = resolved(
        sent(
            chat("a", [USER], [asks('{"a": 1}')], trace="1", response_id="r1"),
            chat("b", [USER, asks('{"a": 1}')], done, trace="2", response_id="r2", at=3),
            chat("c", [asks('{"a": 2}')], done, trace="3", response_id="r3", at=6),
        )
    )
    made = seen.one("tool_calls")
    assert made["arguments"] == '{"a": 1}'
    assert "arguments_changed_later" in made["flags"]


@pytest.mark.parametrize("more", [{}, {"gen_ai__conversation__id": "c"}], ids=["asked", "claim"])
def test_v03_a_result_cleared_later_keeps_its_first_form(more: dict[str, str]) -> None:
    def history(content: str) -> list[Message]:
        return [USER, says("assistant", call(C1, {})), says("tool", result(C1, content))]

    cleared = "[Old tool result content cleared]"
    asks = [says("assistant", call(C1, {}))]
    done = [says("assistant", "1")]
    first = chat("a", history("big"), done, trace="1", response_id="r1", at=1, **more)
    second = chat("b", history(cleared), done, trace="2", response_id="r2", at=5, **more)
    asked = [sent(chat("q", [USER], asks, trace="q", response_id="r0"))] if not more else []
    seen = resolved(sent(second), sent(first), *asked)
    made = seen.one("tool_calls")
    assert made["result"] == "big"
    assert made["flags"] == ["result_changed_later"]
    assert made["conflict"] is False


def test_v05_a_call_that_the_user_refused_was_proposed_and_not_executed() -> None:
    refused: Message = {"type": "tool_result", "tool_use_id": C1, "is_error": True}
    refused["content"] = "The user doesn't want to proceed with this tool use."
    history = [USER, says("assistant", call(C1, {"rm": "/"})), says("user", refused)]
    seen = resolved(
        sent(chat("a", [USER], [history[1]], trace="1", response_id="r1")),
        sent(chat("b", history, [says("assistant", "ok")], trace="2", response_id="r2", at=5)),
    )
    made = seen.one("tool_calls")
    assert (made["status"], made["flags"]) == ("rejected", ["not_executed"])
    assert seen.rows("effects") == []


def test_v05_a_decision_of_the_host_says_so_as_well() -> None:
    seen = resolved(
        logged(
            event(
                "codex.tool_decision",
                {
                    "event.name": "codex.tool_decision",
                    "conversation.id": "c",
                    "call_id": C1,
                    "tool_name": "exec",
                    "decision": "denied",
                },
            )
        )
    )
    made = seen.one("tool_calls")
    assert (made["status"], made["result"]) == ("rejected", None)


# T: what telemetry brings


def _messages(characters: int) -> tuple[str, int]:
    """A JSON list of messages cut at so many characters, and how many are whole before the cut."""
    whole = [says("user" if n % 2 == 0 else "assistant", f"message {n}") for n in range(2000)]
    text = json.dumps(whole)[:characters]
    return text, text.count('"}]}')


@pytest.mark.parametrize("characters", [1028, 4095, 65536])
def test_t01_a_cut_list_keeps_its_row_its_length_and_its_leading_items(characters: int) -> None:
    text, whole = _messages(characters)
    assert len(text) == characters
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)
    told = CHAT | {"gen_ai.input.messages": text, "gen_ai.response.id": "r1"}
    seen = resolved(sent(span("m", told, trace="1")))
    turn = seen.one("turns")
    assert turn["flags"] == ["request_truncated", f"request_truncated_to:{characters}"]
    items = sorted(seen.rows("context"), key=lambda row: row["position"])
    shown = [json.loads(row["parts"])[0]["text"] for row in items[:whole]]
    assert shown == [f"message {n}" for n in range(whole)]
    assert len(items) in (whole, whole + 1), "what stands right before the cut is kept as it is"
    gap = f"turn 1: request_truncated_to:{characters}"
    assert seen.one("sessions")["gaps"] == [gap]


def test_t01_wherever_the_cut_is_the_items_before_it_are_whole() -> None:
    whole = [
        says("user", 'a "quote" é \\u00e9 \\'),
        says("assistant", call(C1, {"x": [1.5, None]})),
    ]
    text = json.dumps([*whole, says("tool", result(C1, "done"))])
    ends = [m.end() for m in re.finditer(r"\]\}(?=[,\]])", text)]
    for at in range(text.index("content"), len(text)):
        told = CHAT | {"gen_ai.input.messages": text[:at], "gen_ai.response.id": "r1"}
        seen = resolved(sent(span("m", told, trace="1")))
        turn = seen.one("turns")
        assert f"request_truncated_to:{at}" in turn["flags"], at
        assert turn["request_items"] >= sum(end <= at for end in ends), at


def test_t01_a_cut_history_accuses_nobody() -> None:
    """The next request's list is cut in the call, or in the result: nothing was altered."""
    arguments, answer = {"query": "orders of café 7", "limit": 10}, "a result of some length"
    asks = says("assistant", call(C1, arguments))
    history = json.dumps([USER, asks, says("tool", result(C1, answer)), USER])
    first = sent(chat("a", [USER], [asks], trace="1", response_id="r1"))
    whole = CHAT | {"gen_ai.input.messages": history, "gen_ai.response.id": "r3"}
    third = sent(span("c", whole, trace="3", at=8))
    for at in range(history.index("assistant"), len(history)):
        told = CHAT | {"gen_ai.input.messages": history[:at], "gen_ai.response.id": "r2"}
        cut = sent(span("b", told, trace="2", at=4))
        for seen in (resolved(first, cut), resolved(first, cut, third)):
            made = seen.one("tool_calls")
            assert json.loads(made["arguments"]) == arguments, at
            assert not {"arguments_changed_later", "result_changed_later"} & set(made["flags"]), at
            assert made["conflict"] is False
            assert [t["context_rewritten"] for t in seen.rows("turns")] == [False] * len(
                seen.rows("turns")
            ), at
        assert seen.one("tool_calls")["result"] == answer, at
        assert "result_may_be_truncated" not in seen.one("tool_calls")["flags"], at


def test_t04_an_array_of_json_texts_is_decoded() -> None:
    told = [says("user", "first"), says("assistant", call(C1, {"a": 1})), USER]
    attributes = CHAT | {
        "gen_ai.input.messages": [json.dumps(message) for message in told],
        "gen_ai.output.messages": [json.dumps(says("assistant", "answer"))],
        "gen_ai.response.id": "r1",
    }
    seen = resolved(sent(span("m", attributes, trace="1")))
    turn = seen.one("turns")
    assert (turn["request_items"], turn["response_items"], turn["flags"]) == (3, 1, [])
    assert seen.one("tool_calls")["arguments"] == '{"a":1}'


def test_t06_a_call_without_a_result_is_only_a_call() -> None:
    seen = resolved(
        sent(chat("m", [USER], [says("assistant", call(C1, {}))], trace="1", response_id="r1"))
    )
    made = seen.one("tool_calls")
    assert made["result"] is None
    assert made["status"] == "proposed", "neither executed nor failed"
    assert (made["error"], made["flags"]) == ("", ["result_not_observed"])
    assert seen.rows("effects") == []
    assert seen.one("sessions")["gaps"] == ["1 calls without an observed result"]


def test_t08_a_session_id_on_the_agent_span_alone_is_inherited() -> None:
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "conv"}
    children = [
        sent(
            chat(
                f"chat {n}",
                [says("user", f"q{n}")],
                [says("assistant", f"a{n}")],
                trace="one",
                parent="agent",
                response_id=f"r{n}",
                at=n,
            )
        )
        for n in range(3)
    ]
    parent = sent(span("agent", agent, trace="one", seconds=9))
    late, early = resolved(*children, parent), resolved(parent, *children)
    assert late.one("sessions")["claims"] == ["conv"]
    assert late.grouped() == [["r0", "r1", "r2"]]
    assert exact(late.tables) == exact(early.tables)
    assert len(resolved(*children).rows("sessions")) == 3


def test_t10_a_parent_that_ends_before_its_child_is_taken() -> None:
    seen = resolved(
        sent(
            span("agent", {"gen_ai.operation.name": "invoke_agent"}, trace="1", seconds=0.5),
            chat("m", [USER], [says("assistant", "a")], trace="1", parent="agent", response_id="r"),
            tool("t", "look", trace="1", parent="m", at=2, id=C1, result="x"),
        )
    )
    assert seen.one("turns")["response_id"] == "r"
    assert seen.one("tool_calls")["result"] == "x"
    assert len(seen.rows("sessions")) == 1
