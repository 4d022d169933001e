"""What the running roles hold now: the newest values of their compacted changelogs, and committed offsets."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient

from pml.schemas.identifiers import session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.compacted import newest_values
from pml.streams.connection import client_options
from pml.streams.orchestrator.table import NAME as SESSIONS
from pml.streams.orchestrator.table import is_definition, is_session, life_of, partition_prefix
from pml.streams.projections.table import changelog_topic, partition_of
from pml.streams.projections.thresholds.table import changelog_topic as learned_changelog
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.sources import opened


async def live_metrics(settings: Settings) -> dict[int, bytes]:
    """The value of each partition in the metrics table.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    values = await _newest(settings, changelog_topic(settings))
    return {partition_of(key): value for key, value in values.items()}


async def live_sessions(settings: Settings, session: tuple[str, str] | None = None) -> dict[bytes, bytes]:
    """The control records and definitions of the orchestrator's table by their keys, those of ended sessions
    included.

    `session` (tenant, session) leaves only those of one.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    values = await _newest(settings, f"{settings.group('orchestrator')}-{SESSIONS}-changelog")
    only = None if session is None else session_key(*session)
    return {
        key: value
        for key, value in values.items()
        if is_session(key) or is_definition(key)
        if only is None or life_of(key).session == only
    }


def of_partition(records: Mapping[bytes, bytes], partition: int) -> dict[bytes, bytes]:
    """The records of one partition."""
    beginning = partition_prefix(partition)
    return {key: value for key, value in records.items() if key.startswith(beginning)}


async def committed(settings: Settings, role: str) -> dict[int, int]:
    """The offset that a role takes next of the log, of each partition that it ever committed.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    admin = AIOKafkaAdminClient(**client_options(settings))
    async with broker_errors(settings):
        try:
            await admin.start()
            places = await admin.list_consumer_group_offsets(settings.group(role))
        finally:
            await admin.close()
    topic = settings.topics.events
    return {pair.partition: place.offset for pair, place in places.items() if pair.topic == topic}


async def live_learned(settings: Settings) -> dict[bytes, bytes]:
    """The table of what was learned: rows by their keys, and how far each partition was read.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    return await _newest(settings, learned_changelog(settings))


async def _newest(settings: Settings, topic: str) -> dict[bytes, bytes]:
    """The newest value of each key that has one; nothing where the role never made its topic."""
    if not await _exists(settings, topic):
        return {}
    return await newest_values(settings, topic, SESSION_PARTITIONS)


async def _exists(settings: Settings, topic: str) -> bool:
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    async with opened(consumer, settings), broker_errors(settings):
        return topic in await consumer.topics()
