"""Names have numbers that do not depend on the order in which they were met."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary


def test_the_same_names_have_the_same_numbers_whatever_their_order() -> None:
    one, other = Vocabulary.of(["b:y", "a:x", "b:y"]), Vocabulary.of(["a:x", "b:y"])
    assert one == other
    assert one.ids(["a:x", "b:y", "c:new"]).tolist() == [1, 2, UNKNOWN]
    assert [one.name(number) for number in range(one.size)] == [None, "a:x", "b:y"]


def test_extending_changes_no_number() -> None:
    known = Vocabulary.of(["m", "k"])
    more = known.extended(["a", "m", "z"])
    assert more.ids(known.names).tolist() == known.ids(known.names).tolist()
    assert more.names == ("k", "m", "a", "z")


def test_a_number_that_it_does_not_have_is_told() -> None:
    with pytest.raises(IndexError, match="no number 2"):
        Vocabulary.of(["a"]).name(2)
    with pytest.raises(ValueError, match="twice"):
        Vocabulary(("a", "a"))


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=5)))
def test_arrays_give_the_same_vocabulary(names: list[str]) -> None:
    known = Vocabulary.of(names)
    assert Vocabulary.from_arrays(known.to_arrays()) == known
