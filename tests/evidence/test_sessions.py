"""Which turns are one session: by what a model issued or a sender claims, never by equal prompts."""

import base64
import random

from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.evidence.harness import exact
from tests.evidence.making import (
    Message,
    Seen,
    call,
    chat,
    logged,
    resolved,
    result,
    says,
    sent,
    span,
    thought,
)

from facta.model.observation import Append

PROMPT = [says("user", "Solve the riddle.")]


def _sealed(seed: str, size: int = 1200) -> str:
    """A value with the look of a provider's ciphertext (Fernet's head)."""
    data = b"\x80\x00\x00\x00\x00\x69\x2c\x11\x22" + random.Random(seed).randbytes(size)
    return base64.urlsafe_b64encode(data).decode()


def _two_turns(response: str, call_id: str, answer: str) -> list[Span]:
    asks = says("assistant", call(call_id, {"n": 1}))
    told = [*PROMPT, asks, says("tool", result(call_id, "found"))]
    done = [says("assistant", answer)]
    return [
        chat("a", PROMPT, [asks], trace=f"{response}1", response_id=f"{response}1", at=0),
        chat("b", told, done, trace=f"{response}2", response_id=f"{response}2", at=2),
    ]


def test_two_services_that_both_say_call_0_stay_apart() -> None:
    seen = resolved(
        sent(*_two_turns("r", "call_0", "yes"), service="one"),
        sent(*_two_turns("r", "call_0", "yes"), service="other"),
    )
    assert len(seen.rows("sessions")) == 2
    assert {s["service"] for s in seen.rows("sessions")} == {"one", "other"}
    assert [len(turns) for turns in seen.sessions.values()] == [2, 2]
    assert len(seen.rows("tool_calls")) == 2


def test_a_counter_links_no_two_conversations() -> None:
    """Only one of them shows who asked for its call_0; the other's is another call."""
    asks = says("assistant", call("call_0", {"n": 1}))
    other = [says("user", "Else."), says("assistant", call("call_0", {"n": 2}))]
    other.append(says("tool", result("call_0", "found")))
    seen = resolved(
        sent(chat("a", PROMPT, [asks], trace="1", response_id="r1")),
        sent(chat("b", other, [says("assistant", "x")], trace="2", response_id="r2", at=3)),
    )
    assert seen.grouped() == [["r1"], ["r2"]]
    told = sorted((c["arguments"], c["result"]) for c in seen.rows("tool_calls"))
    assert told == [('{"n":1}', None), ('{"n":2}', "found")]


def test_two_services_that_say_the_same_drawn_id_stay_apart() -> None:
    """A proxy's telemetry beside the agent's, say: one call, two services, no link between them."""
    drawn = "call_9sKq2LmZ0aBcDeFgHiJk"
    seen = resolved(
        sent(*_two_turns("r", drawn, "yes"), service="one"),
        sent(*_two_turns("r", drawn, "yes"), service="other"),
    )
    assert sorted((s["service"], s["turns"]) for s in seen.rows("sessions")) == [
        ("one", 2),
        ("other", 2),
    ]


def _reused(turns: int) -> list[Span]:
    """One session in which every turn asks for a call_0."""
    history = list(PROMPT)
    out: list[Span] = []
    for n in range(turns):
        asks = says("assistant", call("call_0", {"page": n}))
        out.append(chat(f"m{n}", list(history), [asks], trace=f"t{n}", response_id=f"r{n}", at=n))
        history += [asks, says("tool", result("call_0", f"page {n}"))]
    out.append(
        chat("end", history, [says("assistant", "done")], trace="end", response_id="r9", at=turns)
    )
    return out


def test_an_id_reused_in_every_turn_is_a_call_each() -> None:
    seen = resolved(sent(*_reused(5)))
    assert seen.grouped() == [["r0", "r1", "r2", "r3", "r4", "r9"]]
    told = sorted((c["arguments"], c["result"]) for c in seen.rows("tool_calls"))
    assert told == [(f'{{"page":{n}}}', f"page {n}") for n in range(5)]
    turns = {t["turn_id"]: t["response_id"] for t in seen.rows("turns")}
    assert sorted(turns[c["turn_id"]] for c in seen.rows("tool_calls")) == [
        f"r{n}" for n in range(5)
    ]


