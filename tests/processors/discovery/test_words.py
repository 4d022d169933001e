"""Names are taken apart, endings of grammar go, and nothing a person writes is too much."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.words import (
    CLAUSE_WORDS,
    CLAUSES,
    TEXT_CHARACTERS,
    clauses,
    spoken,
    stem,
    words,
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("files:readFile_v2", "files read file v 2"),
        ("GET /movie/{movie_id}/credits", "get movie movie id credits"),
        ("HTTPServer", "http server"),
        ("getUserID", "get user id"),
        ("", ""),
        ("天气", "天气"),
        ("trouverCafé", "trouver cafe"),
        ("naïve Straße", "naive straße"),
    ],
)
def test_a_name_is_said_in_words(name: str, said: str) -> None:
    assert spoken(name) == said


@pytest.mark.parametrize(
    "forms",
    [
        ("create", "creates", "created", "creating"),
        ("city", "cities"),
        ("file", "files"),
        ("run", "runs", "running"),
        ("call", "calls", "called", "calling"),
        ("search", "searches", "searched", "searching"),
        ("address", "addresses"),
    ],
)
def test_forms_of_one_word_are_one(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


@pytest.mark.parametrize("word", ["is", "status", "bus", "red", "thing", "glass"])
def test_what_only_looks_like_an_ending_stays(word: str) -> None:
    assert stem(word) == word


def test_words_that_every_text_has_are_left_out() -> None:
    assert words("Please read the file for me") == ["read", "file"]


def test_an_intent_is_cut_where_it_asks_for_something_else() -> None:
    assert clauses("Find the cheapest flight to Rome and then send it to my boss. Book a hotel!") == [
        "Find the cheapest flight to Rome",
        "send it to my boss.",
        "Book a hotel!",
    ]


def test_one_request_has_no_clauses() -> None:
    assert clauses("Find the cheapest flight to Rome") == []


@given(st.text(max_size=300))
def test_any_text_has_words_and_at_most_so_many_clauses(text: str) -> None:
    assert all(word and word == word.lower() for word in words(text))
    assert len(clauses(text * 5)) <= CLAUSES


SPLITS = re.compile(r"(?<=[.!?;])\s+|\n+|,\s+|\s+(?:and\s+then|and|then)\s+", re.IGNORECASE)


@given(
    st.lists(st.sampled_from(["and", "Then", "find it", "a", " ", "\n", "\t", ", ", ". ", "!"])).map("".join)
)
def test_clauses_are_what_a_plain_expression_splits(text: str) -> None:
    parts = [part for part in SPLITS.split(text) if part and len(words(part)) >= CLAUSE_WORDS]
    assert clauses(text) == (parts[:CLAUSES] if len(parts) > 1 else [])


@pytest.mark.timeout(60)
@pytest.mark.parametrize("blanks", [" ", " \t", "and ", ", "])
def test_blanks_cost_no_more_than_their_number(blanks: str) -> None:
    """With the plain expression these take from seconds to minutes, and everything else waits for it."""
    text = blanks * (TEXT_CHARACTERS // len(blanks))
    for _ in range(50):
        assert clauses(text) == []
