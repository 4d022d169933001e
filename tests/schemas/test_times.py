"""Times: RFC 3339 outside, milliseconds inside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.schemas.times import from_rfc3339, to_rfc3339

YEAR_9999_MS = 253_402_300_799_999


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123000Z"),
        (-1, "1969-12-31T23:59:59.999000Z"),
        (YEAR_9999_MS, "9999-12-31T23:59:59.999000Z"),
    ],
)
def test_a_time_is_written_in_one_way(time_ms: int, text: str) -> None:
    assert to_rfc3339(time_ms) == text
    assert from_rfc3339(text) == time_ms


@pytest.mark.parametrize(
    "text",
    [
        "2023-11-14T22:13:20.123Z",
        "2023-11-14T22:13:20.123999Z",
        "2023-11-14T23:13:20.123+01:00",
        "2023-11-14T22:13:20.123",
        "2023-11-14 22:13:20.123Z",
    ],
)
def test_other_spellings_of_a_time_are_read(text: str) -> None:
    assert from_rfc3339(text) == 1_700_000_000_123


@given(time_ms=st.integers(-62_135_596_800_000, YEAR_9999_MS))
def test_a_time_comes_back(time_ms: int) -> None:
    assert from_rfc3339(to_rfc3339(time_ms)) == time_ms


@given(times=st.lists(st.integers(0, YEAR_9999_MS), min_size=2, max_size=5))
def test_texts_sort_as_times_do(times: list[int]) -> None:
    assert sorted(map(to_rfc3339, times)) == [to_rfc3339(time_ms) for time_ms in sorted(times)]


@pytest.mark.parametrize("text", ["", "yesterday", "2023-13-01T00:00:00Z", "1700000000"])
def test_what_is_no_time_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"isoformat|month must be"):
        from_rfc3339(text)
