"""Patterns of arguments: from full values to what may be kept, and to features (spec story 12.7)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pml.schemas.argument_pattern import ArgumentPattern
from pml.schemas.canonical import NotJson, value_hash

ARGUMENTS_MOST: Final = 16
CATEGORIES_MOST: Final = 8
CATEGORY_CHARACTERS: Final = 32
CATEGORY_DIGITS: Final = 8
_PATH_CHARACTERS: Final = 1_024
_NAMES_KEPT: Final = 4_096
_NAME = re.compile(r"[A-Za-z_][\w.-]{0,63}$")
_PATH_NAME = re.compile(
    r"(?:^|_)(?:path|file|filepath|filename|folder|directory|dir)(?:_?name)?$", re.IGNORECASE
)
_PATH = re.compile(r"(?:~?/|\.{1,2}/|[A-Za-z]:\\|[\w.-]+/)[^\s:*?\"<>|]*$|[\w-][\w.-]*\.[A-Za-z]\w{0,4}$")
_FILE = re.compile(r"[^/\\]\.([A-Za-z][A-Za-z0-9]{0,7})$")
_CHANNEL_NAME = re.compile(r"(?:^|_)channel(?:_?(?:id|name))?$", re.IGNORECASE)
_CHANNEL = re.compile(r"#[A-Za-z][\w-]{0,79}$")
_CATEGORY = re.compile(r"[#@.]?\w[\w.:/+-]*$")
_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
    type(None): "null",
}


def pattern_of(arguments: Mapping[str, Any], hash_key: bytes) -> ArgumentPattern:
    """The pattern of the full arguments of a call. Names that are no plain words are counted and not told.

    Args:
        arguments: JSON values by name.
        hash_key: the installation key, as for `arguments_hash`.
    """
    told = {name: arguments[name] for name in sorted(arguments) if _is_told(name)}
    texts = [(name, text) for name, value in told.items() for text in _texts(value)]
    files = [text for name, text in texts if _is_path(name, text)]
    return ArgumentPattern(
        has_file_path=bool(files),
        file_extension=next(filter(None, map(_extension, files)), None),
        has_channel_ref=any(_is_channel(name, text) for name, text in texts),
        argument_count=len(arguments),
        types={
            name: _TYPES.get(type(value), "object") for name, value in list(told.items())[:ARGUMENTS_MOST]
        },
        categories=_categories(told, hash_key),
    )


def features_of(tool: str, pattern: ArgumentPattern | Mapping[str, Any] | None) -> list[str]:
    """The names of what holds of a call, each once: what a model of success, or a ranker, learns weights for.

    Args:
        tool: `server:name`; every feature holds of it alone.
        pattern: as an event or a trace has it; None: nothing is known.
    """
    if pattern is None:
        return [f"tool {tool}"]
    known = pattern if isinstance(pattern, ArgumentPattern) else ArgumentPattern.model_validate(pattern)
    return [f"tool {tool}", *(f"{tool} {each}" for each in _named(known))]


def _named(pattern: ArgumentPattern) -> Iterator[str]:
    yield f"count {min(pattern.argument_count, ARGUMENTS_MOST)}"
    if pattern.has_file_path:
        yield f"path {pattern.file_extension or 'without extension'}"
    if pattern.has_channel_ref:
        yield "channel"
    yield from (f"type {name} {kind}" for name, kind in sorted(pattern.types.items()))
    yield from (f"category {name} {value}" for name, value in sorted(pattern.categories.items()))


def _texts(value: Any) -> list[str]:
    """The texts of an argument: itself, or the items of a list."""
    items = value[:ARGUMENTS_MOST] if isinstance(value, (list, tuple)) else [value]
    return [item for item in items if isinstance(item, str) and 0 < len(item) <= _PATH_CHARACTERS]


@lru_cache(_NAMES_KEPT)
def _is_told(name: str) -> bool:
    return _NAME.match(name) is not None


@lru_cache(_NAMES_KEPT)
def _names_path(name: str) -> bool:
    return _PATH_NAME.search(name) is not None


@lru_cache(_NAMES_KEPT)
def _names_channel(name: str) -> bool:
    return _CHANNEL_NAME.search(name) is not None


def _is_path(name: str, text: str) -> bool:
    if _names_path(name):
        return True
    return "://" not in text and "@" not in text and _PATH.match(text) is not None


def _is_channel(name: str, text: str) -> bool:
    return _names_channel(name) or (text[0] == "#" and _CHANNEL.match(text) is not None)


def _extension(path: str) -> str | None:
    found = _FILE.search(path)
    return f".{found.group(1).lower()}" if found else None


def _categories(arguments: Mapping[str, Any], hash_key: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in arguments.items():
        if len(found) < CATEGORIES_MOST and _is_category(value):
            try:
                found[name] = value_hash(value, hash_key)[:CATEGORY_DIGITS]
            except NotJson:
                continue
    return found


def _is_category(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= CATEGORY_CHARACTERS and _CATEGORY.match(value) is not None
    return type(value) in (bool, int)
