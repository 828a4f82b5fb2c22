"""Text from outside: what cannot be seen is written out, what is long is cut and says so."""

import pytest

from facta.dashboard.text import Cut, cut, left_out, line, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcödé, 漢字, 🙂\n\tkept", "plain, ünïcödé, 漢字, 🙂\n\tkept"),
        ("a\x00b\x1b[31m\r\n", "a␀b␛[31m␍\n"),
        ("\x7f\x85", "⟨U+007F⟩⟨U+0085⟩"),
        ("05\u202e.10", "05⟨U+202E⟩.10"),
        ("a\u200bb\u2066c\ufeffd\u00ade", "a⟨U+200B⟩b⟨U+2066⟩c⟨U+FEFF⟩d⟨U+00AD⟩e"),
        ("half\ud83d", "half⟨U+D83D⟩"),
        ("mark\ue0000:1\ue001", "mark⟨U+E000⟩0:1⟨U+E001⟩"),
        ("tag\U000e0041 selector\ufe0f \U000e0100", "tag⟨U+E0041⟩ selector⟨U+FE0F⟩ ⟨U+E0100⟩"),
        ("filler\u3164\u2800", "filler⟨U+3164⟩⟨U+2800⟩"),
        ("line\u2028paragraph\u2029", "line⟨U+2028⟩paragraph⟨U+2029⟩"),
        ("e\u0301", "e\u0301"),
        ("Z" + "\u0301" * 5, "Z" + "\u0301" * 3 + "⟨U+0301⟩" * 2),
        ("a\u0300\u0301^]\u0302\u0303-\\", "a\u0300\u0301^]\u0302\u0303-\\"),
    ],
)
def test_hidden_characters_are_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    shown.encode()


def test_a_line_is_one_line() -> None:
    assert line("a\nb\tc\u2028d") == "a⏎b⇥c⟨U+2028⟩d"
    assert line("x" * 170) == "x" * 160 + " … 10 more characters"


@pytest.mark.parametrize(
    ("text", "limit", "lines", "expected"),
    [
        ("abc", 3, None, Cut("abc", 0)),
        ("abcd", 3, None, Cut("abc", 1)),
        ("a\nb\nc", 10, 3, Cut("a\nb\nc", 0)),
        ("a\nb\nc\n", 10, 3, Cut("a\nb\nc", 1)),
        ("a\nb\nc", 10, 2, Cut("a\nb", 2)),
        ("a\nbbbb\nc", 4, 2, Cut("a\nbb", 4)),
        ("", 3, 1, Cut("", 0)),
    ],
)
def test_a_cut_text_counts_what_it_left_out(
    text: str, limit: int, lines: int | None, expected: Cut
) -> None:
    assert cut(text, limit, lines) == expected


def test_what_is_left_out_is_said() -> None:
    assert left_out(Cut("a", 12_345)) == " … 12,345 more characters"
    assert left_out(Cut("a", 0)) == ""
