"""The catalog topic for people's tools: read to its end once, and the records that an operator writes."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka import AIOKafkaProducer

from pml.schemas.catalog import (
    CatalogRecord,
    PermissionRecord,
    ServerTools,
    SpeculationMode,
    SpeculationSwitch,
)
from pml.schemas.codec import decode_catalog, encode
from pml.streams.compacted import newest_values
from pml.streams.connection import producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened

SWITCH_ID = "speculation"
Records = Mapping[bytes, CatalogRecord]


async def read_catalog(settings: Settings) -> Records:
    """The newest record of each key.

    Raises:
        BrokerUnavailable: the broker does not answer.
        UnknownMessage: a newer release wrote a record.
    """
    values = await newest_values(settings, settings.topics.catalog, partitions=1)
    return {key: decode_catalog(value) for key, value in values.items()}


def servers_of(records: Records) -> dict[str, ServerTools]:
    """Every MCP server that a bridge listed or found unavailable."""
    return {record.id: record.data for record in records.values() if isinstance(record.data, ServerTools)}


def permissions_of(records: Records) -> PermissionRecord | None:
    """The permissions file as the bridge published it."""
    return next((r.data for r in records.values() if isinstance(r.data, PermissionRecord)), None)


def switches_of(records: Records) -> dict[str, SpeculationSwitch]:
    """Every switch that somebody touched, by its scope; `speculation` is the one for all."""
    return {r.id: r.data for r in records.values() if isinstance(r.data, SpeculationSwitch)}


async def publish_switch(
    settings: Settings, mode: SpeculationMode, principal: str, scope: str = SWITCH_ID
) -> None:
    """Say how far speculation may go, for all or for one tenant, server or tool.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    data = SpeculationSwitch(mode=mode, principal=principal)
    await publish(settings, CatalogRecord(kind=data.KIND, id=scope, version=data.VERSION, data=data))


async def publish(settings: Settings, record: CatalogRecord) -> None:
    """Write one record.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        await producer.send_and_wait(settings.topics.catalog, value=encode(record), key=record.key)
