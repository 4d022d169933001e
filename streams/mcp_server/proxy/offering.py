"""The offer as it is now: `pml.catalog` is followed once for each process, however many clients it has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog

from pml.processors.workflow import Catalog, Policy
from pml.schemas.errors import PMLError
from pml.streams.connection import client_options
from pml.streams.mcp_server.proxy.offer import Offer, offer_of
from pml.streams.orchestrator.catalog import CatalogFollower
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings

# Whoever asks first waits for the catalog to be read; some thousand records take less than a second.
FIRST_S = 5.0
# A broker that was killed is back within 5 s.
AGAIN_S = 2.0
log = structlog.get_logger("pml.mcp")

Changed = Callable[[], Awaitable[None]]


class Offering:
    """Keeps the offer up with the catalog; a change is known within half a second.

    Args:
        taken: names that no tool gets.
        on_change: awaited after the offer has changed, but for the first time.
    """

    def __init__(self, settings: Settings, taken: frozenset[str], on_change: Changed) -> None:
        self._settings, self._taken, self._on_change = settings, taken, on_change
        self._offer = Offer()
        self._seen: Catalog | None = None
        self._tried = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow while the block runs; a broker that is away is tried again."""
        following = asyncio.create_task(self._follow_for_ever())
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def now(self) -> Offer:
        """The offer; nothing where the catalog could not be read yet. Clients are told when it could."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                await self._tried.wait()
        return self._offer

    @property
    def latest(self) -> Offer:
        """The offer, without waiting for the first one."""
        return self._offer

    async def _follow_for_ever(self) -> None:
        while True:
            try:
                await self._follow()
            except Exception as error:
                self._lost(error)
            self._tried.set()
            await asyncio.sleep(AGAIN_S)

    def _lost(self, error: Exception) -> None:
        """Say it once, until it is read again."""
        if self._seen is not None or not self._tried.is_set():
            known = isinstance(error, PMLError)
            log.warning("the catalog is not read", error=str(error), exc_info=not known)
        self._seen = None

    async def _follow(self) -> None:
        follower = CatalogFollower(
            client_options(self._settings),
            self._settings.topics.catalog,
            Catalog(Policy(hash_key=b"")),
            _passed_over,
        )
        reading: asyncio.Task[None] | None = None
        try:
            async with broker_errors(self._settings):
                await follower.start()
            reading = asyncio.create_task(follower.follow())
            await _unless_ended(reading, follower.catch_up())
            while True:
                await self._take(follower.snapshot())
                await _unless_ended(reading, follower.moved())
        finally:
            if reading is not None:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            await follower.stop()

    async def _take(self, catalog: Catalog) -> None:
        """Make the offer anew where what it is made of is not what it was."""
        seen, self._seen = self._seen, catalog
        if seen is None or seen.servers is not catalog.servers or seen.permissions is not catalog.permissions:
            before = self._offer
            self._offer = offer_of(catalog.servers, catalog.permissions, self._taken)
            # Clients that asked too early were told of nothing.
            if self._offer.listed != before.listed and self._tried.is_set():
                await self._on_change()
        self._tried.set()


async def _unless_ended(reading: asyncio.Task[None], other: Any) -> None:
    """Wait for something that only happens while somebody reads."""
    waiting = asyncio.ensure_future(other)
    try:
        await asyncio.wait((reading, waiting), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            await reading
        await waiting
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)


async def _passed_over(record: Any, error: PMLError) -> None:
    """The orchestrator makes a dead letter of it; here it is only not offered."""
