"""Results of tools for those who read one after the other: the connections stay open."""

from __future__ import annotations

import asyncio
from typing import Any

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, ToolResult
from pml.schemas.codec import decode_outcome
from pml.schemas.errors import PayloadGone
from pml.streams.connection import client_options
from pml.streams.log.tail import OffsetGone, Tails
from pml.streams.results import check_age, expired, place, result_in
from pml.streams.settings import Settings


class StandingResults:
    """Reads full results, and what tools said of their failures; connects with the first read."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._tails: Tails | None = None
        self._starting = asyncio.Lock()

    async def close(self) -> None:
        """Close the connections."""
        tails, self._tails = self._tails, None
        if tails is not None:
            await tails.stop()

    async def result(self, coordinate: Coordinate) -> ToolResult:
        """The full result that rests at this coordinate.

        Raises:
            PayloadGone: it is older than `timeouts.results_ttl_s`, or no result rests there.
            BrokerUnavailable: Kafka did not answer in time.
        """
        record = await self._record(coordinate)
        check_age(self._settings, record.timestamp, coordinate)
        result = result_in(self._settings, record)
        if result is None:
            raise PayloadGone(f"the call at {place(coordinate)} gave no result")
        return result

    async def outcome(self, coordinate: Coordinate) -> CallEnded:
        """The whole answer to a call, also to one that failed.

        Raises:
            PayloadGone: it is not kept any more.
            BrokerUnavailable: Kafka did not answer in time.
        """
        return decode_outcome((await self._record(coordinate)).value)

    async def _record(self, coordinate: Coordinate) -> Any:
        tails = await self._started()
        at = coordinate.offset
        try:
            reading = tails.read(coordinate.topic, coordinate.partition, at, at + 1)
            found = [record async for records in reading for record in records]
        except OffsetGone:
            raise expired(coordinate) from None
        if not found:
            raise expired(coordinate)
        return found[0]

    async def _started(self) -> Tails:
        async with self._starting:
            if self._tails is None:
                tails = Tails(client_options(self._settings))
                await tails.start()
                self._tails = tails
            return self._tails
