"""Tables, JSON and CSV of hostile text."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facta.cli.output import Format, as_json, as_text, unformula

HOSTILE = {
    "escape": "a\x1b[2J\x1b]0;title\x07b",
    "hyperlink": "\x1b]8;;http://127.0.0.1/\x1b\\text\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;Y2FuYXJ5\x07",
    "c1": "\x9b31m\x9d0;x\x9c",
    "return": "good\rbad",
    "backspace": "good\b\b\b\bbad",
    "bidi": "\u202egnp.exe\u202c\u2066x\u2069",
    "invisible": "a\u200b\u200d\ufeffb\U000e0041",
    "lines": "one\ntwo\u2028three\x85four",
    "delete": "a\x7fb\0c",
    "markup": "[bold]x[/] <b>x</b>",
}
DRIVES = [chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]]
DRIVES += ["\u2028", "\u2029", "\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041"]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("form", [Format.table, Format.json, Format.jsonl])
def test_no_text_drives_a_terminal(form: Format, text: str) -> None:
    row: dict[str, Any] = {"name": text, "list": [text]}
    shown = as_text([row], ["name", "list"], form)
    assert not [char for char in DRIVES if char != "\n" and char in shown]
    if form is not Format.json:
        assert shown.count("\n") == (2 if form is Format.table else 1)


VALUES: st.SearchStrategy[Any] = st.text() | st.integers() | st.none() | st.lists(st.text())


@given(st.dictionaries(st.text(), VALUES))
def test_json_reads_back_as_it_was(row: dict[str, Any]) -> None:
    assert json.loads(as_json(row)) == row
    assert json.loads(as_text([row], [], Format.jsonl)) == row
    assert json.loads(as_text([row, row], [], Format.json)) == [row, row]


def test_a_table_has_columns() -> None:
    rows: list[dict[str, Any]] = [{"a": "x", "b": 1, "c": "hidden"}, {"a": "longer", "b": None}]
    assert as_text(rows, ["a", "b"], Format.table) == "a       b\nx       1\nlonger\n"
    assert as_text([], ["a", "b"], Format.table) == "a  b\n"


def test_a_long_cell_is_cut_and_says_so() -> None:
    assert as_text([{"a": "x" * 100}], ["a"], Format.table).endswith(
        "x" * 64 + " … 36 more characters\n"
    )


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", " =1", "\ufeff=1", '"=1', "'=1", "\n=1"],
)
def test_csv_holds_no_formula(text: str) -> None:
    shown = as_text([{"a": text}], ["a"], Format.csv)
    [_, [cell]] = list(csv.reader(io.StringIO(shown, newline="")))
    assert cell == f"'{text}"


@pytest.mark.parametrize("text", ["plain", "a=1", "", "1-1", "x@y", "é"])
def test_csv_leaves_other_texts_alone(text: str) -> None:
    assert unformula(text) == text


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_csv_can_be_undone(text: str) -> None:
    safe = unformula(text)
    assert safe in (text, f"'{text}")
    assert safe.removeprefix("'") == text


def test_csv_has_every_field_and_numbers_as_they_are() -> None:
    rows = [{"a": "x", "n": -5, "list": ["p", "q"], "none": None, "yes": True}]
    shown = as_text(rows, ["n", "a"], Format.csv)
    assert shown == 'n,a,list,none,yes\r\n-5,x,"p, q",,true\r\n'
    assert as_text([], ["n", "a"], Format.csv) == "n,a\r\n"
