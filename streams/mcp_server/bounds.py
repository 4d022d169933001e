"""No answer is larger than a model can take: how large one is, and how it is cut."""

from __future__ import annotations

import json
from typing import Any

ANSWER_BYTES_MAX = 32_000
STRUCTURED_BYTES_MAX = 28_000
TEXT_BYTES_MAX = 3_000
"""The two parts of an answer; what is left is for the envelope."""
RUN_BYTES_MAX = 24_000
"""Of the structured part: a run that failed lies in the details of an error."""


def wire_bytes(value: Any) -> int:
    """The bytes of a value on the wire, at most: some transports write every other letter as `\\uXXXX`."""
    return len(json.dumps(value, separators=(",", ":")))


def cut(text: str, most: int) -> str:
    """The text, or its beginning with a mark where it is longer than so many characters."""
    if len(text) <= most:
        return text
    return text[: most - 1] + "…" if most > 0 else ""


def fitting(text: str, bytes_max: int, start: int = 0, most: int | None = None) -> int:
    """The end of the longest part of a text from `start` whose bytes on the wire are no more than these."""
    low, high = start, len(text) if most is None else min(len(text), start + most)
    while low < high:
        middle = (low + high + 1) // 2
        if wire_bytes(text[start:middle]) <= bytes_max:
            low = middle
        else:
            high = middle - 1
    return low


def cut_bytes(text: str, bytes_max: int) -> str:
    """The text, or its beginning with a mark, in so many bytes on the wire."""
    if wire_bytes(text) <= bytes_max:
        return text
    mark = "…"
    return text[: fitting(text, bytes_max - wire_bytes(mark))] + mark
