"""Reading dead letters: all of them for `pml dlq`, a tenant's own for the HTTP door."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from pml.schemas.errors import PMLError
from pml.schemas.identifiers import split_session_key
from pml.streams.connection import client_options
from pml.streams.dead_letters import HEADER_PREFIX
from pml.streams.log.tail import Tails
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings

TENANT_HEADER = "pml-tenant"
LOOKED_AT_MAX = 2_000
"""Letters that one request looks at for a tenant: where most are others' it does not read the whole topic."""
STRIDE = 100


class NoSuchLetter(PMLError):
    """No dead letter rests there."""

    code = "NOT_FOUND"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter as it rests; its id is its offset."""

    id: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]

    def summary(self) -> dict[str, Any]:
        """Where it came from and why it stopped, without its content."""
        facts = {name.removeprefix(HEADER_PREFIX): _text(value) for name, value in self._facts()}
        numbers = {
            name: int(facts[name]) for name in ("partition", "offset") if facts.get(name, "").isdigit()
        }
        names = ("at", "topic", "partition", "offset", "stage", "code", "message")
        told = {name: numbers.get(name, facts.get(name)) for name in names}
        return {"id": self.id, **told, "bytes": len(self.value or b"")}

    @property
    def tenant(self) -> str | None:
        """Whose it is; None where that cannot be known.

        The record must say so itself: a key alone proves nothing, since other topics have other keys
        (`model/NAME`), and bytes that are no JSON may hold anything. Key and header must not say otherwise.
        """
        said = {_tenant_in(self.value), *self._tenants_beside()}
        return said.pop() if len(said) == 1 else None

    def _tenants_beside(self) -> list[str]:
        place = split_session_key(self.key)
        headers = [_text(value) for name, value in self.headers if name == TENANT_HEADER]
        return headers if place is None else [*headers, place[0]]

    def as_dict(self) -> dict[str, Any]:
        """Everything; bytes that are no UTF-8 as `base64:…`."""
        own = {name: _text(value) for name, value in self.headers if not name.startswith(HEADER_PREFIX)}
        value = None if self.value is None else _text(self.value)
        return {**self.summary(), "key": _text(self.key or b""), "headers": own, "value": value}

    def _facts(self) -> list[tuple[str, bytes]]:
        return [(name, value) for name, value in self.headers if name.startswith(HEADER_PREFIX)]


@dataclass(frozen=True, slots=True)
class TenantLetters:
    """A tenant's letters, oldest first; older ones lie before the id `before`, None where there are none."""

    letters: list[DeadLetter]
    before: int | None


async def read_letters(settings: Settings, limit: int) -> list[DeadLetter]:
    """The newest `limit` dead letters of all tenants and of none, oldest first.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    async with _tails(settings) as (tails, first, end):
        return await _read(tails, settings, max(first, end - limit), end)


async def read_tenant_letters(
    settings: Settings, tenant: str, limit: int, before: int | None = None
) -> TenantLetters:
    """The newest dead letters of a tenant: at most `limit`, and no more than one request looks at.

    Args:
        before: only those with a smaller id.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    async with _tails(settings) as (tails, first, end):
        place = end if before is None else min(end, before)
        last = max(first, place - LOOKED_AT_MAX)
        found: list[DeadLetter] = []
        while place > last and len(found) < limit:
            start = max(last, place - STRIDE)
            found[:0] = await _read(tails, settings, start, place, tenant)
            place = start
    return _page(found, limit, place if place > first else None)


def _page(found: list[DeadLetter], limit: int, before: int | None) -> TenantLetters:
    if len(found) <= limit:
        return TenantLetters(found, before)
    return TenantLetters(found[-limit:], found[-limit].id)


async def read_letter(settings: Settings, letter_id: int, tenant: str | None = None) -> DeadLetter:
    """One dead letter.

    Args:
        tenant: whose it must be; another's is not told from one that never was.

    Raises:
        NoSuchLetter: it never was, is another's, or is past its retention.
        BrokerUnavailable: the broker does not answer.
    """
    async with _tails(settings) as (tails, first, end):
        found = []
        if first <= letter_id < end:
            found = await _read(tails, settings, letter_id, letter_id + 1, tenant)
    if not found:
        raise NoSuchLetter(f"there is no dead letter {letter_id}; `pml dlq list` shows those there are")
    return found[0]


@asynccontextmanager
async def _tails(settings: Settings) -> AsyncIterator[tuple[Tails, int, int]]:
    tails, place = Tails(client_options(settings), consumers=1), (settings.topics.dead_letters, 0)
    try:
        async with broker_errors(settings):
            await tails.start()
        yield tails, (await tails.beginnings([place]))[place], await tails.end(*place)
    finally:
        await tails.stop()


async def _read(
    tails: Tails, settings: Settings, start: int, end: int, tenant: str | None = None
) -> list[DeadLetter]:
    read = tails.read(settings.topics.dead_letters, 0, start, end)
    letters = (
        DeadLetter(record.offset, record.key, record.value, tuple(record.headers))
        async for records in read
        for record in records
    )
    return [letter async for letter in letters if tenant is None or letter.tenant == tenant]


def _tenant_in(value: bytes | None) -> str | None:
    try:
        fields = orjson.loads(value or b"")
    except orjson.JSONDecodeError:
        return None
    tenant = fields.get("tenant") if isinstance(fields, dict) else None
    return tenant if isinstance(tenant, str) else None


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()
