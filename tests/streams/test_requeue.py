"""Dead letters sent once more, over a real broker."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from pml.schemas.errors import UndecodableRecord
from pml.streams.connection import client_options, partition_for, producer_options
from pml.streams.dead_letter_reader import NoSuchLetter, read_letters
from pml.streams.dead_letters import dead_letter
from pml.streams.requeue import NotRequeued, requeue
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.topics import ensure_topics
from tests.streams.test_dead_letters import Received

pytestmark = pytest.mark.integration


@pytest.fixture
async def settings(kafka: str, tmp_path: Path) -> Settings:
    prefix = f"q{uuid.uuid4().hex[:8]}."
    settings = Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})
    await ensure_topics(settings)
    return settings


async def buried(settings: Settings, *topics: str) -> list[int]:
    """A dead letter of each topic; their ids."""
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for topic in topics:
            record = replace(Received(), topic=topic, partition=4)
            await dead_letter(producer, settings.topics, record, "decode", UndecodableRecord("broken"))
    return [letter.id for letter in await read_letters(settings, 10)]


async def test_it_lies_again_where_it_came_from_as_it_was(settings: Settings) -> None:
    topics = settings.topics
    letters = await buried(settings, topics.commands, topics.tool_outcomes)
    sent = await requeue(settings, [*letters, letters[0]])
    partition = partition_for(b"local/ses_1")
    assert [(item.id, item.topic, item.partition) for item in sent] == [
        (letters[0], topics.commands, partition),
        (letters[1], topics.tool_outcomes, partition),
    ]
    consumer = AIOKafkaConsumer(**client_options(settings))
    async with opened(consumer, settings):
        place = TopicPartition(topics.commands, partition)
        consumer.assign([place])
        consumer.seek(place, sent[0].offset)
        record = await consumer.getone()
    assert (record.key, record.value) == (b"local/ses_1", b"\xff\x00 not JSON")
    assert list(record.headers) == [("traceparent", b"00-1")]
    assert [letter.id for letter in await read_letters(settings, 10)] == letters


async def test_nothing_is_sent_where_one_of_them_cannot_be(settings: Settings) -> None:
    topics = settings.topics
    letters = await buried(settings, topics.commands, topics.events)
    with pytest.raises(NotRequeued, match="count only where they lie"):
        await requeue(settings, letters)
    with pytest.raises(NoSuchLetter):
        await requeue(settings, [letters[0], 99])
    consumer = AIOKafkaConsumer(**client_options(settings))
    async with opened(consumer, settings):
        place = TopicPartition(topics.commands, partition_for(b"local/ses_1"))
        assert (await consumer.end_offsets([place]))[place] == 0
