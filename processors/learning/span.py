"""A piece of a text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a text and where it stands, in characters; `text` may be another spelling of it."""

    text: str
    start: int
    end: int
