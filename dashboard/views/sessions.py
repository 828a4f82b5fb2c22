"""Sessions: one row each, newest first; selecting a row opens its session."""

from typing import Any

import streamlit as st

from facta.dashboard import sessions
from facta.dashboard.reading import Reader, ReadError
from facta.settings import load

SPANS = {
    "any time": 0,
    "last hour": 1,
    "last 24 hours": 24,
    "last 7 days": 168,
    "last 30 days": 720,
}


def filters() -> dict[str, str]:
    """The filters that the reader set, as query parameters of the API."""
    service, span, _ = st.columns([3, 2, 5])
    named = service.text_input("Service", key="service", bind="query-params", on_change=newest)
    started = span.selectbox(
        "Started", list(SPANS), key="started", bind="query-params", on_change=newest
    )
    return sessions.query(named or "", SPANS[started or "any time"])


def newest() -> None:
    """Go back to the first page."""
    st.session_state["cursors"] = []


def table(items: list[dict[str, Any]]) -> None:
    """The sessions as text cells, which hold no markup; a selected row is opened."""
    chosen = st.dataframe(
        sessions.columns(items),
        hide_index=True,
        height="content",
        on_select="rerun",
        selection_mode="single-row",
        key="sessions",
        alt="Sessions",
        column_config={
            name: st.column_config.TextColumn(name, width=width)
            for name, width in sessions.WIDTHS.items()
        },
    )
    rows = chosen["selection"]["rows"]
    if rows and rows[0] < len(items):
        session_id = str(items[rows[0]].get("session_id", ""))
        st.switch_page("views/session.py", query_params={"session": session_id})


def paging(cursors: list[str], following: str) -> None:
    """Buttons to the newer and the older sessions, where there are any."""
    with st.container(horizontal=True):
        if st.button("Newer", disabled=not cursors):
            st.session_state["cursors"] = cursors[:-1]
            st.rerun()
        if st.button("Older", disabled=not following):
            st.session_state["cursors"] = [*cursors, following]
            st.rerun()


st.header("Sessions", anchor=False)
settings = load()
wanted = filters()
cursors: list[str] = st.session_state.get("cursors", [])
try:
    page = Reader(settings.url, settings.token).sessions(wanted, cursors[-1] if cursors else "")
except ReadError as failure:
    st.error(str(failure))
    st.stop()
if not page.items:
    st.info("No sessions here. Point an agent's OTEL_EXPORTER_OTLP_ENDPOINT at Facta.")
else:
    st.caption("Select a row to open its session. Times are UTC, by the sender's clock.")
    table(page.items)
paging(cursors, page.next_cursor)
