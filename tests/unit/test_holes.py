"""Summaries inside longer texts become holes, and what stands around them stays."""

from hypothesis import given
from hypothesis import strategies as st

from facta.resolve.holes import Hole, Ux, cut

SUMMARY = "The user wants order 7 checked before any refund."
OTHER = "checked before any refund"


def test_a_wrapped_summary_is_cut_out() -> None:
    text = f"<think>{SUMMARY}</think> Done. {SUMMARY}"
    shown, holes = Ux({"c1": SUMMARY}).cut("t", text)
    assert shown == f"<think>[ux {len(SUMMARY)}]</think> Done. [ux {len(SUMMARY)}]"
    assert holes == [Hole(7, len(SUMMARY), "c1"), Hole(text.rindex(SUMMARY), len(SUMMARY), "c1")]


def test_a_summary_inside_another_gives_one_hole() -> None:
    shown, holes = Ux({"inner": OTHER, "outer": SUMMARY}).cut("t", f"a {SUMMARY} b")
    assert (shown, holes) == (f"a [ux {len(SUMMARY)}] b", [Hole(2, len(SUMMARY), "outer")])


def test_a_text_without_summaries_is_left_alone() -> None:
    assert Ux({"c1": SUMMARY}).cut("t", "nothing of the kind") == ("nothing of the kind", [])


@given(
    st.lists(st.text(min_size=24, max_size=40), max_size=4),
    st.lists(st.text(max_size=30), max_size=5),
)
def test_no_summary_is_left_and_nothing_else_is_lost(
    summaries: list[str], around: list[str]
) -> None:
    text = "|".join(word for pair in zip(around, summaries, strict=False) for word in pair)
    ux = Ux({f"c{n}": summary for n, summary in enumerate(summaries)})
    shown, holes = ux.cut("t", text)
    kept = sum(hole.length for hole in holes)
    assert len(shown) == len(text) - kept + sum(len(f"[ux {h.length}]") for h in holes)
    assert cut(text, []) == text
    for hole in holes:
        assert text[hole.offset : hole.offset + hole.length] in summaries