def test_an_id_reused_with_equal_arguments_is_a_call_each() -> None:
    history = list(PROMPT)
    out: list[Span] = []
    for n in range(4):
        asks = says("assistant", call("call_0", {"poll": True}))
        out.append(chat(f"m{n}", list(history), [asks], trace="t", response_id=f"r{n}", at=n))
        history += [asks, says("tool", result("call_0", f"state {n}"))]
    out.append(chat("end", history, [says("assistant", "done")], trace="t", response_id="r9", at=9))
    seen = resolved(sent(*out))
    assert seen.grouped() == [["r0", "r1", "r2", "r3", "r9"]]
    turns = {t["turn_id"]: t["response_id"] for t in seen.rows("turns")}
    told = sorted((turns[c["turn_id"]], c["result"]) for c in seen.rows("tool_calls"))
    assert told == [(f"r{n}", f"state {n}") for n in range(4)]


def _follow(
    first: list[Message], response: list[Message], then: list[Message], **more: str
) -> list[Append]:
    """Two requests, each a trace of its own, the second sent first."""
    return [
        sent(
            chat("b", then, [says("assistant", "done")], trace="2", response_id="r2", at=5, **more)
        ),
        sent(chat("a", first, response, trace="1", response_id="r1", at=0)),
    ]


def test_linked_by_call_id() -> None:
    drawn = "call_9sKq2LmZ0aBcDeFgHiJk"
    asks = says("assistant", call(drawn, {"n": 1}))
    seen = resolved(*_follow(PROMPT, [asks], [says("tool", result(drawn, "x"))]))
    assert seen.grouped() == [["r1", "r2"]]
    assert seen.one("sessions")["basis"] == ["call_id"]
    assert seen.one("tool_calls")["result"] == "x"


def test_linked_by_the_answer_in_the_history() -> None:
    answer = says("assistant", "Which one do you mean?")
    seen = resolved(*_follow(PROMPT, [answer], [*PROMPT, answer, says("user", "the first")]))
    assert seen.grouped() == [["r1", "r2"]]
    assert seen.one("sessions")["basis"] == ["context"]


def test_not_linked_by_an_answer_to_another_prompt() -> None:
    answer = says("assistant", "Yes.")
    other = [says("user", "Is it so?"), answer, says("user", "Why?")]
    seen = resolved(*_follow(PROMPT, [answer], other))
    assert seen.grouped() == [["r1"], ["r2"]]


def test_linked_by_the_previous_response_id() -> None:
    follow = [says("user", "and then?")]
    seen = resolved(
        *_follow(
            PROMPT,
            [says("assistant", "a")],
            follow,
            gen_ai__request__previous_response__id="r1",
        )
    )
    assert seen.grouped() == [["r1", "r2"]]
    assert seen.one("sessions")["basis"] == ["response_id"]
    second = next(t for t in seen.rows("turns") if t["response_id"] == "r2")
    assert second["previous_response_id"] == "r1"
    assert second["parent_turn_id"]


def test_linked_by_a_sealed_value() -> None:
    value = _sealed("one")
    held = says("assistant", thought("", encrypted_content=value), "hm")
    compact = [says("user", "shorter"), says("assistant", thought("", encrypted_content=value))]
    seen = resolved(*_follow(PROMPT, [held], compact))
    assert seen.grouped() == [["r1", "r2"]]
    assert seen.one("sessions")["basis"] == ["sealed"]


def test_equal_prompts_and_nothing_else_link_nothing() -> None:
    """Not by prompts, not by system texts, not by tools, not by equal settings."""
    system = [says("system", "You are exact."), *PROMPT]
    seen = resolved(
        *(
            sent(
                chat(
                    "m",
                    system,
                    [says("assistant", f"answer {n}")],
                    trace=f"{n}",
                    response_id=f"r{n}",
                    at=n,
                    gen_ai__tool__definitions="[]",
                )
            )
            for n in range(6)
        )
    )
    assert seen.grouped() == [[f"r{n}"] for n in range(6)]


