"""Days with a time that a text says, as one value: `March 16th, 2023 at 2:30 PM` is `2023-03-16 14:30:00`."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import datetime, time
from typing import Final

from pml.processors.learning.span import Span
from pml.processors.learning.worded_days import worded_days

# Between a day and its time stand at most so many characters, and no end of a sentence.
APART_MOST: Final = 60
# The spellings that are offered, by the kind of their pieces: which one a parameter takes is learned.
SPELLINGS: Final[Mapping[str, str]] = {
    "moment": "%Y-%m-%d %H:%M:%S",
    "moment in minutes": "%Y-%m-%d %H:%M",
    "moment with T": "%Y-%m-%dT%H:%M:%S",
}
_DAY: Final = re.compile(r"(?<![\w-])\d{4}-\d{2}-\d{2}(?![\d-])")
_TIME: Final = re.compile(
    r"(?<![\w:.])(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)?"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\b\.?|(?<=:\d\d)(?![\w:]))"
)
_SENTENCE_END: Final = re.compile(r"[.!?]\s")


def moments(text: str) -> dict[str, list[Span]]:
    """By kind of `SPELLINGS` the moments in the order of their times; each time has the nearest day."""
    days = sorted((*worded_days(text), *_days(text)), key=lambda span: span.start)
    found = [_moment(text, match, days) for match in _TIME.finditer(text)] if days else []
    told = [each for each in found if each is not None]
    return {
        kind: [Span(moment.strftime(spelling), start, end) for moment, start, end in told]
        for kind, spelling in SPELLINGS.items()
    }


def _days(text: str) -> list[Span]:
    return [Span(match.group(), match.start(), match.end()) for match in _DAY.finditer(text)]


def _moment(text: str, match: re.Match[str], days: Sequence[Span]) -> tuple[datetime, int, int] | None:
    """The moment and where it stands; None where no day is near, or there is no such time or day."""
    behind = bisect_right(days, match.start(), key=lambda day: day.start)
    beside = days[max(0, behind - 1) : behind + 1]
    day = min(beside, key=lambda each: _apart(text, match, each))
    if _apart(text, match, day) > APART_MOST:
        return None
    try:
        moment = datetime.combine(datetime.fromisoformat(day.text).date(), _time(match))
    except ValueError:
        return None
    return moment, min(day.start, match.start()), max(day.end, match.end())


def _apart(text: str, match: re.Match[str], day: Span) -> int:
    """Characters between a time and a day; more than any where a sentence ends between them."""
    start, end = min(match.end(), day.end), max(match.start(), day.start)
    return len(text) + APART_MOST + 1 if _SENTENCE_END.search(text, start, end) else end - start


def _time(match: re.Match[str]) -> time:
    """Raises ValueError where there is none such."""
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"{hour} is no hour of half a day")
        hour = hour % 12 + (12 if match["half"] in "Pp" else 0)
    return time(hour, int(match["minute"] or 0), int(match["second"] or 0))
