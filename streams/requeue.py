"""Dead letters sent once more to where they came from, for `pml dlq requeue`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer

from pml.schemas.errors import Refused
from pml.schemas.topics import Topics
from pml.streams.connection import partition_for, producer_options
from pml.streams.dead_letter_reader import DeadLetter, read_letter
from pml.streams.dead_letters import HEADER_PREFIX
from pml.streams.settings import Settings
from pml.streams.sources import opened


class NotRequeued(Refused):
    """A dead letter that means nothing anywhere else than where it lay."""

    code = "NOT_REQUEUED"


@dataclass(frozen=True, slots=True)
class Requeued:
    """Where a dead letter lies now, besides where it was."""

    id: int
    topic: str
    partition: int
    offset: int


async def requeue(settings: Settings, letter_ids: Sequence[int]) -> list[Requeued]:
    """Send dead letters as they were to the topics that they came from; they stay dead letters as well.

    All of them are looked at before one is sent. What still cannot be handled becomes a dead letter again.

    Raises:
        NoSuchLetter: one never was, or is past its retention.
        NotRequeued: one is of a topic whose records count only where they lie.
        BrokerUnavailable: the broker does not answer.
    """
    letters = [await read_letter(settings, letter_id) for letter_id in dict.fromkeys(letter_ids)]
    topics = [_origin(settings.topics, letter) for letter in letters]
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        return [await _sent(producer, letter, topic) for letter, topic in zip(letters, topics, strict=True)]


def _origin(topics: Topics, letter: DeadLetter) -> str:
    topic = str(letter.summary()["topic"])
    if topic not in (topics.commands, topics.tool_outcomes, topics.lessons):
        raise NotRequeued(
            f"dead letter {letter.id} is of {topic}, whose records count only where they lie; only those of "
            f"{topics.commands}, {topics.tool_outcomes} and {topics.lessons} can be sent again"
        )
    return topic


async def _sent(producer: AIOKafkaProducer, letter: DeadLetter, topic: str) -> Requeued:
    own = [(name, value) for name, value in letter.headers if not name.startswith(HEADER_PREFIX)]
    partition = partition_for(letter.key) if letter.key is not None else None
    place = await producer.send_and_wait(
        topic, value=letter.value, key=letter.key, partition=partition, headers=own
    )
    return Requeued(letter.id, topic, place.partition, place.offset)
