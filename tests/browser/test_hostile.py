"""Text from outside in every field: nothing runs, nothing is loaded, nothing is laid out anew."""

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Api, Listener, session_row, step, summary

from facta.dashboard.text import FULL_LIMIT, line, visible

pytestmark = pytest.mark.browser

Visit = Callable[[str], Page]

# {url}: a listener on loopback that must never be asked for anything.
HOSTILE = {
    "script": "<script>alert(1);fetch('{url}/script')</script>",
    "image tag": "<img src={url}/img onerror=alert(1)><iframe src={url}/frame></iframe>",
    "svg": "<svg xmlns='http://www.w3.org/2000/svg' onload=alert(1)><image href='{url}/svg'/></svg>",
    "script link": "[click](javascript:alert(1)) <a href='javascript:alert(1)'>click</a>",
    "markdown image": "![x]({url}/image)\n\n![x]({url}/braces){{}}\n\n![x][r]\n\n[r]: {url}/ref",
    "bare link": "{url}/bare <{url}/angle> [x]({url}/link)",
    "directives": ":material/alarm: :red[red] :blue-badge[badge] :streamlit: :smile: :small[s]",
    "mathematics": "$x^2$ $$\\frac{{a}}{{b}}$$ \\(x\\) `code` **bold** # head",
    "entities": "&lt;img src={url}/entity&gt; &#60;script&#62;alert(1)&#60;/script&#62;",
    "style": "<style>*{{display:none}}</style><link rel=stylesheet href={url}/css>",
    "table": "| a | b |\n|---|---|\n| ![x]({url}/cell) | <img src={url}/cell> |",
    "direction": "paid\u202e05.01\u202c \u2066isolate\u2069 zero\u200bwidth \U000e0041tag",
    "controls": "null\x00 escape\x1b[31m bell\x07 return\r\nnext\u2028line\u0085next",
    "pile": "Z\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308\u0309\u030a" * 40,
    "lone surrogate": "half \ud83d of a pair",
    "unbroken": "W" * 5_000,
}

GROUPS = [tuple(HOSTILE)[first : first + 3] for first in range(0, len(HOSTILE), 3)]


def fields(names: Iterable[str], value: object) -> dict[str, Any]:
    return dict.fromkeys(names, value)


def everywhere(text: str) -> list[dict[str, Any]]:
    """One step of each kind, with `text` in each field that comes from outside."""
    many = [text, text]
    turn = (
        "request_model response_model response_id provider surface protocol endpoint effort "
        "thinking reasoning_context error service agent deployment api operation link_basis"
    )
    lists = fields(["observers", "conventions", "finish_reasons", "flags", "include"], many)
    call = fields(
        [
            *("tool", "call_id", "arguments", "arguments_observer", "result", "result_observer"),
            *("status", "error", "alternatives", "arguments_commit", "result_commit"),
        ],
        text,
    )
    effect = ["operation", "target", "status", "basis", "observer", "service", "call_id"]
    sealed = ["sealed_kind", "state", "sha256", "direction", "position", "sealed_by", "place"]
    return [
        step(
            "turn",
            **fields(turn.split(), text),
            **lists,
            not_observable=many,
            store=text,
            request_items=2,
        ),
        summary(text, ux_kind=text),
        step("sighting", **fields(sealed, text), observers=many, size=1),
        step("call", **call, flags=many, conflict=True),
        step("effect", **fields([*effect, "alternatives"], text), flags=many),
        step("evaluation", **fields(["name", "label", "explanation", "reads"], text)),
        step("retrieval", query=text, document_ids=many, content=text, observer=text),
        step("transition", name=text, before=text, after=text),
        step("refusal", **fields(["reason", "place", "sha256"], text)),
        step("gap", gap=text),
        step(text, name=text, reason=text),
    ]


def inert(page: Page) -> None:
    """Nothing of the page's text became an element, and the page is as wide as its window."""
    main = page.locator(".stMainBlockContainer")
    for made in ("img", "iframe", "script", "svg image", ".katex", "table:not(canvas *)", "strong"):
        expect(main.locator(made)).to_have_count(0)
    links = main.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert [link for link in links if not re.fullmatch(r"#step-\d+", link)] == []
    icons = main.locator('[data-testid="stIconMaterial"]').all_inner_texts()
    assert "alarm" not in icons
    narrow = "e => e.scrollWidth <= e.clientWidth"
    assert main.evaluate(narrow)
    assert page.locator("html").evaluate(narrow)
    assert page.locator(".stMain").evaluate(narrow)
    assert re.search("[\u202a-\u202e\u2066-\u2069\u200b\x00\x1b]", main.inner_text()) is None


