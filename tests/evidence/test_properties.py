"""The pure parts of resolving, against plain models of what they are."""

from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.evidence.harness import IDENTITY, KEY

from facta.ledger.interning import Interning
from facta.model.facts import Item, Part
from facta.model.observation import Object
from facta.resolve.calls import Value, chosen
from facta.resolve.chains import Chains, extend
from facta.resolve.keys import strong
from facta.resolve.sessions import causal
from facta.resolve.turns import RANK, Turn
from facta.resolve.union import Union

NAMES = st.sampled_from("abcdefghij")
PAIRS = st.lists(st.tuples(NAMES, NAMES), max_size=15)


@given(PAIRS, st.randoms(use_true_random=False))
def test_a_union_does_not_depend_on_the_order(pairs: list[tuple[str, str]], draw: Any) -> None:
    one, other = Union(), Union()
    for a, b in pairs:
        one.join(a, b)
    mixed = [(b, a) if draw.random() < 0.5 else (a, b) for a, b in pairs]
    draw.shuffle(mixed)
    for a, b in mixed:
        other.join(a, b)
    assert {n: one.find(n) for n in "abcdefghij"} == {n: other.find(n) for n in "abcdefghij"}


@given(PAIRS)
def test_a_union_is_what_is_connected_and_named_by_its_smallest(
    pairs: list[tuple[str, str]],
) -> None:
    union = Union("abcdefghij")
    near: dict[str, set[str]] = defaultdict(set)
    for a, b in pairs:
        union.join(a, b)
        near[a].add(b)
        near[b].add(a)
    for name in "abcdefghij":
        reached, frontier = {name}, [name]
        while frontier:
            fresh = near[frontier.pop()] - reached
            reached |= fresh
            frontier += fresh
        assert union.find(name) == min(reached)


def _turn(name: str, started: int) -> Turn:
    from facta.model.observation import Observation
    from facta.resolve.turns import Seen

    o = Observation(*("",) * 13, started, started, b"", name)
    return Turn(name, [Seen(o, {})], "s")


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=8),
    st.lists(st.integers(0, 7), min_size=8, max_size=8),
    st.randoms(use_true_random=False),
)
def test_causal_order_has_parents_first_and_does_not_depend_on_arrival(
    starts: list[int], parents: list[int], draw: Any
) -> None:
    turns = [_turn(f"t{n}", at) for n, at in enumerate(starts)]
    for n, turn in enumerate(turns):
        if n and parents[n] < n:
            turn.parent = turns[parents[n]]
    want = [t.turn_id for t in causal(turns)]
    assert sorted(want) == sorted(t.turn_id for t in turns)
    for turn in turns:
        if turn.parent is not None:
            assert want.index(turn.parent.turn_id) < want.index(turn.turn_id)
    free = [t for t in causal(turns) if t.parent is None]
    assert free == sorted(free, key=lambda t: (t.started_ns, t.turn_id))
    draw.shuffle(turns)
    assert [t.turn_id for t in causal(turns)] == want


VALUES = st.builds(
    Value,
    observer=st.sampled_from(sorted(RANK)),
    commit=st.sampled_from("pqr"),
    canonical=st.sampled_from("xy"),
    cut=st.booleans(),
)


@given(st.lists(VALUES, max_size=6))
def test_the_value_that_counts_is_of_the_highest_rank_and_whole(values: list[Value]) -> None:
    best, conflict, changed = chosen(values)
    if not values:
        assert (best, conflict, changed) == (None, False, False)
        return
    assert best is not None
    whole = [v for v in values if not v.cut]
    if not whole:
        assert best is values[0]
        assert (conflict, changed) == (False, False)
        return
    top = min(RANK[v.observer] for v in whole)
    assert RANK[best.observer] == top
    assert not best.cut
    same = {v.canonical for v in whole if RANK[v.observer] == top}
    assert conflict == (len(same) > 1 and best.observer != "later_request")
    told = {v.canonical for v in whole if v.observer == "later_request"}
    assert changed == (len(told) > 1)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_a_later_request_never_takes_the_place_of_what_is_known(values: list[Value]) -> None:
    before, _, _ = chosen(values)
    later = Value("later_request", "z", "z")
    after, _, _ = chosen([*values, later])
    # What an importer tells ranks below all that telemetry does.
    if before is not None and not before.cut and before.observer != "importer":
        assert after == before


