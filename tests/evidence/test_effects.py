"""Twelve runs made with the OpenTelemetry SDK: exactly these effects, each known in this way."""

import json
from collections.abc import Callable

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from tests.evidence.agents import CALL, World

Effect = tuple[str, str, str, str, str]


def _http(world: World) -> None:
    with (
        world.tool(),
        world.agent.span(
            "POST",
            SpanKind.CLIENT,
            http__request__method="POST",
            url__full="https://pay.example/v1/refunds?token=secret",
            http__response__status_code=201,
        ),
    ):
        pass


def _sql(world: World) -> None:
    with (
        world.tool(),
        world.agent.span(
            "INSERT shop.refunds",
            SpanKind.CLIENT,
            db__system__name="postgresql",
            db__namespace="shop",
            db__collection__name="refunds",
            db__operation__name="INSERT",
            db__query__text="INSERT INTO refunds VALUES (?)",
        ),
    ):
        pass


def _file(world: World) -> None:
    with (
        world.tool(),
        world.agent.span("write", file__path="/var/refunds/7.json", file__operation="write"),
    ):
        pass


def _message(world: World) -> None:
    with (
        world.tool(),
        world.agent.span(
            "send refunds",
            SpanKind.PRODUCER,
            messaging__system="kafka",
            messaging__operation__type="send",
            messaging__destination__name="refunds",
        ),
    ):
        pass


def _mcp(world: World) -> None:
    """The client's span of an MCP call, and below it the server's: one effect, seen by its target."""
    with (
        world.tool(),
        world.agent.span(
            "tools/call refund",
            SpanKind.CLIENT,
            mcp__method__name="tools/call",
            gen_ai__tool__name="refund",
            server__address="mcp.example",
        ),
        world.target.span(
            "tools/call refund",
            SpanKind.SERVER,
            mcp__method__name="tools/call",
            gen_ai__tool__name="refund",
        ),
    ):
        pass


def _process_and_rpc(world: World) -> None:
    with world.tool():
        with world.agent.span(
            "exec", process__executable__name="git", process__exit__code=1, error=True
        ):
            pass
        with world.agent.span(
            "Refunds/Create",
            SpanKind.CLIENT,
            rpc__system="grpc",
            rpc__service="Refunds",
            rpc__method="Create",
            server__address="pay.example",
            rpc__grpc__status_code=0,
        ):
            pass


def _acknowledged_and_did_nothing(world: World) -> None:
    """Its reply says done; nothing below it was done: a result, and no effect."""
    with world.tool(answer='{"status": "refunded"}'):
        pass


def _acknowledged_by_statement(world: World) -> None:
    """The tool itself says so in Facta's attributes: no more than its word."""
    with world.tool():
        trace.get_current_span().add_event(
            "facta.effect",
            {
                "facta.effect.operation": "refund",
                "facta.effect.target": "order/7",
                "facta.effect.status": "ok",
            },
        )


def _target_contradicts(world: World) -> None:
    """The client was told 200, the target's own span of the same request says 500."""
    with (
        world.tool(),
        world.agent.span(
            "POST",
            SpanKind.CLIENT,
            http__request__method="POST",
            url__full="http://pay.example/v1/refunds",
            http__response__status_code=200,
        ),
        world.target.span(
            "POST /v1/refunds",
            SpanKind.SERVER,
            http__request__method="POST",
            url__path="/v1/refunds",
            server__address="pay.example",
            http__response__status_code=500,
        ),
    ):
        pass


def _read_back(world: World) -> None:
    """Written, then read again by the target, which states what it found."""
    with (
        world.tool(),
        world.agent.span(
            "POST",
            SpanKind.CLIENT,
            http__request__method="POST",
            url__full="http://pay.example/v1/refunds",
            http__response__status_code=201,
        ),
    ):
        pass
    with world.target.span(
        "check",
        facta__effect__operation="POST",
        facta__effect__target="pay.example/v1/refunds",
        facta__effect__status="ok",
        facta__effect__basis="verified",
        facta__effect__call_id=CALL,
    ):
        pass


def _target_confirms(world: World) -> None:
    """Another service's server span below the client's: seen by the target."""
    with (
        world.tool(),
        world.agent.span(
            "POST",
            SpanKind.CLIENT,
            http__request__method="POST",
            url__full="http://pay.example/v1/refunds",
            http__response__status_code=201,
        ),
        world.target.span(
            "POST /v1/refunds",
            SpanKind.SERVER,
            http__request__method="POST",
            url__path="/v1/refunds",
            http__response__status_code=201,
        ),
        world.target.span(
            "INSERT refunds",
            SpanKind.CLIENT,
            db__system__name="postgresql",
            db__collection__name="refunds",
            db__operation__name="INSERT",
        ),
    ):
        pass


