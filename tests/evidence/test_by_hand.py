"""Six runs read by hand: where each sealed value stood, and whose each call is.

Written down from the payloads (SHOWN: for each turn, by response id, what its request and its
response hold, as item.part counted from 0), then compared with what comes out.
"""

from collections import Counter

import pytest
from tests.evidence.ground_truth import SEALED
from tests.evidence.harness import Row, Tables, appends_of, tables_of

from facta.store.unfold import Chain

Place = tuple[str, str, str]

# Anthropic's message lists: user, assistant, user with the results, assistant, user.
# Only the redacted block is recorded, as the content of a reasoning part.
OTEL_ANTHROPIC = {
    "msg_01T10051": [],
    "msg_01T20053": [("response", "0.0", "an_t2_redacted")],
    "msg_01T30055": [("request", "3.0", "an_t2_redacted")],
}
OTEL_ANTHROPIC_CALLS = {
    "toolu_01T1n1XyZ": "msg_01T10051",
    "toolu_01T2n2XyZ": "msg_01T20053",
    "toolu_01T2n3XyZ": "msg_01T20053",
}

# Responses items: user, reasoning, call, output, reasoning, two calls, two outputs. Then the whole
# of it, with the third turn's reasoning and answer, goes to be compacted; what comes of that is
# user, compaction. The last request carries these two and a new user text, and its mock answers
# as the third did.
OPENINFERENCE_OPENAI = {
    "resp_0a1b2c1_0154": [("response", "0.0", "oa_t1")],
    "resp_0a1b2c2_0156": [("request", "1.0", "oa_t1"), ("response", "0.0", "oa_t2")],
    "resp_0a1b2c3_0158": [
        ("request", "1.0", "oa_t1"),
        ("request", "4.0", "oa_t2"),
        ("response", "0.0", "oa_t3"),
    ],
    "resp_cmp_160": [
        ("request", "1.0", "oa_t1"),
        ("request", "4.0", "oa_t2"),
        ("request", "9.0", "oa_t3"),
        ("response", "1.0", "oa_cmp"),
    ],
    "resp_0a1b2c3_0162": [("request", "1.0", "oa_cmp"), ("response", "0.0", "oa_t3")],
}
OPENINFERENCE_OPENAI_CALLS = {
    "call_T1n1XyZ": "resp_0a1b2c1_0154",
    "call_T2n2XyZ": "resp_0a1b2c2_0156",
    "call_T2n3XyZ": "resp_0a1b2c2_0156",
}

# Thinking, text, call; redacted, thinking without text, two calls; thinking, text.
LOGFIRE_ANTHROPIC = {
    "msg_01T10275": [("response", "0.0", "an_t1_sig")],
    "msg_01T20277": [
        ("request", "1.0", "an_t1_sig"),
        ("response", "0.0", "an_t2_redacted"),
        ("response", "0.1", "an_t2_sig"),
    ],
    "msg_01T30279": [
        ("request", "1.0", "an_t1_sig"),
        ("request", "3.0", "an_t2_redacted"),
        ("request", "3.1", "an_t2_sig"),
        ("response", "0.0", "an_t3_sig"),
    ],
}
LOGFIRE_ANTHROPIC_CALLS = {
    "toolu_01T1n1XyZ": "msg_01T10275",
    "toolu_01T2n2XyZ": "msg_01T20277",
    "toolu_01T2n3XyZ": "msg_01T20277",
}

# The list begins with the system text; nothing sealed is recorded of a response.
VERCEL_ANTHROPIC = {
    "msg_01T10377": [],
    "msg_01T20379": [("request", "2.0", "an_t1_sig")],
    "msg_01T30381": [
        ("request", "2.0", "an_t1_sig"),
        ("request", "4.0", "an_t2_redacted"),
        ("request", "4.1", "an_t2_sig"),
    ],
}
VERCEL_ANTHROPIC_CALLS = {
    "toolu_01T1n1XyZ": "msg_01T10377",
    "toolu_01T2n2XyZ": "msg_01T20379",
    "toolu_01T2n3XyZ": "msg_01T20379",
}

# Thought, call with the signature; call with it, call; thought, text with it. Each value stands
# there twice: in the raw body in the url alphabet, in the flattened attribute in the standard one.
OPENINFERENCE_GEMINI = {
    "gemresp1": [("response", "0.1", "ge_t1")] * 2,
    "gemresp2": [("request", "1.1", "ge_t1"), ("response", "0.0", "ge_t2")] * 2,
    "gemresp3": [
        ("request", "1.1", "ge_t1"),
        ("request", "3.0", "ge_t2"),
        ("response", "0.1", "ge_t3"),
    ]
    * 2,
}
OPENINFERENCE_GEMINI_CALLS = {
    "fcid_T1n1": "gemresp1",
    "fcid_T2n2": "gemresp2",
    "fcid_T2n3": "gemresp2",
}

