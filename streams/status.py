"""The state of every part: broker, store and roles, with their lag (group offsets against ends of topics)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from pml.clickhouse.address import Address
from pml.clickhouse.client import probe
from pml.schemas.catalog import ModelRecord
from pml.schemas.errors import PMLError
from pml.schemas.topics import SESSION_PARTITIONS, Topics
from pml.streams.catalog_topic import Records, read_catalog
from pml.streams.connection import bootstrap_servers, client_options, store_url
from pml.streams.health import HealthRecord, read_all
from pml.streams.local.stack import Part, Stack, read_stack
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.topics import admin_client

# A broker on this machine answers in milliseconds; a person waits for the whole of it.
BROKER_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part as `pml status` shows it; `lag` is the number of records that wait for it."""

    name: str
    state: str
    address: str | None = None
    embedded: bool = False
    lag: int | None = None
    last_error: str | None = None
    pid: int | None = None
    restarts: int = 0
    since: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that belongs to one data folder; `models` are those that were rolled back by themselves.

    Each has the tenant, the model that serves instead (empty: what is counted), and why; a promotion ends it.
    """

    data_dir: str
    up: bool
    parts: tuple[PartStatus, ...]
    models: tuple[dict[str, Any], ...] = ()

    @property
    def reachable(self) -> bool:
        """Whether broker and store answer."""
        return all(part.state == "ready" for part in self.parts if part.name in ("kafka", "clickhouse"))

    @property
    def ready(self) -> bool:
        """Whether every part does its work."""
        return self.reachable and all(part.state == "ready" for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """The status as JSON-serialisable values."""
        return {
            "data_dir": self.data_dir,
            "up": self.up,
            "ready": self.ready,
            "parts": [asdict(part) for part in self.parts],
            "models": list(self.models),
        }


async def read_status(settings: Settings) -> Status:
    """Ask broker and store, read what the roles say; nothing is raised for what does not answer."""
    stack = read_stack(settings.data_dir)
    running = stack if stack and stack.running else None
    (broker, lags, models), store = await asyncio.gather(
        _broker(settings, running), asyncio.to_thread(_store, settings, running)
    )
    roles = _roles(read_all(settings.data_dir), running, lags)
    return Status(str(settings.data_dir), running is not None, (broker, store, *roles), models)


Models = tuple[dict[str, Any], ...]


async def _broker(settings: Settings, stack: Stack | None) -> tuple[PartStatus, dict[str, int], Models]:
    part = _part(stack, "kafka")
    facts: dict[str, Any] = {"embedded": settings.embedded_broker, "restarts": part.restarts if part else 0}
    try:
        address = bootstrap_servers(settings)
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            lags = await read_lags(settings)
    except (PMLError, TimeoutError) as error:
        return PartStatus("kafka", "unreachable", last_error=_told(error), **facts), {}, ()
    pid = part.process.pid if part and part.process else None
    models = await _rolled_back(settings) if lags else ()
    return PartStatus("kafka", "ready", address, pid=pid, last_error=_error(part), **facts), lags, models


async def _rolled_back(settings: Settings) -> Models:
    """Nothing where the catalog cannot be read: the broker answers all the same."""
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            return rolled_back(await read_catalog(settings))
    except (PMLError, TimeoutError):
        return ()


def rolled_back(records: Records) -> Models:
    """What serves each tenant whose model was rolled back by itself, and why."""
    found = ((record.id, record.data) for record in records.values())
    return tuple(
        {"tenant": tenant, "serves": data.model_id, "why": data.why}
        for tenant, data in sorted(found, key=lambda item: item[0])
        if isinstance(data, ModelRecord) and data.why is not None
    )


def _store(settings: Settings, stack: Stack | None) -> PartStatus:
    part = _part(stack, "clickhouse")
    facts: dict[str, Any] = {"embedded": settings.embedded_store, "restarts": part.restarts if part else 0}
    try:
        url = store_url(settings)
        version = probe(url).version
    except PMLError as error:
        return PartStatus("clickhouse", "unreachable", last_error=_told(error), **facts)
    pid = part.process.pid if part and part.process else None
    address = str(Address.parse(url, settings.clickhouse.database))
    facts["facts"] = {"version": version}
    return PartStatus("clickhouse", "ready", address, pid=pid, last_error=_error(part), **facts)


def _roles(
    records: Iterable[HealthRecord], stack: Stack | None, lags: Mapping[str, int]
) -> tuple[PartStatus, ...]:
    """One line a role: its newest living process, else its newest word."""
    newest: dict[str, HealthRecord] = {}
    for record in sorted(records, key=lambda record: (record.process.alive, record.updated_at)):
        newest[record.role] = record
    return tuple(_role(record, stack, lags.get(role)) for role, record in sorted(newest.items()))


def _role(record: HealthRecord, stack: Stack | None, lag: int | None) -> PartStatus:
    worker = next((part for part in _parts(stack) if record.role in part.name.split("+")), None)
    return PartStatus(
        record.role,
        record.state,
        address=record.facts.get("http") or record.facts.get("metrics"),
        lag=lag,
        last_error=record.last_error["message"] if record.last_error else _error(worker),
        pid=record.pid if record.process.alive else None,
        restarts=worker.restarts if worker else 0,
        since=record.since,
        facts={name: value for name, value in record.facts.items() if name not in ("metrics", "http")},
    )


def role_inputs(topics: Topics) -> dict[str, tuple[str, ...]]:
    """The topics that each role's group reads."""
    return {
        "orchestrator": (topics.commands, topics.tool_outcomes),
        "bridge": (topics.tool_calls,),
        "metrics": (topics.events,),
        "thresholds": (topics.events, topics.lessons),
        "sink": (topics.events,),
    }


async def read_lags(settings: Settings) -> dict[str, int]:
    """For each role, how many records lie behind the offset that its group committed.

    A role whose group never committed has everything before it.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    inputs = role_inputs(settings.topics)
    partitions = {
        role: [TopicPartition(topic, number) for topic in topics for number in range(SESSION_PARTITIONS)]
        for role, topics in inputs.items()
    }
    async with admin_client(settings) as admin:
        existing = set(await admin.list_topics())
        read = {topic for topics in inputs.values() for topic in topics}
        if not read <= existing:
            return {}
        first, end = await _bounds(settings, [part for parts in partitions.values() for part in parts])
        committed = {role: await _committed(admin, settings.group(role)) for role in inputs}
    return {
        role: sum(end[part] - max(committed[role].get(part, 0), first[part]) for part in parts)
        for role, parts in partitions.items()
    }


async def _committed(admin: AIOKafkaAdminClient, group: str) -> dict[TopicPartition, int]:
    offsets = await admin.list_consumer_group_offsets(group)
    return {partition: place.offset for partition, place in offsets.items()}


async def _bounds(
    settings: Settings, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    consumer = AIOKafkaConsumer(**client_options(settings), enable_auto_commit=False)
    async with broker_errors(settings):
        try:
            await consumer.start()
            unique = list(set(partitions))
            return await consumer.beginning_offsets(unique), await consumer.end_offsets(unique)
        finally:
            await consumer.stop()


def _parts(stack: Stack | None) -> tuple[Part, ...]:
    return stack.parts if stack else ()


def _part(stack: Stack | None, name: str) -> Part | None:
    return next((part for part in _parts(stack) if part.name == name), None)


def _error(part: Part | None) -> str | None:
    return part.last_error if part else None


def _told(error: PMLError | TimeoutError) -> str:
    if isinstance(error, PMLError):
        return error.message
    return f"it did not answer within {BROKER_TIMEOUT_S:.0f} s"
