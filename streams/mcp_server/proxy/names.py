"""The names under which tools of other servers are offered (CONTRACT.md, MCP tools). Pure.

A name is looked up in a table that is made of all tools at once; nobody takes one apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from hashlib import blake2b

from pml.schemas.identifiers import split_tool

NAME_MAX = 48
SEPARATOR = "__"
# Hexadecimal digits of the hash: more only where fewer do not tell two tools apart.
DIGITS = (8, 16, 32)
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")


def proxied_names(tools: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """A name for each tool `server:name`; the same set has the same names, in whatever order it comes.

    It is `<server>__<tool>`, with `_` for what clients do not take. One that is too long, or that two
    would have, ends in a hash of the tool.

    Args:
        taken: names that are others'.
    """
    names = {tool: plain_name(tool) for tool in sorted(set(tools))}
    for digits in DIGITS:
        wrong = _wrong(names, taken)
        if not wrong:
            break
        names.update({tool: hashed_name(tool, digits) for tool in wrong})
    return names


def plain_name(tool: str) -> str:
    """Server and tool, in the letters that clients take."""
    return _FOREIGN.sub("_", SEPARATOR.join(split_tool(tool)))


def hashed_name(tool: str, digits: int) -> str:
    """The beginning of the plain name and a hash of the tool, in as many letters as clients take."""
    end = f"_{blake2b(tool.encode(errors='surrogatepass')).hexdigest()[:digits]}"
    return plain_name(tool)[: NAME_MAX - len(end)] + end


def _wrong(names: Mapping[str, str], taken: Collection[str]) -> list[str]:
    """The tools whose name is too long or not theirs alone."""
    count = Counter(names.values())
    return [tool for tool, name in names.items() if len(name) > NAME_MAX or count[name] > 1 or name in taken]
