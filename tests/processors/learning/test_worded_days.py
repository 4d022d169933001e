"""Days that are said in words are dates; what is none is left alone."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.worded_days import MONTHS, months_and_days, worded_days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("leave on August 15, 2024, and return on August 18", ["2024-08-15", "2024-08-18"]),
        ("from Dec. 1 to 15th of December 2024", ["2024-12-01", "2024-12-15"]),
        ("on the 20th March", []),
        ("on February 30th, 2024", []),
        ("May I add 3 tasks in 2024? Sept 7th 2023", ["2023-09-07"]),
        ("Version 12, 2024 and Mayor 3, 2024", []),
        ("March 5-7, 2024", []),
    ],
)
def test_days_are_read(text: str, days: list[str]) -> None:
    assert [found.text for found in worded_days(text)] == days


def test_a_day_of_no_year_has_a_month_and_a_day() -> None:
    text = "what happened on December 10th, on 29 February, and on February 30th 2024?"
    found = months_and_days(text)
    assert [span.text for span in found] == ["12-10", "02-29"]
    assert [text[span.start : span.end] for span in found] == ["December 10th", "29 February"]


def test_a_day_stands_where_it_is_said() -> None:
    text = "go on July 4th, 2025 please"
    (found,) = worded_days(text)
    assert text[found.start : found.end] == "July 4th, 2025"


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.booleans())
def test_every_day_is_found_in_both_orders(day: date, month_first: bool) -> None:
    month = MONTHS[day.month - 1].capitalize()
    told = f"{month} {day.day}, {day.year}" if month_first else f"{day.day} {month} {day.year}"
    assert [found.text for found in worded_days(f"on {told}.")] == [day.isoformat()]
