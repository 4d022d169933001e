"""Texts of agents and tools as a person may see them: nothing in them moves, hides or colours anything."""

from __future__ import annotations


def printable(text: str, keep: str = "\n\t") -> str:
    """The text with what steers a terminal, or turns or hides letters, written out: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else _escaped(ord(letter)) for letter in text
    )


def _escaped(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
