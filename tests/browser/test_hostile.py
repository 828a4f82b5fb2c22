"""Text from outside in every field: nothing runs, nothing is loaded, nothing is laid out anew."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.browser.conftest import Api, Listener, session_row, step, summary

from facta.dashboard.text import visible

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


def everywhere(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A session and one step of each kind, with `text` in each field that comes from outside."""
    many = [text, text]
    session = session_row(
        "s", service=text, basis=many, models=many, agents=many, gaps=many, claims=many
    )
    turn = dict.fromkeys(
        "request_model response_model response_id provider surface protocol endpoint effort "
        "thinking reasoning_context error service agent deployment api operation link_basis",
        text,
    )
    turn = dict.fromkeys(" ".join(turn).split(), text)
    lists = dict.fromkeys(["observers", "conventions", "finish_reasons", "flags", "include"], many)
    call = dict.fromkeys(
        [
            *("tool", "call_id", "arguments", "arguments_observer", "result", "result_observer"),
            *("status", "error", "alternatives", "arguments_commit", "result_commit"),
        ],
        text,
    )
    effect = ["operation", "target", "status", "basis", "observer", "service", "call_id"]
    sealed = ["sealed_kind", "state", "sha256", "direction", "position", "sealed_by", "place"]
    return session, [
        step("turn", **turn, **lists, not_observable=many, store=text, request_items=2),
        summary(text, ux_kind=text),
        step("sighting", **dict.fromkeys(sealed, text), observers=many, size=1),
        step("call", **call, flags=many, conflict=True),
        step("effect", **dict.fromkeys([*effect, "alternatives"], text), flags=many),
        step("evaluation", **dict.fromkeys(["name", "label", "explanation", "reads"], text)),
        step("retrieval", query=text, document_ids=many, content=text, observer=text),
        step("transition", name=text, before=text, after=text),
        step("refusal", **dict.fromkeys(["reason", "place", "sha256"], text)),
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


@pytest.mark.parametrize("name", HOSTILE)
def test_a_timeline_of_hostile_text_is_text(
    name: str, api: Api, listener: Listener, visit: Visit
) -> None:
    text = HOSTILE[name].format(url=listener.url)
    api.timelines["s"] = everywhere(text)
    page = visit("/session?session=s")
    page.get_by_text("Show summaries").click()
    expect(page.get_by_text("NOT EVIDENCE", exact=True)).to_have_count(1)
    page.locator('[class*="st-key-fields-turn"] summary').click()
    expect(page.locator('[class*="st-key-fields-turn"] code')).to_have_count(1)
    shown = page.locator(".st-key-step-3 code").first.inner_text()
    assert visible(text)[:400].strip() in shown
    inert(page)
