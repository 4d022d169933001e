"""Which of the values that a server was started with are secrets, and what it says without them. Pure.

What a server says of a failure, of its tools or into its log may repeat them, and the sanitiser knows a
secret by its name or its shape only: a password in a sentence has neither. Results of calls are not for here:
who calls a tool is answered what the server answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import orjson

from pml.schemas.sanitiser import REDACTED, sanitise

# Shorter values, such as `1`, `true` or `debug`, are words that an error may well say.
SECRET_CHARACTERS_MIN = 8
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token) +(.*)", re.DOTALL)
# What an error may say where its name tells of no secret: words and numbers, also joined (`en_US.UTF-8`,
# `eu-west-1`, an address without a password), and paths. A secret made up by a program mixes both in a word.
_WORD = re.compile(r"[A-Z]?[a-z]{0,24}|[A-Z]{1,24}|[0-9]{1,12}")
_JOINT = re.compile(r"[\s._:/@,+-]+")
_DEMANDS = frozenset({"enum", "const", "pattern", "required", "$ref", "$id", "$schema", "$anchor"})
_PATH = re.compile(r"[~.]{0,2}/[\w./ @:+-]*")


@dataclass(frozen=True, slots=True)
class SecretValues:
    """Texts that must not be told, the longest first: another one may be a part of it."""

    _texts: tuple[str, ...] = field(default=(), repr=False)
    _data: tuple[bytes, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, environment: Mapping[str, str], arguments: Sequence[str] = ()) -> SecretValues:
        """Those in the variables and on the command line of a program."""
        secrets = [
            *(part for name, value in environment.items() for part in _in_variable(name, value)),
            *(part for name, value in _named(arguments) for part in secret_parts(name, value)),
        ]
        texts = ways_to_write(secrets)
        return cls(tuple(texts), tuple(text.encode(errors="replace") for text in texts))

    def taken_from(self, text: str) -> str:
        """The text without them."""
        for secret in self._texts:
            text = text.replace(secret, REDACTED)
        return text

    def taken_from_bytes(self, data: bytes) -> bytes:
        """The same for UTF-8."""
        for secret in self._data:
            data = data.replace(secret, REDACTED.encode())
        return data

    def taken_from_tool(self, value: Any) -> Any:
        """A tool or a part of it without them in its texts.

        Names stay, and what a schema demands of a value: who calls has to know it, and is refused without.
        """
        if isinstance(value, str):
            return self.taken_from(value)
        if isinstance(value, list):
            return [self.taken_from_tool(item) for item in value]
        if isinstance(value, dict):
            return {
                name: item if _is_demanded(name, item) else self.taken_from_tool(item)
                for name, item in value.items()
            }
        return value

    def begins_at(self, data: bytes) -> int:
        """Where in the data one begins that its end cuts off; its length where none does."""
        return min((_begins_at(secret, data) for secret in self._data), default=len(data))


NO_SECRETS = SecretValues()


class Passage:
    """What a server writes piece by piece, without secrets: one that has only begun is held back."""

    def __init__(self, secrets: SecretValues) -> None:
        self._secrets = secrets
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """What can be told with this piece."""
        data = self._held + piece
        place = self._secrets.begins_at(data)
        self._held = data[place:]
        return self._secrets.taken_from_bytes(data[:place])

    def rest(self) -> bytes:
        """What was held back at the end: nothing more comes, and most of a secret is one as well."""
        told, held = self._secrets.taken_from_bytes(self._held), self._held
        self._held = b""
        return REDACTED.encode() if told == held and len(held) >= SECRET_CHARACTERS_MIN else told


def secret_parts(name: str, value: str) -> Iterator[str]:
    """What is secret by the name that it stands under, or by its own look, with what it carries."""
    inside = list(_leaves(name, value))
    if inside:
        for key, item in inside:
            yield from secret_parts(key, item)
    elif sanitise({name: value}) != {name: value}:
        yield from _with_parts(value)


def address_secrets(address: str) -> Iterator[str]:
    """The password in an address, and what in its query is secret by its name."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    yield unquote(parts.password or parts.username or "")
    for name, value in parse_qsl(parts.query):
        yield from secret_parts(name, value)


def ways_to_write(secrets: Iterable[str]) -> list[str]:
    """Each that is long enough to be one, also as JSON and addresses write it; the longest first."""
    long = {secret for secret in secrets if len(secret) >= SECRET_CHARACTERS_MIN}
    written = {text for secret in long for text in _written(secret)}
    return sorted(written, key=lambda text: (-len(text), text))


def _written(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret, errors="replace"), quote(secret, safe="", errors="replace"))
    for as_json in (json.dumps(secret), json.dumps(secret, ensure_ascii=False)):
        yield from (as_json[1:-1], as_json[1:-1].replace("/", "\\/"))


def _in_variable(name: str, value: str) -> Iterator[str]:
    """All but what plainly is none: a variable that does not say what it is may well be a key."""
    for key, item in list(_leaves(name, value)) or [(name, value)]:
        yield from secret_parts(key, item)
        if not _is_ordinary(item):
            yield from _with_parts(item)


def _is_demanded(name: str, value: Any) -> bool:
    """A property may have such a name as well: its own schema is an object."""
    return name in _DEMANDS and not isinstance(value, dict)


def _is_ordinary(value: str) -> bool:
    return _PATH.fullmatch(value) is not None or all(map(_WORD.fullmatch, _JOINT.split(value)))


def _with_parts(value: str) -> Iterator[str]:
    yield value
    scheme = _SCHEME.fullmatch(value)
    if scheme:
        yield scheme[1]
    if "://" in value:
        yield from address_secrets(value)


def _leaves(name: str, value: str) -> Iterator[tuple[str, str]]:
    """The texts in a value that is JSON, as some servers want their headers."""
    if value.lstrip()[:1] not in ("{", "["):
        return
    try:
        yield from _texts(name, orjson.loads(value))
    except orjson.JSONDecodeError:
        return


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, list):
        yield from (found for item in value for found in _texts(name, item))
    elif isinstance(value, dict):
        yield from (found for key, item in value.items() for found in _texts(key, item))


def _named(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Words of a command line with what names them: `--token WORD`, `--token=WORD`, `-e TOKEN=WORD`."""
    for before, word in pairwise(("", *arguments)):
        yield (before if before.startswith("-") and not word.startswith("-") else ""), word
        name, _, value = word.partition("=")
        yield name, value


def _begins_at(secret: bytes, data: bytes) -> int:
    sizes = range(min(len(secret) - 1, len(data)), 0, -1)
    return len(data) - next((size for size in sizes if data.endswith(secret[:size])), 0)
