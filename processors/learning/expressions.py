"""Sums and products that a text writes down, as they are written: `(4*2)/(1+3)`."""

from __future__ import annotations

import re
from typing import Final

from pml.processors.learning.span import Span

TERMS_MOST: Final = 24
_TERM: Final = r"(?:\(\s?){0,4}-?\d{1,18}(?:\.\d{1,18})?(?:\s?\)){0,4}"
_WRITTEN: Final = re.compile(rf"(?<![\w./)-]){_TERM}(?:\s?[-+*/^]\s?{_TERM}){{1,{TERMS_MOST - 1}}}(?![\w/-])")
# `2024-08-15`, `555-1234` and `120/80` are none: a minus or a slash alone stands between blanks.
_SURELY: Final = re.compile(r"[+*^(]|\s[-/]\s")


def expressions(text: str) -> list[Span]:
    """The expressions in the order of the text, without parentheses that the text opened or closes."""
    found = [_balanced(match) for match in _WRITTEN.finditer(text)]
    return [span for span in found if _SURELY.search(span.text)]


def _balanced(match: re.Match[str]) -> Span:
    start, piece = match.start(), match.group()
    while piece.startswith("(") and piece.count("(") > piece.count(")"):
        start, piece = start + 1, piece[1:]
    while piece.endswith(")") and piece.count(")") > piece.count("("):
        piece = piece[:-1].rstrip()
    return Span(piece, start, start + len(piece))
