"""Days that a text says in words, as dates: `August 15th, 2024` is `2024-08-15`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Final

from pml.processors.learning.span import Span

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
# A year in which every day is.
_LEAP: Final = "2000"
_SAID: Final = re.compile(
    r"\b(?:(?P<month>[A-Z][a-z]{2,8})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{4}))?"
    r"|(?P<day_first>\d{1,2})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month_after>[A-Z][a-z]{2,8})\.?"
    r"(?:,?\s+(?P<year_last>\d{4}))?)(?![\w/:-])"
)


def worded_days(text: str) -> list[Span]:
    """The days in the order of the text; one without a year has that of the day before it, else behind it.

    Where no day has a year, there is none.
    """
    found = [match for match in _SAID.finditer(text) if _month(match)]
    years = _filled([match["year"] or match["year_last"] for match in found])
    told = [(match, _told(match, year)) for match, year in zip(found, years, strict=True)]
    return [Span(day, match.start(), match.end()) for match, day in told if day]


def months_and_days(text: str) -> list[Span]:
    """The same without their years, which need not be told: `December 10th` is `12-10`."""
    found = [(match, _told(match, _LEAP)) for match in _SAID.finditer(text) if _month(match)]
    return [Span(day.removeprefix(f"{_LEAP}-"), match.start(), match.end()) for match, day in found if day]


def _month(match: re.Match[str]) -> int:
    """From 1; 0 of a word that is no month."""
    word = (match["month"] or match["month_after"]).lower()
    return next((number for number, name in enumerate(MONTHS, start=1) if name.startswith(word)), 0)


def _filled(years: Sequence[str | None]) -> list[str | None]:
    last, filled = next((year for year in years if year), None), list[str | None]()
    for year in years:
        last = year or last
        filled.append(last)
    return filled


def _told(match: re.Match[str], year: str | None) -> str:
    """The date; empty where there is none."""
    if year is None:
        return ""
    try:
        return date(int(year), _month(match), int(match["day"] or match["day_first"])).isoformat()
    except ValueError:
        return ""
