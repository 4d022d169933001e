"""Texts of agents and tools as a person may see them: nothing in them moves, hides or colours anything."""

from __future__ import annotations

import json

LINES = "\n\t"
SPELLING = "\u00a0\u200c\u200d"
"""A space that does not break, and what parts or joins letters, as in Persian, Hindi and emoji."""
PLAIN = LINES + SPELLING


def printable(text: str, keep: str = PLAIN) -> str:
    """The text with what steers a terminal, or turns or hides letters, written out: `\\x1b`, `\\u202e`.

    Args:
        keep: what stays besides. Where a person consents to exactly this text it is nothing: two names that
            differ in what nobody sees must not look the same.
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else _escaped(ord(letter)) for letter in text
    )


def printable_json(text: str) -> str:
    """JSON of the same value, with the same written out as JSON writes it: `\\u001b`, `\\u202e`."""
    return "".join(
        letter if letter.isprintable() or letter in PLAIN else json.dumps(letter)[1:-1] for letter in text
    )


def _escaped(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
