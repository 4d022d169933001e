"""Pieces of a text that may be meant as an argument: paths, quoted words, numbers, links, dates, names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from pml.processors.learning.expressions import expressions
from pml.processors.learning.moments import moments
from pml.processors.learning.span import Span
from pml.processors.learning.worded_days import months_and_days, worded_days
from pml.processors.learning.worded_numbers import worded_numbers

TEXT_CHARACTERS: Final = 8_000
SPANS_MOST: Final = 24
SPAN_CHARACTERS: Final = 400

KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "quoted": re.compile(r"""(?<!\w)'([^'\n]+(?:'\w[^'\n]*)*)'(?!\w)|"([^"\n]+)"|[“‘`]([^”’`\n]+)[”’`]"""),
    "url": re.compile(r"(https?://[^\s'\"<>)\]]+[^\s'\"<>)\].,;:!?])"),
    "email": re.compile(r"([\w.+-]+@[\w-]+(?:\.[\w-]+)+)"),
    "date": re.compile(r"(\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?)"),
    "day": re.compile(r"(?<![\w/])(\d{1,2}/\d{1,2}/\d{2,4})(?![\w/])"),
    "time": re.compile(r"(?<![\w:])(\d{1,2}:\d{2}(?:\s?[AaPp]\.?[Mm]\b)?|\d{1,2}\s?[AaPp][Mm]\b)"),
    "phone": re.compile(r"(?<![\w.+-])(\+\d[\d ()-]{5,18}\d|\d{3}-\d{3}-\d{4}|\d{3}-\d{4})(?![\w-])"),
    "measure": re.compile(r"(?<![\w.#-])(\d+(?:\.\d+)?)(?=[A-Za-z]{1,4}\b)(?!(?:st|nd|rd|th|am|pm|AM|PM)\b)"),
    "path": re.compile(
        r"((?<![\w./-])~?(?:[\w.-]{0,80}/){1,20}[\w.-]{0,80}\w|\w[\w-]{0,80}\.[A-Za-z]\w{0,4}(?!\w))"
    ),
    "number": re.compile(r"(?<![\w.#-])(-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?)(?![\w-])"),
    "identifier": re.compile(
        r"(#?\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{2,80}|\b[a-z0-9]{1,40}(?:_[a-z0-9]{1,40}){1,8}\b)"
    ),
    "tag": re.compile(r"([#@]\w+)"),
    "capitals": re.compile(r"\b([A-Z]{2,6})\b"),
    "name": re.compile(r"\b([A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)*)"),
    "clause": re.compile(r"([^.!?;,\n]{3,})"),
}

_PERCENT: Final = re.compile(r"(?<![\w.,-])(\d{1,3}(?:\.\d{1,6})?)\s?(?:%|percent\b)")


def spans(text: str) -> dict[str, list[Span]]:
    """The pieces of each kind in the order of the text; of a long text the end is read.

    Of a kind with more than `SPANS_MOST` pieces the last ones are kept.
    """
    read = text[-TEXT_CHARACTERS:]
    found = {kind: _of_kind(pattern, read) for kind, pattern in KINDS.items()}
    more = {
        "worded day": worded_days(read),
        "month and day": months_and_days(read),
        **moments(read),
        "fraction": _fractions(read),
        "worded number": worded_numbers(read),
        "expression": expressions(read),
    }
    return found | {kind: pieces[-SPANS_MOST:] for kind, pieces in more.items()}


def mentioned(text: str, lowered: str) -> bool:
    """Whether a piece of text stands in another, already in lower case, as words of its own."""
    wanted = text.lower()
    at = lowered.find(wanted) if len(wanted) > 0 else -1
    while at >= 0:
        end = at + len(wanted)
        if not (lowered[max(0, at - 1) : at].isalnum() or lowered[end : end + 1].isalnum()):
            return True
        at = lowered.find(wanted, at + 1)
    return False


def _fractions(text: str) -> list[Span]:
    """`5%` is 0.05."""
    return [
        Span(f"{Decimal(match[1]) / 100:f}", match.start(), match.end()) for match in _PERCENT.finditer(text)
    ]


def _of_kind(pattern: re.Pattern[str], text: str) -> list[Span]:
    found = []
    for match in pattern.finditer(text):
        group = next(number for number, each in enumerate(match.groups(), 1) if each is not None)
        piece = match.group(group).strip()
        if piece and len(piece) <= SPAN_CHARACTERS:
            found.append(Span(piece, match.start(group), match.end(group)))
    return found[-SPANS_MOST:]
