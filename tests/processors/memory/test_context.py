"""Writer and reader of episodes name a context alike."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.memory.context import TEXT_LENGTH_MAX, Context, context_of, matching

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize("values", [{}, {"domain": ""}, {"domain": 3}, {"domain": None}, [], "docs", None])
def test_what_is_not_named_is_default(values: object) -> None:
    assert context_of("", values).keys == ("default", "default", "default")


def test_keys_come_from_the_type_and_the_context() -> None:
    context = context_of("release", {"domain": "docs", "complexity": "high", "repo": "."})
    assert context.keys == ("release", "docs", "high")
    assert '"repo":"."' in context.text


@given(kind=st.text(max_size=200), values=JSON)
def test_equal_contexts_have_one_hash_and_one_text(kind: str, values: object) -> None:
    context = context_of(kind, values)
    backwards = dict(reversed(values.items())) if isinstance(values, dict) else values
    assert context_of(kind, backwards) == context
    assert context_of(kind, backwards).hash == context.hash
    assert len(context.text) <= TEXT_LENGTH_MAX


def test_the_hash_tells_keys_apart_and_nothing_else() -> None:
    context = context_of("a", {"domain": "b"})
    assert context_of("a", {"domain": "b", "more": 1}).hash == context.hash
    others = {
        context_of("b", {"domain": "a"}).hash,
        context_of("a", {"complexity": "b"}).hash,
        Context().hash,
    }
    assert len(others | {context.hash}) == 4


def test_keys_are_compared_each_with_its_own() -> None:
    assert matching(("a", "b", "c"), ("a", "c", "b")) == 1
    assert matching(("a", "b", "c"), ("a", "b", "c")) == 3
