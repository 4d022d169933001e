"""What TypeScript's numbers and texts say, where JSON can say it too."""

from __future__ import annotations

import re

from tree_sitter import Node

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_HEX = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\})\Z")


def number_of(text: str) -> int | float | None:
    """A number as JSON has it: a whole one is an integer; None for one that JSON has not."""
    text = text.replace("_", "").lower()
    if text.endswith("n") or (text[:1] == "0" and text[1:2].isdigit()):
        return None
    if text[:2] in {"0x", "0o", "0b"}:
        value: int | float = int(text, 0)
    else:
        value = float(text)
    if abs(value) > 2**53:
        return None
    return int(value) if value == int(value) else value


def string_of(tree: Node) -> str | None:
    """What a text in quotes says; None where an escape has no meaning in JSON."""
    parts = [_part(each) for each in tree.named_children]
    return None if None in parts else _joined("".join(part or "" for part in parts))


def _part(tree: Node) -> str | None:
    text = (tree.text or b"").decode("utf-8", "replace")
    return text if tree.type == "string_fragment" else escape_of(text)


def escape_of(text: str) -> str | None:
    """The character that an escape stands for."""
    numbered = _HEX.match(text)
    if numbered is not None:
        code = int(next(filter(None, numbered.groups())), 16)
        return chr(code) if code <= 0x10FFFF else None
    return _ESCAPES.get(text[1:], text[1:])


def _joined(text: str) -> str | None:
    """Halves of a character that were written one after the other are that character."""
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None