TEXTS = st.text(alphabet="abc \n\u00e9", max_size=6)
PARTS = st.one_of(
    st.builds(Part, kind=st.just("text"), text=TEXTS),
    st.builds(Part, kind=st.just("reasoning"), text=TEXTS),
    st.builds(Part, kind=st.just("call"), text=TEXTS, call_id=NAMES, tool=NAMES),
    st.builds(Part, kind=st.just("result"), text=TEXTS, call_id=NAMES),
)
ITEMS = st.builds(
    Item, role=st.sampled_from(["user", "assistant", "tool"]), parts=st.lists(PARTS, max_size=3)
)


def _chain(interning: Interning, items: list[Item]) -> str:
    told = interning.items(items)
    assert told is not None
    return str(told["head"])


def _reader(interning: Interning) -> Chains:
    objects: dict[str, Object] = {o.commit: o for o in interning.objects.values()}
    return Chains(lambda commits: {c: objects[c] for c in commits if c in objects})


@given(st.lists(ITEMS, max_size=6), st.lists(ITEMS, max_size=4))
def test_a_longer_list_shares_the_links_of_the_shorter(
    before: list[Item], more: list[Item]
) -> None:
    interning = Interning(IDENTITY, KEY)
    head, longer = _chain(interning, before), _chain(interning, [*before, *more])
    chains = _reader(interning)
    short = [link.name for link in chains.items(head)]
    whole = chains.items(longer)
    assert [link.name for link in whole][: len(short)] == short
    assert [link.depth for link in whole] == list(range(len(before) + len(more)))
    delta = chains.back(longer, stop=set(short).__contains__)
    assert len(delta) == len(more)
    links = {o.commit for o in interning.objects.values() if o.kind == "link"}
    assert len(links) == len(before) + len(more)


@given(st.lists(ITEMS, min_size=1, max_size=5), st.lists(ITEMS, min_size=1, max_size=5))
def test_different_lists_have_different_heads(one: list[Item], other: list[Item]) -> None:
    interning = Interning(IDENTITY, KEY)
    assert (_chain(interning, one) == _chain(interning, other)) == (one == other)


@given(st.lists(ITEMS, min_size=1, max_size=5))
def test_a_context_is_what_its_items_say_in_their_order(items: list[Item]) -> None:
    interning = Interning(IDENTITY, KEY)
    chains = _reader_of(interning, items)
    context = "0" * 64
    for link in chains[0].items(chains[1]):
        context = extend(context, link.item)
        assert link.context == context
    silent = [Item(i.role, [p for p in i.parts if p.kind != "reasoning"]) for i in items]
    other = Interning(IDENTITY, KEY)
    without = _reader_of(other, silent)
    last = without[0].link(without[1])
    assert last is not None
    assert last.context == context, "reasoning is no part of it"


def _reader_of(interning: Interning, items: list[Item]) -> tuple[Chains, str]:
    head = _chain(interning, items)
    return _reader(interning), head


@given(st.lists(ITEMS, min_size=2, max_size=5), st.integers(0, 4))
def test_a_broken_chain_ends_where_it_is_broken(items: list[Item], at: int) -> None:
    interning = Interning(IDENTITY, KEY)
    head = _chain(interning, items)
    names = [link.name for link in _reader(interning).items(head)]
    gone = names[at % len(names)]
    objects = {o.commit: o for o in interning.objects.values() if o.commit != gone}
    chains = Chains(lambda commits: {c: objects[c] for c in commits if c in objects})
    assert chains.link(head) is None
    assert chains.items(head) == []


@given(st.integers(0, 99_999), st.sampled_from(["call_", "tool_", "", "call-", "fc."]))
def test_a_counter_is_no_name(number: int, prefix: str) -> None:
    assert not strong(f"{prefix}{number}")


def test_drawn_ids_are_names() -> None:
    drawn = (
        "call_T1n1XyZ",
        "toolu_01A09q90qw90lq917835lq9",
        "9f3c2b1a-77aa-4b1c-9d2e-0a1b2c3d4e5f",
    )
    assert all(strong(name) for name in drawn)
    assert not any(
        strong(name) for name in ("", "call_lookup", "0", "call_0_1", "functions.look:0")
    )
