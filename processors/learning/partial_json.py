"""JSON that may have been cut off: what stands there of it.

Texts are what tools gave, so each pattern takes time that grows as the text does: it gives nothing back of
what it took (`++`, `*+`), and what stands at the end is looked for from there.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

_CLOSING = {"{": "}", "[": "]"}
# A string with its end, or with none where the text was cut in it; and what opens, closes and parts.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+("?)|[\[\]{},]')
# Of the text backwards: a number or word that may go on.
_REST = re.compile(r"\s*+[-+\w.…]*+")
# A name that lost its value.
_NAME = re.compile(r'([{,])\s*+"(?:[^"\\]|\\.)*+"\s*+(?::\s*+)?$')
_COMMA = re.compile(r",\s*+$")


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
    opened: list[str] = []
    for match in _TOKEN.finditer(text):
        if match[1] == "":
            text = text[: match.start()]  # whatever stands in a string opens nothing
            break
        _count(match[0], opened)
    body = _without_rest(text, bool(opened) and opened[-1] == "{")
    return body + "".join(_CLOSING[each] for each in reversed(opened))


def _count(token: str, opened: list[str]) -> None:
    if token in _CLOSING:
        opened.append(token)
    elif token in "]}" and opened:
        opened.pop()


def _without_rest(text: str, in_object: bool) -> str:
    """Without a number or word that may go on, and without a name that lost its value."""
    rest = _REST.match(text[::-1])
    body = text[: len(text) - rest.end()] if rest else text
    if in_object:
        body = _NAME.sub(r"\1", body)
    return _COMMA.sub("", body)
