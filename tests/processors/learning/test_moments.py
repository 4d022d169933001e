"""Days with a time are one value in the spellings that tools take; each time has the day that is nearest."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.moments import APART_MOST, SPELLINGS, moments


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("remind me on March 16th, 2023 at 2:30 PM.", ["2023-03-16 14:30:00"]),
        (
            "from 11:00AM to 1:00PM on March 26, 2023, please",
            ["2023-03-26 11:00:00", "2023-03-26 13:00:00"],
        ),
        (
            "9 AM on May 1st, 2024 and 10 a.m. on May 2nd",
            ["2024-05-01 09:00:00", "2024-05-02 10:00:00"],
        ),
        (
            "May 1st, 2024 at 12am, and May 2nd at 12 p.m. sharp",
            ["2024-05-01 00:00:00", "2024-05-02 12:00:00"],
        ),
        ("at 09:05:07 of 2024-02-29", ["2024-02-29 09:05:07"]),
        ("2024-02-29T23:15 it is", []),
        ("at 7 PM, but no day", []),
        ("on 2024-02-29. At 7 PM I sleep", []),
        (f"on 2024-02-29{',' * APART_MOST}7 PM", ["2024-02-29 19:00:00"]),
        (f"on 2024-02-29,{',' * APART_MOST}7 PM", []),
        ("on 2024-02-30 at 7 PM, on 2024-03-01 at 13 PM", []),
        ("on March 16th at 7 PM", []),
    ],
)
def test_moments_are_read(text: str, found: list[str]) -> None:
    assert [span.text for span in moments(text)["moment"]] == found


def test_a_moment_has_every_spelling_and_stands_where_it_is_said() -> None:
    text = "come on July 4th, 2025 at 8:15 pm please"
    told = moments(text)
    assert {kind: [span.text for span in spans] for kind, spans in told.items()} == {
        "moment": ["2025-07-04 20:15:00"],
        "moment in minutes": ["2025-07-04 20:15"],
        "moment with T": ["2025-07-04T20:15:00"],
    }
    for (span,) in told.values():
        assert text[span.start : span.end] == "July 4th, 2025 at 8:15 pm"


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.times(), st.booleans(), st.booleans())
def test_every_minute_is_found_however_it_is_said(said: date, at: time, half: bool, worded: bool) -> None:
    moment = datetime.combine(said, at)
    day = f"{moment:%B} {moment.day}, {moment.year}" if worded else moment.date().isoformat()
    hour = f"{moment.hour % 12 or 12}:{moment:%M} {'PM' if moment.hour >= 12 else 'AM'}"
    told = moments(f"meet me on {day} at {hour if half else format(moment, '%H:%M')} there")
    assert [span.text for span in told["moment"]] == [moment.strftime(SPELLINGS["moment"])[:-2] + "00"]
