"""One session's timeline: what happened, step by step, and what each step rests on.

Deep links: `?session=ID` opens a session, `&step=N` opens it at a step, `#step-N` scrolls there.
Everything from outside is drawn by st.text or st.code, which read no markup; labels are our words.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, Final, Literal

import streamlit as st

from facta.dashboard import sessions
from facta.dashboard.context import parts
from facta.dashboard.reading import ITEMS, Reader, ReadError, Timeline
from facta.dashboard.steps import Block, Value, blocks, whole_rows
from facta.dashboard.text import (
    FULL_LIMIT,
    PREVIEW_LIMIT,
    PREVIEW_LINES,
    cut,
    left_out,
    line,
    visible,
)
from facta.settings import load

PART = 40
"""Blocks drawn at once."""

FORBIDDEN = 403
STEP_DIGITS = 9

Color = Literal["blue", "green", "red", "gray", "orange", "violet"]
COLORS: Final[dict[str, Color]] = {
    "turn": "blue",
    "call": "green",
    "effect": "red",
    "sighting": "gray",
    "refusal": "orange",
    "gap": "orange",
}
LABELS = {"sighting": "sealed"}


def reader() -> Reader:
    """The API, as the environment names it."""
    settings = load()
    return Reader(settings.url, settings.token)


def read(session_id: str, *, ux: bool) -> Timeline:
    """The session's timeline; without the summaries where the token may not read them."""
    try:
        return reader().timeline(session_id, ux=ux)
    except ReadError as failure:
        if not ux or failure.status != FORBIDDEN:
            st.error(str(failure))
            st.stop()
    st.warning("The token in FACTA_TOKEN may not read summaries; the evidence is below.")
    return read(session_id, ux=False)


def draw(block: Block, place: int, *, linked: bool) -> None:
    """One block; the ux lane in its own dress, with its label."""
    if block.evidence:
        with st.container(key=step_key(block, linked=linked), gap=None):
            draw_evidence(block)
        return
    with st.container(key=f"ux-{place}", gap="xxsmall"):
        with st.container(horizontal=True, gap="xsmall"):
            st.badge("NOT EVIDENCE", color="orange")
            st.text(f"{line(block.what)} {block.at} · said about the turn; not observed")
        draw_values(block, place)


def step_key(block: Block, *, linked: bool) -> str:
    """The name of a block's container, by which the style sheet knows it."""
    if not block.number:
        return f"step-with-{block.place}"
    return f"step-{'linked-' if linked else ''}{block.number}"


def draw_evidence(block: Block) -> None:
    """Number and kind, when, what happened, what it rests on."""
    number, what, rests = st.columns([1.5, 8, 3], gap="small")
    with number.container(gap=None):
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center"):
            if block.number:
                anchor = f"step-{block.number}"
                st.subheader(str(block.number), anchor=anchor, width="content")
            st.badge(LABELS.get(block.kind, block.kind), color=COLORS.get(block.kind, "violet"))
            if block.flagged:
                st.badge("conflict", color="red")
        st.text(block.at)
    with what.container(gap=None):
        if block.what:
            st.text(line(block.what))
        if block.facts:
            st.text("\n".join(line(fact) for fact in block.facts))
        draw_values(block, block.place)
    with rests:
        st.text("\n".join(line(part) for part in block.rests))


def draw_values(block: Block, place: int) -> None:
    """The block's long texts, cut, and on demand whole; then what else its rows hold."""
    for value in block.values:
        st.caption(value.label)
        draw_value(value, f"{block.kind}-{place}-{value.label}")
    if block.kind == "turn":
        with opening("Items added to the context", f"context-{place}") as opened:
            if opened:
                draw_context(block.rows[0])
    with opening("All fields", f"fields-{block.kind}-{place}") as opened:
        if opened:
            draw_whole(whole_rows(block), "")


def draw_value(value: Value, key: str) -> None:
    """A text's beginning, with what is left out said, and the rest on demand."""
    head = cut(value.text, PREVIEW_LIMIT, PREVIEW_LINES)
    st.code(visible(head.head), language=None, wrap_lines=True)
    if not head.more:
        return
    least = "at least " if value.cut else ""
    with opening(f"… {least}{head.more:,} more characters: show", key) as opened:
        if not opened:
            return
        try:
            fetched = value.cut and value.pointer
            text = reader().content(value.pointer) if fetched else value.text
        except ReadError as failure:
            st.error(str(failure))
            return
        draw_whole(text, value.pointer)


@contextmanager
def opening(label: str, key: str) -> Iterator[bool]:
    """A line that opens; gives whether it is open, since only then anything is asked for."""
    expander = st.expander(label, key=key, on_change="rerun", type="compact")
    with expander:
        yield expander.open is True


def draw_whole(text: str, pointer: str) -> None:
    """A text to its end, or as much of it as a browser should draw."""
    part = cut(text, FULL_LIMIT)
    st.code(visible(part.head), language=None, wrap_lines=True, height=400)
    if part.more:
        st.text(f"{left_out(part).strip()}: {whole_at(pointer)}")


def whole_at(pointer: str) -> str:
    """Where all of a text is."""
    return f"all of it is at GET /api/v1{pointer}" if pointer else "the API has all of it"


def draw_context(turn: dict[str, Any]) -> None:
    """The items that a turn added, in order."""
    try:
        items = reader().context(str(turn.get("session_id", "")), str(turn.get("turn_id", "")))
    except ReadError as failure:
        st.error(str(failure))
        return
    if not items:
        st.text("none that this instrumentation showed")
    for part in parts(items):
        st.text(line(part.title))
        if part.text:
            head = cut(part.text, PREVIEW_LIMIT, PREVIEW_LINES)
            st.code(visible(head.head), language=None, wrap_lines=True)
            if head.more:
                st.text(f"{left_out(head).strip()}: {whole_at(part.pointer)}")
    if len(items) == ITEMS:
        st.text(f"The first {ITEMS} items: the API has all of them, at GET /api/v1/context.")


def header(timeline: Timeline) -> None:
    """The session as a whole."""
    st.text("\n".join(line(part) for part in sessions.headline(timeline.session)))


def wanted_step() -> int:
    """The step that the link names, 0 for none."""
    step = st.query_params.get("step", "")
    return int(step) if step.isascii() and step.isdigit() and len(step) <= STEP_DIGITS else 0


def part_of(shown: list[Block], step: int) -> int:
    """The number of the part that holds a step, from 1."""
    return next((place // PART + 1 for place, block in enumerate(shown) if step <= block.number), 1)


st.header("Session", anchor=False)
session_id = st.query_params.get("session", "")
if not session_id:
    st.info("Choose a session on the page Sessions, or open …/session?session=ID.")
    st.stop()
ux = st.toggle("Show summaries, which are not evidence", key="ux")
timeline = read(session_id, ux=ux)
header(timeline)
shown = blocks(timeline.session, timeline.steps)
step = wanted_step()
part = 1
if len(shown) > PART:
    part = st.pagination(
        ceil(len(shown) / PART), default=part_of(shown, step), key="part", bind="query-params"
    )
for place, block in enumerate(shown[(part - 1) * PART : part * PART], start=(part - 1) * PART):
    draw(block, place, linked=block.number == step > 0)
if step:
    st.html(
        f"<script>document.getElementById('step-{step}')?.scrollIntoView()</script>",
        unsafe_allow_javascript=True,
    )