def _inherits() -> tuple[Append, Append, Append]:
    """An agent's span that claims a session, and two model spans below it in traces apart."""
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.conversation.id": "conv-1"}
    out = []
    for n, trace in enumerate("xy"):
        out.append(
            sent(
                chat(
                    "chat",
                    [says("user", f"question {n}")],
                    [says("assistant", f"answer {n}")],
                    trace=trace,
                    response_id=f"r{n}",
                    parent="step",
                    at=n,
                ),
                span("step", {}, trace=trace, parent="agent", at=n),
            )
        )
    agents = sent(*(span("agent", agent, trace=trace, at=0, seconds=9) for trace in "xy"))
    return out[0], out[1], agents


def test_a_claim_is_inherited_from_an_ancestor_that_arrives_later() -> None:
    first, second, agents = _inherits()
    before = resolved(first, second)
    assert before.grouped() == [["r0"], ["r1"]]
    seen = resolved(first, second, agents)
    assert seen.grouped() == [["r0", "r1"]]
    assert seen.one("sessions")["claims"] == ["conv-1"]
    assert exact(seen.tables) == exact(resolved(agents, second, first).tables)


def test_two_claims_joined_by_an_issued_item_redirect() -> None:
    drawn = "call_9sKq2LmZ0aBcDeFgHiJk"
    asks = says("assistant", call(drawn, {"n": 1}))
    follow = [*PROMPT, asks, says("tool", result(drawn, "x"))]

    def told(name: str, request: list[Message], response: list[Message], at: int) -> Append:
        return sent(
            chat(
                name,
                request,
                response,
                trace=name,
                response_id=name,
                at=at,
                gen_ai__conversation__id=f"claim of {name}",
            )
        )

    first = told("r1", PROMPT, [asks], 0)
    second = told("r2", follow, [says("assistant", "done")], 3)
    alone = [resolved(first).one("sessions"), resolved(second).one("sessions")]
    joined = resolved(first, second).one("sessions")
    assert joined["claims"] == ["claim of r1", "claim of r2"]
    assert joined["turns"] == 2
    for one in alone:
        assert one["session_id"] in {joined["session_id"], *joined["aliases"]}


def test_an_id_of_a_session_that_grew_redirects() -> None:
    """A session's first id is over its first turn; what arrives earlier in time renames it."""
    late = sent(*_reused(3)[1:])
    early = sent(_reused(3)[0])
    before = resolved(late).one("sessions")["session_id"]
    after = resolved(late, early).one("sessions")
    assert before != after["session_id"]
    assert before in after["aliases"]


def test_claims_are_of_one_service() -> None:
    def told(service: str) -> Append:
        return sent(
            chat(
                "m",
                PROMPT,
                [says("assistant", service)],
                trace=service,
                response_id=service,
                gen_ai__conversation__id="1",
            ),
            service=service,
        )

    assert resolved(told("one"), told("other")).grouped() == [["one"], ["other"]]


def test_one_trace_over_two_services_is_a_session_each() -> None:
    """An agent that calls another: both claim session 1 and both say call_0, in one trace."""

    def told(service: str) -> Append:
        asks = says("assistant", call("call_0", {"by": service}))
        done = [says("assistant", service)]
        history = [*PROMPT, asks, says("tool", result("call_0", service))]
        claim = "1"
        return sent(
            chat(
                f"{service} a",
                PROMPT,
                [asks],
                trace="t",
                response_id=f"{service}1",
                gen_ai__conversation__id=claim,
            ),
            chat(
                f"{service} b",
                history,
                done,
                trace="t",
                response_id=f"{service}2",
                at=2,
                gen_ai__conversation__id=claim,
            ),
            service=service,
        )

    seen = resolved(told("one"), told("other"))
    assert seen.grouped() == [["one1", "one2"], ["other1", "other2"]]
    made = {(c["arguments"], c["result"]) for c in seen.rows("tool_calls")}
    assert made == {('{"by":"one"}', "one"), ('{"by":"other"}', "other")}


def test_tool_events_without_turns_are_a_session_by_their_claim() -> None:
    from tests.evidence.making import event

    seen: Seen = resolved(
        logged(
            *(
                event(
                    "codex.tool_result",
                    {
                        "event.name": "codex.tool_result",
                        "conversation.id": "c1",
                        "call_id": f"call_{n}",
                        "tool_name": "exec",
                        "arguments": "{}",
                        "output": "ok",
                    },
                    at=n,
                )
                for n in range(2)
            )
        )
    )
    assert seen.one("sessions")["claims"] == ["c1"]
    assert seen.one("sessions")["calls"] == 2
