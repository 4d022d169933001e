"""BM25 over postings is BM25 by the book."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.lexical import LENGTH_SHARE, SATURATION, Lexical, counted
from tests.processors.discovery.small_catalog import WORDS

documents = st.lists(st.lists(st.sampled_from(WORDS), max_size=10), max_size=8)


def by_the_book(texts: list[list[str]], question: list[str], number: int) -> float:
    mean = sum(map(len, texts)) / len(texts)
    total = 0.0
    for word in set(question):
        having = sum(word in text for text in texts)
        count = texts[number].count(word)
        rarity = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        length = 1 - LENGTH_SHARE + LENGTH_SHARE * len(texts[number]) / (mean or 1)
        total += rarity * count * (SATURATION + 1) / (count + SATURATION * length)
    return total


@given(documents, st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6))
def test_scores_are_those_of_the_formula(texts: list[list[str]], question: list[str]) -> None:
    scores = Lexical([counted(text) for text in texts]).scores(question)
    assert list(scores) == pytest.approx(
        [by_the_book(texts, question, number) for number in range(len(texts))]
    )


def test_a_rare_word_counts_more_and_a_long_text_less() -> None:
    index = Lexical([counted(text.split()) for text in ("mail a", "mail rare", "mail a b c d e f g")])
    scores = index.scores(["mail", "rare"])
    assert scores[1] > scores[0] > scores[2] > 0
