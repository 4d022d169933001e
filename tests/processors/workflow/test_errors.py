"""A tool's error text becomes one of the contract's types, in the contract's order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.errors import classify


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Request timed out after 30 s", "TIMEOUT"),
        ("connect ETIMEDOUT 10.0.0.1:443", "TIMEOUT"),
        ("HTTP 504", "TIMEOUT"),
        ("EACCES: permission denied, open '/etc/shadow'", "PERMISSION"),
        ("status code: 403", "PERMISSION"),
        ("ENOENT: no such file or directory", "NOT_FOUND"),
        ("Unknown tool: frobnicate", "NOT_FOUND"),
        ("1 validation error for read_file", "VALIDATION"),
        ("'path' is a required property", "VALIDATION"),
        ("ECONNREFUSED 127.0.0.1:5432", "NETWORK"),
        ("error 503", "NETWORK"),
        ("the tool is on strike", "UNKNOWN"),
        ("line 404 of the poem", "UNKNOWN"),
        ("", "UNKNOWN"),
    ],
)
def test_the_type_follows_from_the_words(message: str, kind: str) -> None:
    assert classify(message) == kind


def test_the_first_type_of_the_contract_wins_where_several_fit() -> None:
    assert classify("network timeout: permission denied, file not found, invalid") == "TIMEOUT"
    assert classify("network: permission denied, file not found, invalid") == "PERMISSION"
    assert classify("network: file not found, invalid") == "NOT_FOUND"
    assert classify("network: invalid") == "VALIDATION"


@given(st.text(), st.text())
def test_letter_case_does_not_matter(before: str, after: str) -> None:
    text = f"{before} timed out {after}"
    assert classify(text) == classify(text.replace("timed out", "TIMED OUT")) == "TIMEOUT"


def test_a_long_text_is_judged_by_its_beginning() -> None:
    assert classify("x" * 10_000 + " timed out") == "UNKNOWN"


def test_only_the_first_4096_characters_are_read() -> None:
    for before, kind in ((4_086, "TIMEOUT"), (4_087, "UNKNOWN")):
        assert classify("x" * before + " timed out") == kind
