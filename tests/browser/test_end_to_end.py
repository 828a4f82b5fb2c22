"""Telemetry in at one end, a timeline in a browser at the other, with `facta up` between them."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import START, Listener, free_port

from facta.dashboard.text import visible

# Three servers and a browser start here: a busy machine takes its time.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def facta(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """`facta up` on free ports; gives the URLs of the collector and of the dashboard."""
    http, pages = free_port(), free_port()
    settings = {"FACTA_DATA": str(tmp_path), "FACTA_HTTP_PORT": str(http), "FACTA_GRPC_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-c", "from facta.cli import main; main()", "up"],
        env={**os.environ, **settings, "FACTA_DASHBOARD_PORT": str(pages)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield f"http://127.0.0.1:{http}", f"http://127.0.0.1:{pages}"
    finally:
        process.terminate()
        process.wait(30)


def answered(url: str) -> dict[str, Any]:
    """What a URL answers, once something listens there."""
    client = httpx.Client(trust_env=False, transport=httpx.HTTPTransport(retries=7), timeout=30)
    deadline = time.monotonic() + 60
    with client:
        while True:
            with contextlib.suppress(httpx.TransportError):
                answer = client.get(url)
                return answer.json() if "json" in answer.headers["content-type"] else {}
            assert time.monotonic() < deadline, "nothing listens"


def span(name: str, number: int, attributes: dict[str, str]) -> dict[str, Any]:
    begun = START + number * 1_000_000_000
    return {
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": f"{number + 1:016x}",
        "parentSpanId": f"{1:016x}" if number else "",
        "name": name,
        "startTimeUnixNano": str(begun),
        "endTimeUnixNano": str(begun + 500_000_000),
        "attributes": [{"key": key, "value": {"stringValue": v}} for key, v in attributes.items()],
    }


def request(service: str, result: str) -> dict[str, Any]:
    """One chat turn that asks for a tool, and the tool's run."""
    asked = {"type": "tool_call", "id": "call_1", "name": "look_up", "arguments": {"order": "7"}}
    turn = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.6-sol",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [asked]}]),
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look_up",
        "gen_ai.tool.call.id": "call_1",
        "gen_ai.tool.call.arguments": json.dumps({"order": "7"}),
        "gen_ai.tool.call.result": result,
    }
    spans = [span("chat", 0, turn), span("execute_tool look_up", 1, tool)]
    named = [{"key": "service.name", "value": {"stringValue": service}}]
    scopes = [{"scope": {"name": "agent"}, "spans": spans}]
    return {"resourceSpans": [{"resource": {"attributes": named}, "scopeSpans": scopes}]}


def test_what_was_sent_is_what_a_reader_sees(
    facta: tuple[str, str], page: Page, listener: Listener
) -> None:
    collector, dashboard = facta
    hostile = f"![x]({listener.url}/x)<img src={listener.url}/y onerror=alert(1)>\u202e$x$"
    answered(f"{collector}/health")
    sent = request(f"agent {hostile}", hostile)
    assert httpx.post(f"{collector}/v1/traces", json=sent, trust_env=False).status_code == 200
    deadline = time.monotonic() + 60
    while not answered(f"{collector}/api/v1/sessions")["items"]:
        assert time.monotonic() < deadline, "no session was resolved"
        page.wait_for_timeout(100)
    answered(f"{dashboard}/_stcore/health")
    page.goto(dashboard)
    expect(page.locator("canvas table")).to_contain_text("agent ![x]")
    page.locator(".dvn-scroller").click(position={"x": 16, "y": 35 + 17})
    call = page.locator(".st-key-step-2")
    expect(call).to_contain_text("look_up")
    expect(call).to_contain_text(visible(hostile))
    expect(page.locator(".st-key-step-1")).to_contain_text("gpt-5.6-sol")
    expect(page.locator(".stMainBlockContainer img")).to_have_count(0)
