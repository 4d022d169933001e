"""What a value looks like, whatever it says: a parameter wants values of a look (`2024-08-15`, `AAPL`)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import orjson

from pml.processors.learning.argument_candidates import LEFT_OUT

# From the most particular look to the least; the first that fits the whole text. Tools gave these texts: no
# pattern may try two ways to share one stretch of it out.
LOOKS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("empty", r"\s*"),
        ("date", r"\d{4}-\d{2}-\d{2}"),
        ("moment", r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}.*"),
        ("day", r"\d{1,2}/\d{1,2}/\d{2,4}"),
        ("month and day", r"\d{2}-\d{2}"),
        ("time", r"\d{1,2}(?::\d{2})+(?:\s?[APap][Mm])?|\d{1,2}\s?[APap][Mm]"),
        ("integer", r"[+-]?\d{1,6}"),
        ("digits", r"\+?[\d ()-]{7,}"),
        ("decimal", r"[+-]?\d+\.\d+"),
        ("email", r"[^@\s]+@[^@\s]+\.\w+"),
        ("link", r"\w+://\S+"),
        ("tag", r"[#@]\w+"),
        ("file", r"[^\s/]+\.[A-Za-z]\w{0,4}"),
        ("path", r"[^\s/]*+/\S*+"),
        ("code", r"[A-Z]{1,6}"),
        ("key", r"(?=\S*\d)(?=\S*[A-Za-z])[\w#-]+"),
        ("snake", r"[a-z]+(?:[_-][a-z]+)+"),
        ("name", r"[A-Z][\w'-]+"),
        ("word", r"[a-z]+"),
        ("names", r"[A-Z][\w'.-]*(?:,?\s+[A-Z&][\w'.-]*)+"),
        ("words", r"\S+(?:\s+\S+){1,3}"),
        ("symbols", r"\S+"),
    )
)
OTHER: Final = "sentence"


@lru_cache(65_536)
def shape_of(value: bytes) -> str:
    """The look of a spelled value: of a text one of `LOOKS`, else its type, of a list its first item's."""
    return "left out" if value == LEFT_OUT else _shape(orjson.loads(value))


def _shape(told: Any) -> str:
    if isinstance(told, str):
        return next((name for name, look in LOOKS if look.fullmatch(told)), OTHER)
    if isinstance(told, list):
        return f"list of {_shape(told[0])}" if told else "list"
    if type(told) is int:
        return f"int {min(len(str(abs(told))), 7)}"
    return type(told).__name__
