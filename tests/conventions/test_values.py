"""Opening the texts that hold structures: JSON whole or cut, reprs, lists of JSON texts."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from facta.conventions.values import load, load_list, nest, number

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value", "cut"),
    [
        ('{"a": 1}', {"a": 1}, False),
        ("{'a': None, 'b': b'x'}", {"a": None, "b": b"x"}, False),
        (
            '[{"role": "user", "parts": [{"content": "hel',
            [{"role": "user", "parts": [{"content": "hel"}]}],
            True,
        ),
        ('{"a": "b\\n\\n[TRUNCATED]', {"a": "b\n\n[TRUNCATED]"}, True),
        ('[{"a": 1},…cut by the host]', [{"a": 1}], True),
        ("plain text", "plain text", False),
        ("{not json", "{not json", False),
    ],
)
def test_a_text_is_opened(text: str, value: Any, cut: bool) -> None:
    assert load(text) == (value, cut)


def test_a_list_of_json_texts_is_opened_one_by_one() -> None:
    assert load_list(['{"role": "user"}', '{"role": "assist']) == (
        [{"role": "user"}, {"role": "assist"}],
        True,
    )


@given(JSON)
def test_json_comes_back(value: Any) -> None:
    text = orjson.dumps([value]).decode()
    assert load(text) == ([value], False)


@given(st.lists(JSON, min_size=1, max_size=3), st.data())
def test_cut_json_is_a_prefix_and_never_raises(value: list[Any], data: st.DataObject) -> None:
    text = orjson.dumps(value).decode()
    length = data.draw(st.integers(1, len(text)))
    opened, _ = load(text[:length])
    assert isinstance(opened, (list, str))
    if isinstance(opened, list):
        assert opened[:-1] == value[: len(opened[:-1])]


def test_flattened_keys_become_lists_in_order() -> None:
    attrs: Any = {
        "m.1.message.role": "tool",
        "m.0.message.role": "user",
        "m.0.message.contents.0.text": "a",
        "other": 1,
    }
    assert nest(attrs, "m") == [
        {"message": {"role": "user", "contents": [{"text": "a"}]}},
        {"message": {"role": "tool"}},
    ]


@pytest.mark.parametrize(
    ("value", "expected"), [("7", 7), (7.5, 7.5), (True, None), ("x", None), (None, None)]
)
def test_numbers(value: Any, expected: Any) -> None:
    assert number(value) == expected
