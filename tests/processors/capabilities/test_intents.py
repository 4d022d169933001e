"""Which intents of a capability are kept beside its first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities.intents import INTENT_CHARACTERS_MAX, INTENTS_MAX, with_intent
from pml.schemas.sanitiser.markers import REDACTED


@pytest.mark.parametrize(
    "new",
    ["read the notes!", "of the", "", "x" * (INTENT_CHARACTERS_MAX + 1), f"look at {REDACTED} notes"],
    ids=["same words", "no word", "empty", "a document", "a secret was in it"],
)
def test_what_says_nothing_new_is_not_kept(new: str) -> None:
    assert with_intent("Read the notes", ("Show my diary",), new) == ("Show my diary",)


def test_one_in_other_words_is_kept() -> None:
    assert with_intent("Read the notes", (), "Show my diary") == ("Show my diary",)
    assert with_intent(None, (), "Show my diary") == ("Show my diary",)


def test_of_too_many_the_one_goes_that_is_most_like_another() -> None:
    others = (*(f"word{letter} thing{letter}" for letter in "abcdef"), "read notes quickly")
    assert len(others) == INTENTS_MAX
    assert with_intent("read notes", others, "something else") == (*others[:-1], "something else")
    assert with_intent("something", others, "read notes quickly now") == others


@given(st.lists(st.text("abc ", max_size=12), max_size=30), st.text("abc ", max_size=8))
def test_kept_intents_are_few_and_all_different(intents: list[str], first: str) -> None:
    known: tuple[str, ...] = ()
    for intent in intents:
        known = with_intent(first, known, intent)
    assert len(known) <= INTENTS_MAX
    assert len({*known, first}) == len(known) + 1
    assert set(known) <= set(intents)
