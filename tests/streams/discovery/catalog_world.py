"""A catalog of its own on a real broker, and a finder that follows it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiokafka import AIOKafkaProducer

from pml.processors.memory.embedding import Embedding, HashedNgrams
from pml.schemas.catalog import CatalogRecord
from pml.schemas.codec import encode
from pml.streams.connection import producer_options
from pml.streams.discovery.finder import Finder
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.fixtures.settings import folder_settings


class CatalogWorld:
    """Writes records of the catalog."""

    def __init__(self, kafka: str, folder: Path) -> None:
        self.settings: Settings = folder_settings(folder, kafka, f"find-{uuid.uuid4().hex[:8]}")
        self.settings.make_data_dir()
        self.loads = 0

    async def put(self, *records: CatalogRecord) -> None:
        for record in records:
            await self.put_raw(record.key, encode(record))

    async def put_raw(self, key: bytes, value: bytes | None) -> None:
        await self._producer.send_and_wait(self.settings.topics.catalog, value=value, key=key)

    def finder(self) -> Finder:
        return Finder(self.settings, self.load)

    def load(self, model: str) -> Embedding:
        assert model == "wordllama"
        self.loads += 1
        return HashedNgrams()

    async def open(self) -> None:
        await ensure_topics(self.settings)
        self._producer = AIOKafkaProducer(**producer_options(self.settings))
        await self._producer.start()

    async def close(self) -> None:
        await self._producer.stop()


@asynccontextmanager
async def catalog_world(kafka: str, folder: Path) -> AsyncIterator[CatalogWorld]:
    world = CatalogWorld(kafka, folder)
    await world.open()
    try:
        yield world
    finally:
        await world.close()
