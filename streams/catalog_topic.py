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
from pml.schemas.errors import PMLError, UndecodableRecord, UnknownMessage
from pml.streams.compacted import newest_values
from pml.streams.connection import producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened
from pml.streams.unreadable import telling

SWITCH_ID = "speculation"
KEY_SHOWN = 80
Records = Mapping[bytes, CatalogRecord]


async def read_catalog(settings: Settings, needed: bytes | None = None) -> Records:
    """The newest record of each key; those that cannot be read are told and passed over, as by every reader.

    Args:
        needed: the key of a record that is not passed over, for who would do harm without it.

    Raises:
        BrokerUnavailable: the broker does not answer.
        UndecodableRecord, UnknownMessage: the needed record cannot be read.
    """
    topic = settings.topics.catalog
    found: dict[bytes, CatalogRecord] = {}
    wrong: dict[bytes, PMLError] = {}
    for key, value in (await newest_values(settings, topic, partitions=1)).items():
        try:
            found[key] = decode_catalog(value)
        except (UndecodableRecord, UnknownMessage) as error:
            wrong[key] = error
    if needed in wrong:
        reason = wrong[needed]
        raise type(reason)(f"{_named(needed)} of {topic} cannot be read: {reason.message}")
    if wrong:
        telling.get()(_passed_over(topic, wrong))
    return found


def _passed_over(topic: str, wrong: Mapping[bytes, PMLError]) -> str:
    key = min(wrong)
    others = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return (
        f"passed over in {topic} until written again: {_named(key)}{others}, "
        f"which cannot be read ({wrong[key].message})"
    )


def _named(key: bytes) -> str:
    # A key is as little to be trusted as what lies under it.
    return repr(key.decode(errors="replace")[:KEY_SHOWN])


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
