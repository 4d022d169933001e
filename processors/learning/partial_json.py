"""JSON that may have been cut off: what stands there of it."""

from __future__ import annotations

import re
from typing import Any

import orjson

_CLOSING = {"{": "}", "[": "]"}


def read_json(text: str) -> Any:
    """The value of a JSON text; of one that was cut off, all that is whole; None of what is no JSON.

    A string, number or word that the cut went through is left out: nobody knows its end.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:
        return orjson.loads(_mended(text))
    except orjson.JSONDecodeError:
        return None


def _mended(text: str) -> str:
    """The text up to its last whole value, and what is open closed."""
    kept, end = [], 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\]{},]', text):
        kept.append(match)
        end = match.end()
    opened = _opened([match.group() for match in kept])
    if '"' in text[end:]:
        text = text[: end + text[end:].index('"')]
    body = _without_rest(text, bool(opened) and opened[-1] == "{")
    return body + "".join(_CLOSING[each] for each in reversed(opened))


def _opened(tokens: list[str]) -> list[str]:
    opened: list[str] = []
    for token in tokens:
        if token in _CLOSING:
            opened.append(token)
        elif token in "]}" and opened:
            opened.pop()
    return opened


def _without_rest(text: str, in_object: bool) -> str:
    """Without a number or word that may go on, and without a name that lost its value."""
    body = re.sub(r"[-+\w.…]*\s*$", "", text)
    if in_object:
        body = re.sub(r'([{,])\s*"(?:[^"\\]|\\.)*"\s*:?\s*$', r"\1", body)
    return re.sub(r",\s*$", "", body)
