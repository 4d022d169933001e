"""Small numbers that a text says in words: `two tickets` has a 2."""

from __future__ import annotations

import re
from typing import Final

from pml.processors.learning.span import Span

NUMBERS: Final = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "dozen": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "hundred": 100,
    "thousand": 1_000,
}
_SAID: Final = re.compile(rf"(?<![\w-])({'|'.join(NUMBERS)})(?![\w-])", re.IGNORECASE)


def worded_numbers(text: str) -> list[Span]:
    """The numbers in the order of the text, in digits."""
    return [
        Span(str(NUMBERS[match[1].lower()]), match.start(), match.end()) for match in _SAID.finditer(text)
    ]
