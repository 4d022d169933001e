"""Turns any Python value into JSON, and takes out what stands under a secret-like name while it goes.

Bounded: each item takes a byte of the answer at least, so a value with more items than the answer may have
bytes is known to be too large and is read no further; cycles and depth are cut. What is no JSON becomes
text: dates as ISO 8601, decimals, UUIDs, paths and integers beyond 64 bits as written, bytes as text with
escapes; NaN and the infinities become null (as in orjson and JSON.stringify), sets sorted lists, models and
dataclasses objects, and anything else the name of its type.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any, Final, TypeVar
from uuid import UUID

import orjson
from pydantic import BaseModel, SecretBytes, SecretStr

from pml.schemas.sanitiser.keys import Secrecy, is_bare, looks_random, secrecy
from pml.schemas.sanitiser.markers import CYCLE, ELLIPSIS, REDACTED, TOO_DEEP, UNREADABLE, JsonValue

DEPTH_MAX = 64  # containers; keeps reading and redacting within half of Python's default recursion limit
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**64 - 1
_DECIMAL_BITS_MAX = 4_096  # longer integers are written in hexadecimal: decimal takes quadratic time
_ESCAPED_MAX = 2**20  # bytes, far beyond what is kept
_AS_TEXT: Final = (
    Decimal, UUID, PurePath, Fraction, complex, timedelta, IPv4Address, IPv6Address, IPv4Network, IPv6Network,
)  # fmt: skip
_GAPS: Final = (" ", "\n", '"', "<", ">")  # no key, address or token goes on behind one of these
_FLAG = re.compile(r"--?[A-Za-z][\w-]{0,63}")
_CONSTANTS: Final = {None: "null", True: "true", False: "false"}
_Item = TypeVar("_Item")


class TooMany(Exception):
    """More items than the answer can have bytes."""


class Reader:
    """One reading of one value: the strings it met, and how many items and characters."""

    __slots__ = ("_items_left", "_open", "strings")

    def __init__(self, items_max: int) -> None:
        self.strings: list[str] = []
        self._items_left = items_max
        self._open: set[int] = set()

    @property
    def characters(self) -> int:
        """How many characters the strings have that were met so far."""
        return sum(map(len, self.strings))

    def read(self, value: Any, depth: int = 0) -> JsonValue:
        """The value as JSON.

        Raises:
            TooMany: it has more than `items_max` items.
        """
        self._items_left -= 1
        if self._items_left < 0:
            raise TooMany
        kind = type(value)
        if kind is str:
            return self._text(value)
        if value is None or kind is bool:
            return value  # type: ignore[no-any-return]
        if kind is int:
            return self._integer(value)
        if kind is float:
            return value if math.isfinite(value) else None
        if kind is dict or kind is list:
            return self._container(value, depth)
        return self._foreign(value, depth)

    def _text(self, value: str) -> str:
        if not value.isascii():
            value = value.encode("utf-8", "backslashreplace").decode("utf-8")
        self.strings.append(value)
        return value

    def _integer(self, value: int) -> JsonValue:
        if _INTEGER_MIN <= value <= _INTEGER_MAX:
            return value
        return self._text(str(value) if value.bit_length() <= _DECIMAL_BITS_MAX else hex(value))

    def _container(self, value: Any, depth: int) -> JsonValue:
        if id(value) in self._open:
            return self._text(CYCLE)
        if depth >= DEPTH_MAX:
            return self._text(TOO_DEEP)
        self._open.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._object(value.items(), depth + 1)
            return self._array(value, depth + 1)
        finally:
            self._open.discard(id(value))

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> JsonValue:
        answer: dict[str, JsonValue] = {}
        for key, item in self._few(items):
            name = self._text(key) if type(key) is str else self._name(key, depth)
            judgement = secrecy(name)
            if judgement is Secrecy.PLAIN:
                read = self.read(item, depth)
            else:
                read = REDACTED if _hides_all(judgement, item) else conceal(judgement, self.read(item, depth))
            answer[name if name not in answer else free_name(answer, name)] = read
        return conceal_pair(answer) if "value" in answer or "Value" in answer else answer

    def _array(self, items: Iterable[Any], depth: int) -> JsonValue:
        return conceal_neighbours([self.read(item, depth) for item in self._few(items)])

    def _few(self, items: Iterable[_Item]) -> Iterable[_Item]:
        return items

    def _name(self, key: Any, depth: int) -> str:
        if key is None or type(key) is bool:
            return self._text(_CONSTANTS[key])
        read = self.read(key, depth)
        return read if isinstance(read, str) else self._text(orjson.dumps(read).decode())

    def _foreign(self, value: Any, depth: int) -> JsonValue:
        try:
            return self._converted(value, depth)
        except TooMany:
            raise
        except Exception:  # whatever a foreign type raises while it is looked at
            return self._text(UNREADABLE)

    def _converted(self, value: Any, depth: int) -> JsonValue:
        if isinstance(value, (SecretStr, SecretBytes)):
            return REDACTED
        if isinstance(value, Enum):
            return self.read(value.value, depth)
        if isinstance(value, (str, Integral, Real)) and not isinstance(value, Fraction):
            return self.read(_plain_scalar(value), depth)
        if isinstance(value, (Mapping, list, tuple, deque)):
            return self._container(value, depth)
        if isinstance(value, (set, frozenset)):
            return self._sorted(value, depth)
        if isinstance(value, BaseModel):
            return self._container({**value.__dict__, **(value.__pydantic_extra__ or {})}, depth)
        if is_dataclass(value) and not isinstance(value, type):
            return self._container({field.name: getattr(value, field.name) for field in fields(value)}, depth)
        return self._text(_described(value))

    def _sorted(self, value: Iterable[Any], depth: int) -> JsonValue:
        answer = [self.read(item, depth + 1) for item in value]
        return sorted(answer, key=orjson.dumps)


class BriefReader(Reader):
    """Reads only how a value begins: the first items, and the first words of long texts."""

    __slots__ = ("_text_left", "_text_max", "is_cut", "is_shortened")

    def __init__(self, items_max: int, text_max: int) -> None:
        super().__init__(items_max)
        self.is_cut = False
        self.is_shortened = False
        self._text_max = text_max
        self._text_left = 4 * text_max

    def _text(self, value: str) -> str:
        self._text_left -= len(value)
        self.is_shortened = self.is_shortened or len(value) > self._text_max
        return super()._text(beginning(value, self._text_max))

    def _few(self, items: Iterable[_Item]) -> Iterable[_Item]:
        for item in items:
            if self._items_left <= 0 or self._text_left <= 0:
                self.is_cut = True
                break
            yield item

    def _object(self, items: Iterable[tuple[Any, Any]], depth: int) -> JsonValue:
        answer = super()._object(items, depth)
        if self.is_cut and isinstance(answer, dict):
            for name in ("value", "Value"):  # the name that would have judged it may have been left out
                answer.pop(name, None)
        return answer


def beginning(text: str, limit: int) -> str:
    """The first `limit` characters of a text, cut between words: half a secret might not be known as one."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    return head[: max(head.rfind(gap) for gap in _GAPS) + 1] + ELLIPSIS


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    return int(value) if isinstance(value, Integral) else float(value)


