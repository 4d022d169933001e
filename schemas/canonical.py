"""One spelling for equal JSON values, and the hashes that are taken of it (DESIGN §2, rule 7)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, TypeAlias

import orjson

from pml.schemas.errors import ConfigurationError, PMLError

DIGEST_BYTES = 16
KEY_BYTES_MIN = 16
KEY_BYTES_MAX = 64
# What orjson writes at most, and what a value may have that goes into records.
DEPTH_MOST = 254
NESTING_MAX = 200

# Where a value is: the place of what holds it, and its key there; None is the whole.
Place: TypeAlias = "tuple[Place, str | int] | None"
_CONTAINERS = (dict, list, tuple)

# Whatever orjson would quietly turn into JSON by itself is refused instead: only JSON has one spelling.
_OPTIONS = (
    orjson.OPT_SORT_KEYS
    | orjson.OPT_PASSTHROUGH_DATACLASS
    | orjson.OPT_PASSTHROUGH_DATETIME
    | orjson.OPT_PASSTHROUGH_SUBCLASS
)


class NotJson(PMLError):
    """A value that JSON cannot carry unchanged, so nothing can be hashed or compared by it."""

    code = "NOT_JSON"


def canonical_json(value: Any) -> bytes:
    """The one spelling of a JSON value: UTF-8, keys sorted by code point, no white space.

    Equal means equal as JSON: the order of keys does not count, `1`, `1.0` and `true` are three values.
    Tuples count as arrays. Integers beyond 64 bits are refused, because JSON readers round them.

    Raises:
        NotJson: NaN, an infinity, an integer beyond 64 bits, a key that is no string, text that is not
            valid Unicode, nesting beyond 254 levels, or a type that JSON does not have.
    """
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except orjson.JSONEncodeError as error:
        raise NotJson(f"This is not a JSON value: {error}. Convert it before it is sent.") from error
    if orjson.loads(data) != value:
        _refuse_foreign(value)
    return data


def is_too_deep(value: Any) -> bool:
    """Whether a value nests so deep that records about it, which wrap it, could not be written.

    Args:
        value: what JSON can carry; else this is no question.
    """
    wrapped = value
    for _ in range(DEPTH_MOST - NESTING_MAX):
        wrapped = [wrapped]
    try:
        orjson.dumps(wrapped, option=_OPTIONS)
    except orjson.JSONEncodeError:
        return True
    return False


def refuse_not_finite(value: Any) -> None:
    """Name the first number that orjson would write as null.

    Raises:
        NotJson: NaN or an infinity is in it.
    """
    for place, item in _leaves(value):
        if isinstance(item, float) and not math.isfinite(item):
            path = _path(place)
            raise NotJson(f"{path} is {item}, which JSON cannot carry. Use null or text.", path=path)


def _refuse_foreign(value: Any) -> None:
    """Name the item that did not survive a round trip; tuples alone are fine."""
    refuse_not_finite(value)
    for place, item in _leaves(value):
        if not (item is None or type(item) in (str, int, float, bool)):
            path = _path(place)
            raise NotJson(f"{path} is a {type(item).__name__}, which JSON does not have.", path=path)


def _leaves(value: Any) -> Iterator[tuple[Place, Any]]:
    """Every leaf of a value, in order, with its place."""
    if not isinstance(value, _CONTAINERS):
        yield None, value
        return
    waiting: list[tuple[Place, Iterator[tuple[Any, Any]]]] = [(None, _parts(value))]
    while waiting:
        place, parts = waiting[-1]
        for key, item in parts:
            if isinstance(item, _CONTAINERS):
                waiting.append(((place, key), _parts(item)))
                break
            yield (place, key), item
        else:
            waiting.pop()


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(value.items() if isinstance(value, dict) else enumerate(value))


def _path(place: Place) -> str:
    """A place as people write it, such as `$.tasks[0].id`: only what is told is worth writing out."""
    parts: list[str] = []
    while place is not None:
        place, key = place
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(["$", *reversed(parts)])


def value_hash(value: Any, key: bytes) -> str:
    """Keyed BLAKE2b (RFC 7693) of the canonical JSON: 32 hex digits that nobody can guess a PIN from.

    Args:
        value: any JSON value.
        key: the installation key, 16 to 64 bytes.

    Raises:
        NotJson: as `canonical_json`.
        ConfigurationError: the key is too short or too long.
    """
    return keyed_hash(canonical_json(value), key)


def keyed_hash(data: bytes, key: bytes) -> str:
    """The same of a value whose canonical JSON is there already.

    Raises:
        ConfigurationError: as `value_hash`.
    """
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        raise ConfigurationError("The installation key must have 16 to 64 bytes: `pml init` makes a new one.")
    return blake2b(data, digest_size=DIGEST_BYTES, key=key).hexdigest()


def content_hash(data: bytes) -> str:
    """BLAKE2b of bytes that are no secret, 32 hex digits: the same everywhere."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()
