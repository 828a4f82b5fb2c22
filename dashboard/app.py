"""The dashboard's frame: pages, width, style. Start it with `facta up`."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

st.set_page_config(page_title="Facta", layout="wide")
st.html(HERE / "style.css")
page = st.navigation(
    [
        st.Page(
            HERE / "views" / "sessions.py", title="Sessions", url_path="sessions", default=True
        ),
        st.Page(HERE / "views" / "session.py", title="Session", url_path="session"),
    ],
    position="top",
)
page.run()