# The request's list has a system text at 1; the host withholds the redacted block's data.
CLAUDE_CODE = {
    "msg_01T10426": [("response", "0.0", "an_t1_sig")],
    "msg_01T20428": [
        ("request", "2.0", "an_t1_sig"),
        ("response", "0.0", "withheld"),
        ("response", "0.1", "an_t2_sig"),
    ],
    "msg_01T30430": [
        ("request", "2.0", "an_t1_sig"),
        ("request", "4.0", "withheld"),
        ("request", "4.1", "an_t2_sig"),
        ("response", "0.0", "an_t3_sig"),
    ],
}
CLAUDE_CODE_CALLS = {
    "toolu_01T1n1XyZ": "msg_01T10426",
    "toolu_01T2n2XyZ": "msg_01T20428",
    "toolu_01T2n3XyZ": "msg_01T20428",
}

SHOWN: dict[str, tuple[dict[str, list[Place]], dict[str, str]]] = {
    "otel-anthropic-create": (OTEL_ANTHROPIC, OTEL_ANTHROPIC_CALLS),
    "openinference-openai-responses": (OPENINFERENCE_OPENAI, OPENINFERENCE_OPENAI_CALLS),
    "logfire-anthropic": (LOGFIRE_ANTHROPIC, LOGFIRE_ANTHROPIC_CALLS),
    "vercel-ai6-anthropic": (VERCEL_ANTHROPIC, VERCEL_ANTHROPIC_CALLS),
    "openinference-gemini": (OPENINFERENCE_GEMINI, OPENINFERENCE_GEMINI_CALLS),
    "claude-code": (CLAUDE_CODE, CLAUDE_CODE_CALLS),
}
_NAMES = {facts["sha256_of_decoded_bytes"]: name for name, facts in SEALED.items()}


@pytest.fixture(scope="module", params=sorted(SHOWN))
def run(request: pytest.FixtureRequest) -> tuple[str, Tables]:
    return request.param, tables_of(appends_of(request.param))


def _turns(tables: Tables) -> list[Row]:
    return sorted(tables["evidence.turns"], key=lambda turn: turn["ordinal"])


def _name(row: Row) -> str:
    return _NAMES[row["sha256_decoded"]] if row["state"] == "whole" else row["state"]


def test_the_turns_are_these_in_this_order(run: tuple[str, Tables]) -> None:
    name, tables = run
    assert [turn["response_id"] for turn in _turns(tables)] == list(SHOWN[name][0])
    assert [turn["ordinal"] for turn in _turns(tables)] == list(range(len(SHOWN[name][0])))


def test_each_sighting_is_where_it_was(run: tuple[str, Tables]) -> None:
    name, tables = run
    chain = Chain.of(_turns(tables), tables["evidence.sightings"])
    shown = {
        turn["response_id"]: Counter(
            (row["direction"], row["position"], _name(row))
            for row in chain.sightings(turn["turn_id"])
        )
        for turn in _turns(tables)
    }
    assert shown == {turn: Counter(places) for turn, places in SHOWN[name][0].items()}
    assert set(chain.ids()) == set(chain.turns), "none belongs to no turn"


def test_each_call_is_of_its_turn(run: tuple[str, Tables]) -> None:
    name, tables = run
    turns = {turn["turn_id"]: turn["response_id"] for turn in _turns(tables)}
    calls = [(call["call_id"], turns[call["turn_id"]]) for call in tables["evidence.tool_calls"]]
    assert Counter(calls) == Counter(SHOWN[name][1].items())


def test_each_result_came_with_the_next_request(run: tuple[str, Tables]) -> None:
    """Or from the tool's own span, which needs no request."""
    name, tables = run
    following = dict(zip(SHOWN[name][0], [*list(SHOWN[name][0])[1:], ""], strict=True))
    turns = {turn["turn_id"]: turn["response_id"] for turn in _turns(tables)}
    for call in tables["evidence.tool_calls"]:
        if call["result_observer"] == "later_request":
            asked = turns[call["turn_id"]]
            assert turns[call["result_turn_id"]] == following[asked]
        else:
            assert call["result_observer"] == "tool_span"
