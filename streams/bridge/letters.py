"""Dead letters of the bridge."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from pml.schemas.errors import BrokerUnavailable, PMLError
from pml.schemas.topics import Topics
from pml.streams.bridge.patience import patiently
from pml.streams.dead_letters import Received, dead_letter


class DeadLetters:
    """Sends records that could not be read, with a producer that is made for the first one."""

    def __init__(self, topics: Topics, options: dict[str, Any]) -> None:
        self._topics, self._options = topics, options
        self._producer: Any = None
        self._making = asyncio.Lock()

    async def send(self, record: Received, stage: str, error: PMLError) -> None:
        """Send one, again until it is acknowledged.

        Raises:
            BrokerUnavailable: the broker was away for too long.
        """

        async def attempt() -> None:
            try:
                await dead_letter(await self._current(), self._topics, record, stage, error)
            except KafkaError as failure:
                await self.close()
                raise BrokerUnavailable(f"a dead letter could not be sent: {failure}") from failure

        await patiently(attempt)

    async def close(self) -> None:
        """Let go of the producer; after an error it is not used again."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _current(self) -> Any:
        async with self._making:
            if self._producer is None:
                self._producer = await self._started()
            return self._producer

    async def _started(self) -> Any:
        producer = AIOKafkaProducer(**self._options)
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer
