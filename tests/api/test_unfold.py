"""Unfolding of sightings as a pure function, against a plain model of item lists."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from facta.store.unfold import Chain


def turn(turn_id: str, context_of: str = "", kept: int = 0) -> dict[str, Any]:
    return {"turn_id": turn_id, "context_of": context_of, "context_kept": kept}


def sighting(turn_id: str, item: int, direction: str = "request") -> dict[str, Any]:
    place = {"turn_id": turn_id, "item": item, "position": f"{item}.0", "direction": direction}
    return place | {"kind": "openai.reasoning", "size": 9, "sha256": f"{turn_id}-{item}"}


def places(chain: Chain, turn_id: str) -> list[tuple[str, int, str]]:
    return [
        (row["direction"], row["item"], row["first_turn_id"]) for row in chain.sightings(turn_id)
    ]


def test_what_a_turn_keeps_is_cut_at_every_step_back() -> None:
    turns = [turn("a"), turn("b", "a", 3), turn("c", "b", 2), turn("d", "c", 5)]
    own = [
        sighting("a", 0),
        sighting("a", 2),
        sighting("a", 9, "response"),
        sighting("b", 3),
        sighting("c", 2),
        sighting("c", 4),
        sighting("d", 5),
    ]
    chain = Chain.of(turns, own)
    assert places(chain, "a") == [
        ("request", 0, "a"),
        ("request", 2, "a"),
        ("response", 9, "a"),
    ]
    assert places(chain, "b") == [("request", 0, "a"), ("request", 2, "a"), ("request", 3, "b")]
    assert places(chain, "c") == [("request", 0, "a"), ("request", 2, "c"), ("request", 4, "c")]
    assert [item for _, item, _ in places(chain, "d")] == [0, 2, 4, 5]
    assert chain.count_inherited("d") == 3


def test_what_lies_beside_the_lists_is_not_carried() -> None:
    aside = sighting("a", 0) | {"position": ""}
    chain = Chain.of([turn("a"), turn("b", "a", 2)], [aside, sighting("a", 1)])
    assert places(chain, "b") == [("request", 1, "a")]


def test_a_place_that_a_second_observer_tells_again_is_shown_once() -> None:
    again = sighting("a", 1) | {"turn_id": "b"}
    other = sighting("a", 1) | {"turn_id": "b", "sha256": "other"}
    chain = Chain.of(
        [turn("a"), turn("b", "a", 2)], [sighting("a", 0), sighting("a", 1), again, other]
    )
    assert places(chain, "b") == [("request", 0, "a"), ("request", 1, "b"), ("request", 1, "b")]


def test_a_circle_and_a_missing_turn_end_the_walk() -> None:
    chain = Chain.of(
        [turn("a", "b", 5), turn("b", "a", 5), turn("c", "gone", 5)],
        [sighting("a", 0), sighting("b", 1), sighting("gone", 2), sighting("lost", 3)],
    )
    assert places(chain, "a") == [("request", 1, "b"), ("request", 0, "a")]
    assert places(chain, "c") == [("request", 2, "gone")]
    assert chain.ids() == ["a", "b", "c", "gone", "lost"]


def test_a_long_session_does_not_recurse() -> None:
    turns = [turn("0")] + [turn(str(n), str(n - 1), n) for n in range(1, 5000)]
    own = [sighting(str(n), n) for n in range(5000)]
    chain = Chain.of(turns, own)
    assert [item for _, item, _ in places(chain, "4999")] == list(range(5000))


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(0, 4)), max_size=12))
def test_unfolding_gives_back_the_whole_lists(drawn: list[tuple[int, int, int]]) -> None:
    """Each turn's request is a prefix of an earlier request and new items, all of them sealed."""
    lists: list[list[str]] = []
    turns, own = [], []
    for number, (parent, kept, new) in enumerate(drawn):
        before = lists[parent % number] if number else []
        shared = min(kept, len(before))
        whole = before[:shared] + [f"{number}-{step}" for step in range(new)]
        lists.append(whole)
        turns.append(turn(str(number), str(parent % number) if number else "", shared))
        own += [
            sighting(str(number), item) | {"value": whole[item]}
            for item in range(shared, len(whole))
        ]
    chain = Chain.of(turns, own)
    for number, whole in enumerate(lists):
        assert [row["value"] for row in chain.sightings(str(number))] == whole