def _described(value: Any) -> str:
    if isinstance(value, _AS_TEXT):
        return str(value)
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _decoded(bytes(value))
    kind = type(value)
    if isinstance(value, BaseException):
        return f"{kind.__name__}: {value}"
    return f"<{kind.__module__}.{kind.__qualname__}>"


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:  # escapes take a microsecond each, so only the beginning of much is written
        text = data[:_ESCAPED_MAX].decode("utf-8", "backslashreplace")
        return text if len(data) <= _ESCAPED_MAX else text + ELLIPSIS


def free_name(taken: Mapping[str, object], name: str) -> str:
    """A name like this one that no other item has."""
    number = len(taken) + 1
    while f"{name} ({number})" in taken:
        number += 1
    return f"{name} ({number})"


def _hides_all(judgement: Secrecy, item: Any) -> bool:
    """Whether the value goes whole and unread; what holds nothing (null, true, an empty list) may stay."""
    if judgement is not Secrecy.SECRET or item is None or type(item) is bool:
        return False
    return not (type(item) in (str, list, dict, tuple) and not item)


def conceal(judgement: Secrecy, item: JsonValue) -> JsonValue:
    """A value that was read, under a name with this judgement.

    It holds for all of a list too, and for what an object calls by a name that says nothing of its own.
    """
    if judgement is Secrecy.PLAIN:
        return item
    if isinstance(item, str):
        return REDACTED if item and (judgement >= Secrecy.TEXT or looks_random(item)) else item
    if judgement is not Secrecy.SECRET and isinstance(item, list):
        return [conceal(judgement, each) for each in item]
    if judgement is not Secrecy.SECRET and isinstance(item, dict):
        return {name: conceal(judgement, each) if is_bare(name) else each for name, each in item.items()}
    return REDACTED if _hides_all(judgement, item) else item


def conceal_pair(item: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """`{"name": "Authorization", "value": …}`, as headers, variables and tags are often listed."""
    for name_field, value_field in (("name", "value"), ("key", "value"), ("Name", "Value"), ("Key", "Value")):
        name = item.get(name_field)
        if isinstance(name, str) and value_field in item:
            item[value_field] = conceal(secrecy(name), item[value_field])
    return item


def conceal_neighbours(items: list[JsonValue]) -> list[JsonValue]:
    """`["--token", …]`, and pairs in a list of pairs: `[["Authorization", …]]`."""
    previous: JsonValue = None
    for index, item in enumerate(items):
        kind = type(item)
        if kind is str:
            if type(previous) is str and _FLAG.fullmatch(previous) is not None:
                items[index] = conceal(_of_flag(previous), item)
        elif kind is list and len(item) == 2 and type(item[0]) is str:  # type: ignore[arg-type,index]
            item[1] = conceal(secrecy(item[0]), item[1])  # type: ignore[index]
        previous = item
    return items


def _of_flag(flag: str) -> Secrecy:
    judgement = secrecy(flag)
    return judgement if judgement >= Secrecy.TEXT else Secrecy.PLAIN
