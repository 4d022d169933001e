"""Scores of texts are made when they are looked at, and are what adding up word by word gives."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.requests import read_requests
from pml.processors.learning.word_scores import BEST_LEAST, Postings, Scores, WordScores
from pml.processors.memory.embedding import HashedNgrams

SIZE = 5
WORDS = "abcdef"
ITEMS = st.lists(st.integers(0, SIZE - 1), unique=True, max_size=SIZE)
TEXTS = st.lists(st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=9), max_size=6)


@st.composite
def postings(draw: st.DrawFn) -> Postings:
    """Of some words some items, and how much each gets."""
    found = {}
    for word in draw(st.permutations(draw(st.lists(st.sampled_from(WORDS), unique=True)))):
        items = draw(ITEMS)
        weights = st.lists(st.floats(0, 9, width=32), min_size=len(items), max_size=len(items))
        found[word] = (items, draw(weights))
    return found


def added_up(known: Postings, spoken: Sequence[str], dtype: type[np.floating], *, of_best: bool) -> Scores:
    """float32 [SIZE] of one text, by NumPy and one word after the other."""
    found = np.zeros(SIZE, dtype=dtype)
    for word in sorted(set(spoken) & known.keys()):
        found[np.asarray(known[word][0], dtype=int)] += np.asarray(known[word][1], dtype=dtype)
    return (found / max(BEST_LEAST, found.max()) if of_best else found).astype(np.float32)


@pytest.mark.parametrize(("dtype", "of_best"), [(np.float64, True), (np.float32, False)])
@given(known=postings(), texts=TEXTS, drawn=st.randoms())
def test_each_row_is_to_the_last_bit_what_its_words_give(
    dtype: type[np.floating], of_best: bool, known: Postings, texts: list[list[str]], drawn: object
) -> None:
    told = WordScores(known, SIZE, dtype, of_best=of_best).of(texts)
    rows = np.array([*reversed(range(len(texts))), *range(len(texts))], dtype=np.int64)
    found = told.rows(rows)
    assert (found.shape, found.dtype) == ((2 * len(texts), SIZE), np.float32)
    for row, text in zip(found, rows, strict=True):
        assert row.tolist() == added_up(known, texts[text], dtype, of_best=of_best).tolist()


def test_texts_that_are_read_take_no_memory_by_the_vocabulary() -> None:
    """Laid beside every item, these would take 160 MB and their clauses as much again."""
    texts = [f"read the file {number}, then send it to user {number}" for number in range(4_000)]
    descriptions = [f"server tool {number}. does thing {number}" for number in range(5_000)]
    tracemalloc.start()
    found = read_requests(texts, descriptions, HashedNgrams())
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 100e6
    assert found.compared(np.array([3, 17])).clause_lexical.shape == (4, 5_000)
