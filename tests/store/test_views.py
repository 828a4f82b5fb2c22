"""The queries as data: headers, columns, the generated README, cursors."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facta.assets import ROOT
from facta.store import views
from facta.store.embedded import EmbeddedStore

FILES = sorted(views.FOLDER.glob("*.sql"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_view_runs_and_has_the_columns_that_it_says(store: EmbeddedStore, path: Path) -> None:
    view = views.parse(path.read_text())
    assert view.name == path.stem
    assert views.rows(store, view.name, "nobody", {}) == []
    bound = {name: views._UNSET.get(kind, 0) for name, kind in view.parameters.items()}
    described = store.query(f"DESCRIBE TABLE ({view.sql})", bound)
    assert [row["name"] for row in described] == view.columns


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_view_reads_the_newest_rows_of_one_tenant(path: Path) -> None:
    sql = path.read_text()
    tables = re.findall(r"FROM ((?:evidence|ux)\.\w+)(.*)", sql)
    assert tables
    assert all(rest.startswith(" FINAL") for _, rest in tables)
    assert sql.count("tenant = {tenant:String}") == len(tables)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_view_joins_the_lanes(path: Path) -> None:
    sql = path.read_text()
    assert not ("FROM evidence." in sql and "ux." in sql) or path.stem == "ux"
    if "FROM ux." in sql:
        assert "JOIN" not in sql


def test_the_readme_is_fresh() -> None:
    assert (ROOT / "queries" / "README.md").read_text() == views.markdown()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "-- name: a\n-- what: b\nSELECT a\nFROM b",
        "-- name: a\n-- what: b\n-- key: c D\n",
    ],
)
def test_a_view_without_a_header_or_a_select_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a view has"):
        views.parse(text)


VALUES = st.tuples(st.text(), st.integers(0, 2**32 - 1), st.integers(-(2**63), 2**63 - 1))


@given(VALUES.filter(lambda values: values[0].isprintable()))
def test_a_cursor_gives_back_its_values(values: tuple[str, int, int]) -> None:
    cursor = views.make_cursor("turns", list(values))
    assert cursor.isascii()
    assert views.read_cursor(cursor, "turns", ["String", "UInt32", "Int64"]) == list(values)


@given(st.text())
def test_what_is_no_cursor_is_an_error_and_nothing_else(text: str) -> None:
    with pytest.raises(views.CursorError):
        views.read_cursor(text, "turns", ["String"])
