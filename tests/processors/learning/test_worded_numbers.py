"""Small numbers in words are numbers."""

from __future__ import annotations

import pytest

from pml.processors.learning.worded_numbers import NUMBERS, worded_numbers


@pytest.mark.parametrize("word", NUMBERS)
def test_every_word_is_its_number(word: str) -> None:
    text = f"buy {word.capitalize()} tickets"
    (found,) = worded_numbers(text)
    assert (found.text, text[found.start : found.end].lower()) == (str(NUMBERS[word]), word)


def test_parts_of_words_are_none() -> None:
    assert worded_numbers("someone at one-off tension, twofold, tens") == []
