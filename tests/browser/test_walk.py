"""A reader walks the pages: sessions, one session's timeline, its steps by link, the ux lane."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.browser.conftest import Api, eventually, session_row, step, summary

from facta.dashboard.steps import INLINE
from facta.dashboard.text import FULL_LIMIT

pytestmark = pytest.mark.browser

Visit = Callable[[str], Page]

SHA256 = "e3deb5c7" + "0" * 56


def refund() -> list[dict[str, Any]]:
    """A short session, one row of each kind that a reader must be able to tell apart."""
    return [
        step(
            "turn",
            request_model="gpt-5.6",
            response_model="gpt-5.6-sol",
            observers=["tap"],
            request_items=2,
            reasoning_tokens=128,
        ),
        summary("First I look up the order."),
        step(
            "sighting",
            sealed_kind="openai.reasoning",
            state="whole",
            size=1100,
            sha256=SHA256,
            direction="response",
            position="0.0",
            sealed_by="place",
        ),
        step(
            "call",
            1.9,
            call_id="call_0",
            tool="lookup_order",
            arguments='{"order_id":"7"}',
            arguments_observer="response",
            result='{"amount":10.50}',
            result_observer="tool_span",
            status="ok",
            duration_ns=41_000_000,
        ),
        step(
            "effect",
            1.9,
            call_id="call_0",
            operation="GET",
            target="orders-db/orders/7",
            status="200",
            basis="instrumented",
            observer="tool_span",
        ),
        step("turn", 2.3, turn_id="t2", response_model="gpt-5.6-luna", observers=["tap"]),
        summary("Then I answer.", turn_id="t2", ux_kind="thinking"),
        step("refusal", 3, reason="bad_utf8", place="span attribute 3", size=9, sha256="f" * 64),
        step("gap", 8.4, gap="the session has no end"),
    ]


@pytest.fixture
def walked(api: Api) -> Api:
    api.sessions = [session_row("first"), session_row("second", service="other")]
    api.timelines = {name: (session_row(name), refund()) for name in ("first", "second")}
    return api


def below(page: Page, place: int) -> Locator:
    """A row without a number, by its place in the evidence lane."""
    return page.locator(f".st-key-step-with-{place}")


def block(page: Page, number: int) -> Locator:
    """A numbered step."""
    return page.locator(f".st-key-step-{number}, .st-key-step-linked-{number}")


def test_a_selected_row_opens_its_session(walked: Api, visit: Visit) -> None:
    page = visit("/")
    cells = page.locator("canvas table")
    expect(cells).to_contain_text("refund-agent")
    expect(cells).to_contain_text("2026-11-29 14:02:11Z")
    page.locator(".dvn-scroller").click(position={"x": 16, "y": 35 + 35 + 17})
    page.wait_for_url(re.compile(r"/session\?session=second$"))
    expect(block(page, 2)).to_contain_text("lookup_order")
    assert walked.tokens == {"Bearer made-up-token"}


def test_the_service_filter_goes_to_the_api_and_into_the_address(walked: Api, visit: Visit) -> None:
    page = visit("/")
    box = page.get_by_label("Service")
    box.fill("refund-agent")
    box.press("Enter")
    page.wait_for_url(re.compile("service=refund-agent"))
    asked = "/api/v1/sessions?limit=100&service=refund-agent"
    eventually(page, lambda: walked.asked[-1] == asked)


def test_the_time_filter_goes_to_the_api(walked: Api, visit: Visit) -> None:
    visit("/?started=last+hour")
    assert re.fullmatch(r"/api/v1/sessions\?limit=100&since=\d{19}", walked.asked[-1])


def test_older_and_newer_sessions(walked: Api, visit: Visit) -> None:
    walked.next_cursor = "further/on"
    page = visit("/")
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_role("button", name="Newer")).to_be_enabled()
    assert walked.asked[-1] == "/api/v1/sessions?limit=100&cursor=further%2Fon"
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()
    assert walked.asked[-1] == "/api/v1/sessions?limit=100"


def test_an_empty_list_says_so(api: Api, visit: Visit) -> None:
    expect(visit("/").get_by_role("status")).to_contain_text("No sessions here.")
    assert api.asked == ["/api/v1/sessions?limit=100"]


def test_each_step_says_what_happened_and_what_it_rests_on(walked: Api, visit: Visit) -> None:
    page = visit("/session?session=first")
    told = {
        block(page, 1): [
            "gpt-5.6 → gpt-5.6-sol",
            "128 reasoning",
            "items shown: 2",
            "tap",
            "+0.0 s",
        ],
        below(page, 2): ["openai.reasoning · whole · size 1,100 · sha256 e3deb5c7…", "response"],
        block(page, 2): ["lookup_order", '{"order_id":"7"}', "result: tool_span", "ok · 41 ms"],
        below(page, 4): ["GET orders-db/orders/7 → 200", "instrumented: a client span of the same"],
        block(page, 3): ["gpt-5.6-luna", "+2.3 s"],
        below(page, 6): ["bad_utf8", "span attribute 3", "9 bytes"],
        below(page, 7): ["the session has no end", "gap"],
    }
    for place, texts in told.items():
        for text in texts:
            expect(place).to_contain_text(text)
    expect(page.get_by_text("NOT SEEN")).to_have_count(0)
    assert walked.asked == ["/api/v1/sessions/first/timeline"]


def test_the_ux_lane_is_off_and_then_marked(walked: Api, visit: Visit) -> None:
    page = visit("/session?session=first")
    expect(below(page, 7)).to_be_visible()
    expect(page.get_by_text("NOT EVIDENCE", exact=True)).to_have_count(0)
    assert "look up the order" not in page.content()
    page.get_by_text("Show summaries").click()
    lane = page.locator('[class*="st-key-ux-"]')
    expect(lane).to_have_count(2)
    for place, text in enumerate(["First I look up the order.", "Then I answer."]):
        expect(lane.nth(place)).to_contain_text(text)
        expect(lane.nth(place)).to_contain_text("NOT EVIDENCE")
    expect(block(page, 2)).to_contain_text("lookup_order")
    expect(page.locator('[class*="st-key-step-"]').filter(has_text="I answer")).to_have_count(0)
    assert walked.asked[-1] == "/api/v1/sessions/first/timeline?ux=true"


def test_a_token_without_ux_leaves_the_evidence(walked: Api, visit: Visit) -> None:
    walked.ux_status = 403
    page = visit("/session?session=first")
    page.get_by_text("Show summaries").click()
    expect(page.get_by_role("alert")).to_contain_text("may not read summaries")
    expect(block(page, 2)).to_contain_text("lookup_order")
    expect(page.get_by_text("NOT EVIDENCE", exact=True)).to_have_count(0)


def long_session(api: Api) -> None:
    turns = [step("turn", n, turn_id=f"t{n}", response_model=f"model-{n + 1}") for n in range(100)]
    api.timelines["long"] = (session_row("long"), turns)


def test_a_step_by_link_is_the_first_thing_a_fresh_server_shows(
    api: Api, fresh_dashboard: str, page: Page
) -> None:
    long_session(api)
    page.goto(f"{fresh_dashboard}/session?session=long&step=70")
    marked = page.locator(".st-key-step-linked-70")
    expect(marked).to_contain_text("model-70")
    expect(marked).to_be_in_viewport()
    expect(page.locator('[class*="st-key-step-linked-"]')).to_have_count(1)
    expect(page.get_by_role("link", name="Sessions")).to_be_visible()


def test_a_step_by_anchor(api: Api, visit: Visit) -> None:
    long_session(api)
    page = visit("/session?session=long#step-33")
    expect(block(page, 33)).to_contain_text("model-33")
    expect(block(page, 33)).to_be_in_viewport()


def test_a_long_session_comes_in_parts(api: Api, visit: Visit) -> None:
    long_session(api)
    page = visit("/session?session=long")
    expect(block(page, 40)).to_be_visible()
    expect(block(page, 41)).to_have_count(0)
    page.get_by_role("button", name="Page 3").click()
    expect(block(page, 100)).to_be_visible()
    expect(block(page, 1)).to_have_count(0)


@pytest.mark.parametrize("path", ["/", "/session?session=first"])
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            401,
            "The API wants a token: start the dashboard with FACTA_TOKEN set to one that may read.",
        ),
        (404, "There is nothing here under this id."),
        (500, "The API answered with HTTP status 500."),
    ],
)
def test_a_refusal_is_one_line(
    walked: Api, visit: Visit, path: str, status: int, said: str
) -> None:
    walked.status = status
    page = visit(path)
    expect(page.get_by_role("alert")).to_have_text(said)
    expect(page.get_by_text("DETAIL-OF-THE-API")).to_have_count(0)


def test_an_unknown_session_is_one_line(walked: Api, visit: Visit) -> None:
    page = visit("/session?session=..%2F..%2Fmetrics%3Fx%3D1%23")
    expect(page.get_by_role("alert")).to_have_text("There is nothing here under this id.")
    assert len(walked.asked) == 1


def test_what_a_turn_added_is_asked_for_when_it_is_opened(walked: Api, visit: Visit) -> None:
    said = {"kind": "text", "commit": "a" * 64, "size": 17, "text": "Refund order 7."}
    withheld = {"kind": "reasoning", "commit": "b" * 64, "size": 27, "ux": True}
    item = {"direction": "request", "position": 0, "role": "user", "item_id": ""}
    walked.items = {"t1": [{**item, "parts": json.dumps([said, withheld])}]}
    page = visit("/session?session=first")
    expect(block(page, 1)).not_to_contain_text("Refund order 7.")
    block(page, 1).get_by_text("Items added to the context").click()
    expect(block(page, 1)).to_contain_text("request 0 · user · text · size 17")
    expect(block(page, 1)).to_contain_text("Refund order 7.")
    expect(block(page, 1)).to_contain_text("not shown here: it belongs to the ux lane")
    assert walked.asked[-1] == "/api/v1/context?session_id=made-up&turn_id=t1&limit=100"


def test_a_long_value_is_cut_and_opens(api: Api, visit: Visit) -> None:
    lines = "\n".join(f"line {number}" for number in range(200))
    api.timelines["cut"] = (session_row("cut"), [step("call", tool="run", result=lines)])
    page = visit("/session?session=cut")
    more = len(lines) - len("\n".join(lines.split("\n")[:16]))
    expect(page.get_by_text("line 199")).to_have_count(0)
    page.get_by_text(f"… {more:,} more characters: show").click()
    expect(block(page, 1)).to_contain_text("line 199")


def test_a_value_that_its_row_holds_in_part_is_fetched(api: Api, visit: Visit) -> None:
    commit, text = "c" * 64, "".join(f"{number:07d}" for number in range(20_000))
    row = step("call", tool="run", result=text[:INLINE], result_commit=commit)
    api.timelines["part"], api.contents = (session_row("part"), [row]), {commit: text}
    page = visit("/session?session=part")
    page.get_by_text("… at least 15,184 more characters: show").click()
    expect(block(page, 1)).to_contain_text(text[FULL_LIMIT - 20 : FULL_LIMIT])
    expect(block(page, 1)).not_to_contain_text(text[FULL_LIMIT - 20 : FULL_LIMIT + 1])
    told = f"… 40,000 more characters: all of it is at GET /api/v1/content/{commit}"
    expect(block(page, 1)).to_contain_text(told)
