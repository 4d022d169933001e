"""Reading dead letters, for `pml dlq`."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pml.schemas.errors import PMLError
from pml.streams.connection import client_options
from pml.streams.dead_letters import HEADER_PREFIX
from pml.streams.log.tail import Tails
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings


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

    def as_dict(self) -> dict[str, Any]:
        """Everything; bytes that are no UTF-8 as `base64:…`."""
        own = {name: _text(value) for name, value in self.headers if not name.startswith(HEADER_PREFIX)}
        value = None if self.value is None else _text(self.value)
        return {**self.summary(), "key": _text(self.key or b""), "headers": own, "value": value}

    def _facts(self) -> list[tuple[str, bytes]]:
        return [(name, value) for name, value in self.headers if name.startswith(HEADER_PREFIX)]


async def read_letters(settings: Settings, limit: int, before: int | None = None) -> list[DeadLetter]:
    """The newest `limit` dead letters, oldest first.

    Args:
        before: only those with a smaller id.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    async with _tails(settings) as (tails, first, end):
        last = end if before is None else min(end, before)
        return await _read(tails, settings, max(first, last - limit), last) if last > first else []


async def read_letter(settings: Settings, letter_id: int) -> DeadLetter:
    """One dead letter.

    Raises:
        NoSuchLetter: it never was, or is past its retention.
        BrokerUnavailable: the broker does not answer.
    """
    async with _tails(settings) as (tails, first, end):
        found = []
        if first <= letter_id < end:
            found = await _read(tails, settings, letter_id, letter_id + 1)
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


async def _read(tails: Tails, settings: Settings, start: int, end: int) -> list[DeadLetter]:
    read = tails.read(settings.topics.dead_letters, 0, start, end)
    return [
        DeadLetter(record.offset, record.key, record.value, tuple(record.headers))
        async for records in read
        for record in records
    ]


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(value).decode()
