"""What can be taken out of a JSON value as an argument: its fields and items, each under the path to it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from pml.processors.learning.partial_json import read_json
from pml.schemas.canonical import NotJson, canonical_json
from pml.schemas.sanitiser.markers import REDACTED

# Of one value at most so many fields and items are looked at, and of a list so many items.
NODES_MOST: Final = 256
ITEMS_MOST: Final = 32
# Larger ones are no arguments that anybody would guess right.
VALUE_BYTES_MOST: Final = 4_096
TEXT_BYTES_MOST: Final = 65_536
_JSON = re.compile(r"\s*[\[{]")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value in another one.

    `pattern` is the path with `[]` for every item, `flights[].id`; `name` its last field; `spelling` the
    value's, empty where it has none. `secret`: the log has it not as it is.
    """

    pattern: str
    name: str
    value: Any
    spelling: bytes = b""
    secret: bool = False


def leaves(value: Any) -> list[Leaf]:
    """The fields and items of a value, those near its top first; the value itself is not among them.

    An MCP result is looked at as its structured content, and `content` beside it. Text that is JSON, also
    JSON that was cut off, is looked into.
    """
    found: list[Leaf] = []
    waiting = deque([Leaf("", "", unwrapped(value))])
    while waiting and len(found) < NODES_MOST:
        leaf = waiting.popleft()
        if leaf.pattern and leaf.value is not None and fits(leaf.value):
            found.append(replace(leaf, spelling=spelled(leaf.value) or b""))
        waiting.extend(_inner(leaf))
    return found


def unwrapped(value: Any) -> Any:
    """A tool's result as its fields; any other value as it is."""
    if not isinstance(value, Mapping) or not isinstance(value.get("content"), list):
        return value
    structured = value.get("structured")
    if not isinstance(structured, Mapping):
        return {"content": value["content"]} if "structured" in value else value
    return {"content": value["content"], **structured}


def spelled(value: Any) -> bytes | None:
    """The one spelling of a JSON value, by which values are compared; None of what is none."""
    try:
        return canonical_json(value)
    except NotJson:
        return None


def is_redacted(spelling: bytes) -> bool:
    """Whether something was taken out of what is spelled so."""
    return REDACTED.encode() in spelling


def fits(value: Any) -> bool:
    """Whether a value is small enough to be taken as an argument."""
    if isinstance(value, str):
        return len(value) <= VALUE_BYTES_MOST
    if not isinstance(value, (Mapping, list)):
        return True
    if len(value) > ITEMS_MOST:
        return False
    try:
        return len(orjson.dumps(value)) <= VALUE_BYTES_MOST
    except orjson.JSONEncodeError:
        return False


def _inner(leaf: Leaf) -> list[Leaf]:
    value = leaf.value
    if isinstance(value, str) and _JSON.match(value) and len(value) <= TEXT_BYTES_MOST:
        value = read_json(value)
    if isinstance(value, Mapping):
        named = [(str(name), inner) for name, inner in list(value.items())[:NODES_MOST]]
        return [Leaf(f"{leaf.pattern}.{name}".lstrip("."), name, inner) for name, inner in named]
    if isinstance(value, list):
        return [Leaf(f"{leaf.pattern}[]", leaf.name, inner) for inner in value[:ITEMS_MOST]]
    return []