def _stated_by_a_target(world: World) -> None:
    """A log event from another service, in a trace of its own, that names the call."""
    with world.tool():
        pass
    world.target.event(
        "facta.effect",
        facta__effect__operation="refund",
        facta__effect__target="order/7",
        facta__effect__status="succeeded",
        facta__effect__basis="observed",
        facta__effect__call_id=CALL,
    )


RUNS: dict[str, tuple[Callable[[World], None], list[Effect]]] = {
    "http": (_http, [("POST", "pay.example/v1/refunds", "201", "instrumented", CALL)]),
    "sql": (_sql, [("INSERT", "postgresql/shop/refunds", "ok", "instrumented", CALL)]),
    "file": (_file, [("write", "/var/refunds/7.json", "ok", "instrumented", CALL)]),
    "message": (_message, [("send", "kafka/refunds", "ok", "instrumented", CALL)]),
    "mcp": (_mcp, [("tools/call", "mcp.example/refund", "ok", "observed", CALL)]),
    "process and rpc": (
        _process_and_rpc,
        [
            ("Refunds/Create", "pay.example", "0", "instrumented", CALL),
            ("exec", "git", "1", "instrumented", CALL),
        ],
    ),
    "acknowledged, did nothing": (_acknowledged_and_did_nothing, []),
    "acknowledged by statement": (
        _acknowledged_by_statement,
        [("refund", "order/7", "ok", "acknowledged", CALL)],
    ),
    "target contradicts": (
        _target_contradicts,
        [("POST", "pay.example/v1/refunds", "500", "conflict", CALL)],
    ),
    "read back": (_read_back, [("POST", "pay.example/v1/refunds", "ok", "verified", CALL)]),
    "target confirms": (
        _target_confirms,
        [
            ("INSERT", "postgresql/refunds", "ok", "observed", CALL),
            ("POST", "pay.example/v1/refunds", "201", "observed", CALL),
        ],
    ),
    "stated by a target": (
        _stated_by_a_target,
        [("refund", "order/7", "succeeded", "observed", CALL)],
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_run_has_these_effects_and_bases(run: str) -> None:
    act, want = RUNS[run]
    world = World()
    with world.model():
        pass
    act(world)
    seen = world.seen()
    told = sorted(
        (e["operation"], e["target"], e["status"], e["basis"], e["call_id"])
        for e in seen.rows("effects")
    )
    assert told == want
    (session,) = seen.rows("sessions")
    assert {e["session_id"] for e in seen.rows("effects")} <= {session["session_id"]}
    assert session["effects"] == len(want)
    (made,) = seen.rows("tool_calls")
    assert made["call_id"] == CALL
    assert made["turn_id"]


def test_a_conflict_shows_both_sides() -> None:
    world = World()
    with world.model():
        pass
    _target_contradicts(world)
    (effect,) = world.seen().rows("effects")
    assert effect["flags"] == ["conflict"]
    shown = json.loads(effect["alternatives"])
    assert {(one["service"], one["status"]) for one in shown} == {
        ("agent", "200"),
        ("payments", "500"),
    }


def test_the_request_of_a_model_is_no_effect() -> None:
    """An HTTP client's span below a model's span is how the model was asked."""
    world = World()
    with (
        world.model(),
        world.agent.span(
            "POST",
            SpanKind.CLIENT,
            http__request__method="POST",
            url__full="https://api.provider.example/v1/responses",
            http__response__status_code=200,
        ),
    ):
        pass
    assert world.seen().rows("effects") == []


def test_what_happens_outside_a_call_is_no_effect() -> None:
    """A query of the agent's host between two turns, say; stated effects need no call."""
    world = World()
    with world.agent.span("SELECT", SpanKind.CLIENT, db__system__name="sqlite"):
        pass
    assert world.seen().rows("effects") == []
    world.target.event("facta.effect", facta__effect__operation="boot", facta__effect__target="x")
    (effect,) = world.seen().rows("effects")
    assert (effect["operation"], effect["basis"], effect["call_id"]) == ("boot", "acknowledged", "")


def test_two_equal_requests_are_two_effects() -> None:
    world = World()
    with world.model():
        pass
    with world.tool():
        for _ in range(2):
            with world.agent.span(
                "POST",
                SpanKind.CLIENT,
                http__request__method="POST",
                url__full="http://pay.example/v1/refunds",
                http__response__status_code=201,
            ):
                pass
    told = [(e["target"], e["basis"]) for e in world.seen().rows("effects")]
    assert told == [("pay.example/v1/refunds", "instrumented")] * 2
