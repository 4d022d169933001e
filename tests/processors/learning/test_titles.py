"""A text names a tool as far as it says the words that the tool is called by."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.discovery.lexical import rarity
from pml.processors.discovery.words import words
from pml.processors.learning.titles import titles
from pml.processors.learning.word_scores import Scores, WordScores

NAMED = ["", "files read. reads whatever is there", "files remove. user", "mail send. recipient"]


def shares(texts: list[str], descriptions: list[str] = NAMED) -> Scores:
    """float32 [texts, descriptions]: how much of each name a text says."""
    scores = WordScores(titles(descriptions), len(descriptions), np.float32)
    return scores.of([words(text) for text in texts]).rows(np.arange(len(texts)))


def test_of_a_name_counts_what_is_said_and_rare_words_count_more() -> None:
    found = shares(["please remove it", "Removing the files", "reads", "", "recipient, user, whatever"])
    # Of four names two have "file", each other word stands in one.
    common, rare = rarity(4, 2), rarity(4, 1)
    assert found[0].tolist() == pytest.approx([0, 0, rare / (common + rare), 0])
    assert found[1].tolist() == pytest.approx([0, common / (common + rare), 1, 0])
    assert found[2].tolist() == pytest.approx([0, rare / (common + rare), 0, 0])
    assert not found[3:].any()


def test_a_word_said_twice_counts_once() -> None:
    once, twice = shares(["send the mail", "send the mail, send the mail"])
    assert once.tolist() == twice.tolist()
    assert once[3] == pytest.approx(1)


def test_without_names_or_texts_there_is_nothing() -> None:
    assert shares(["read"], []).shape == (1, 0)
    assert shares([]).shape == (0, 4)
