"""What a call touches: normalised paths, and when two of them overlap (DESIGN §4, condition 3).

A touch is written `server:path`. Two touches of one server overlap if one path is a segment-wise
prefix of the other; `server:` alone is the whole server. An absolute path and a relative one may
name the same thing, which only the server knows, so they count as overlapping.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from unicodedata import normalize

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


def touches_of(
    tool: str,
    templates: Iterable[str] | None,
    arguments: Mapping[str, Any] | None,
    sanitised: Mapping[str, Any] | None,
) -> tuple[str, ...]:
    """The touches of one call.

    Args:
        tool: `server:name`.
        templates: as the permission entry writes them; None means the whole server.
        arguments: full arguments, None where they are not known yet.
        sanitised: the same after the sanitiser; a value that it changed is not written into a touch.
    """
    if templates is None:
        return (_whole(tool.partition(":")[0]),)
    return tuple(sorted({_touch(template, arguments or {}, sanitised or {}) for template in templates}))


def overlap(first: str, second: str) -> bool:
    """Whether two touches may mean the same thing."""
    one, two = _segments(first), _segments(second)
    if one[0] != two[0]:
        return False
    if len(one) > 1 and len(two) > 1 and (one[1] == "/") != (two[1] == "/"):
        return True
    return all(a == b for a, b in zip(one, two, strict=False))


def any_overlap(first: Iterable[str], second: Iterable[str]) -> bool:
    """Whether any touch of one call overlaps any of the other."""
    others = tuple(second)
    return any(overlap(one, other) for one in first for other in others)


def _whole(server: str) -> str:
    return f"{server}:"


def _touch(template: str, arguments: Mapping[str, Any], sanitised: Mapping[str, Any]) -> str:
    server, _, path = template.partition(":")
    values: dict[str, str] = {}
    for name in _PLACEHOLDER.findall(path):
        value = arguments.get(name)
        if not isinstance(value, str) or sanitised.get(name) != value:
            return _whole(server)
        values[name] = value
    filled = _PLACEHOLDER.sub(lambda match: values[match.group(1)], path)
    normal = _normalise(filled)
    return _whole(server) if normal is None else f"{server}:{normal}"


def _normalise(path: str) -> str | None:
    """The path without `.`, `..`, doubled slashes; None where it leaves its root or its root is unclear."""
    if path.startswith("~") or "\\" in path or "\0" in path:
        return None
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not kept:
                return None
            kept.pop()
        elif segment not in {"", "."}:
            kept.append(segment)
    return ("/" if path.startswith("/") else "") + "/".join(kept)


def _segments(touch: str) -> list[str]:
    """A file system may take two spellings of a letter, or of its case, for the same name."""
    server, _, path = normalize("NFC", touch).casefold().partition(":")
    root = ["/"] if path.startswith("/") else []
    return [server, *root, *[segment for segment in path.split("/") if segment]]