def hostile_session(session_id: str, text: str) -> dict[str, Any]:
    """A session with `text` in each field that comes from outside."""
    many = [text, text]
    lists = fields(["basis", "models", "agents", "gaps", "claims", "aliases"], many)
    return session_row(session_id, service=text, **lists)


@pytest.mark.parametrize("names", GROUPS, ids=", ".join)
def test_a_timeline_of_hostile_text_is_text(
    names: tuple[str, ...], api: Api, listener: Listener, visit: Visit
) -> None:
    texts = [HOSTILE[name].format(url=listener.url) for name in names]
    steps = [row for text in texts for row in everywhere(text)]
    api.timelines["s"] = (hostile_session("s", texts[0]), steps)
    page = visit("/session?session=s")
    page.get_by_text("Show summaries").click()
    expect(page.get_by_text("NOT EVIDENCE", exact=True)).to_have_count(len(texts))
    page.locator(".st-key-fields-turn-1 summary").click()
    expect(page.locator(".st-key-fields-turn-1 code")).to_have_count(1)
    for place, text in enumerate(texts):
        block = page.locator(f".st-key-step-{2 * place + 2}")
        assert visible(text)[:400].strip() in block.locator("code").first.inner_text()
        assert line(text)[:100] in block.inner_text()
    inert(page)


def test_a_list_of_hostile_sessions_is_text(api: Api, listener: Listener, visit: Visit) -> None:
    texts = [text.format(url=listener.url) for text in HOSTILE.values()]
    api.sessions = [hostile_session(text, text) for text in texts]
    page = visit("/")
    table = page.locator("canvas table")
    expect(table).to_contain_text(line(texts[0])[:60])
    inert(page)
    api.timelines[texts[0]] = (hostile_session(texts[0], texts[0]), everywhere(texts[0]))
    page.locator(".dvn-scroller").click(position={"x": 16, "y": 35 + 17})
    expect(page.locator(".st-key-step-2")).to_be_visible()
    inert(page)


@pytest.mark.parametrize(
    "query",
    [
        "session=<img src={url}/x onerror=alert(1)>",
        "session=![x]({url}/x)&step=<script>alert(1)</script>&part=$x$",
        "session=%00%E2%80%AE&step=99999999999999999999",
        "session=" + "A" * 4_000,
    ],
)
def test_a_hostile_link_to_a_session_is_one_line(
    query: str, api: Api, listener: Listener, visit: Visit
) -> None:
    page = visit(f"/session?{query.format(url=listener.url)}")
    expect(page.get_by_role("alert")).to_have_text("There is nothing here under this id.")
    assert len(api.asked) == 1
    inert(page)


def test_a_hostile_filter_is_text(api: Api, listener: Listener, visit: Visit) -> None:
    page = visit(f"/?service=![x]({listener.url}/x)<img src={listener.url}/y>&started=$x$")
    expect(page.get_by_role("status")).to_contain_text("No sessions here.")
    inert(page)
    assert len(api.asked) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * 10_000_000, id="ten megabytes on a line"),
        pytest.param("".join(f"{n} <b>x</b>\n" for n in range(10_000)), id="ten thousand lines"),
    ],
)
def test_long_text_leaves_the_page_quick(text: str, api: Api, visit: Visit) -> None:
    call = step("call", tool=text, result=text)
    turn = step("turn", response_model=text, observers=[text])
    api.timelines["s"] = (session_row("s", service=text), [turn, summary(text), call])
    page = visit("/session?session=s")
    expect(page.locator(".st-key-step-2")).to_contain_text("more characters")
    inert(page)
    page.locator('[class*="st-key-call-2-result"] summary').click()
    opened = page.locator('[class*="st-key-call-2-result"] code')
    expect(opened).to_contain_text(text[:FULL_LIMIT][-50:].strip())
    assert len(opened.inner_text()) <= FULL_LIMIT
    inert(page)
    before = time.monotonic()
    page.get_by_text("Show summaries").click()
    expect(page.get_by_text("NOT EVIDENCE", exact=True)).to_be_visible()
    assert time.monotonic() - before < 20
    inert(page)
