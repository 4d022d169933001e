"""The state of every part: broker, store and roles, with their lag (group offsets against ends of topics)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaError,
    NoError,
    NotCoordinatorForGroupError,
)

from pml.clickhouse.address import Address
from pml.clickhouse.client import probe
from pml.schemas.catalog import ModelRecord
from pml.schemas.errors import PMLError
from pml.schemas.topics import SESSION_PARTITIONS, Topics
from pml.streams.catalog_topic import Records, read_catalog
from pml.streams.connection import bootstrap_servers, client_options, store_url
from pml.streams.health import HealthRecord, read_all
from pml.streams.local.stack import WORKERS, Part, Stack, read_stack
from pml.streams.reachability import broker_errors
from pml.streams.settings import Settings
from pml.streams.topics import admin_client

# A broker on this machine answers in milliseconds; a person waits for the whole of it.
BROKER_TIMEOUT_S = 5.0
# A role of which nothing is known: it does not run, or has not said anything yet.
ABSENT = "absent"
# A role that did not say anything here, but whose group has members: somebody runs it on another machine.
ELSEWHERE = "elsewhere"
WORKING = ("ready", ELSEWHERE)
# A broker that just started: nobody has asked for its groups yet, or they are being read.
GROUPS_UNKNOWN = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
# Where the members stand in what the broker says of a group.
MEMBERS = 5


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part as `pml status` shows it; `lag` is the number of records that wait for it.

    One that is not `needed` is shown, and its state counts for nothing.
    """

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
    needed: bool = True


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
        """Whether every part that is needed does its work."""
        return self.reachable and all(part.state in WORKING for part in self.parts if part.needed)

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
    told = _told_roles(read_all(settings.data_dir), running, lags)
    silent = [role for roles in WORKERS for role in roles if role not in told]
    # Where a stack is up, its own workers are what is asked for; without topics nobody works anywhere.
    members = await _members(settings, silent) if lags and not running else {}
    told |= {role: _silent_role(role, running, lags.get(role), members.get(role, 0)) for role in silent}
    roles = (part for _, part in sorted(told.items()))
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


def _told_roles(
    records: Iterable[HealthRecord], stack: Stack | None, lags: Mapping[str, int]
) -> dict[str, PartStatus]:
    """Each role that said something here: its newest living process, else its newest word."""
    newest: dict[str, HealthRecord] = {}
    for record in sorted(records, key=lambda record: (record.process.alive, record.updated_at)):
        newest[record.role] = record
    return {role: _role(record, stack, lags.get(role)) for role, record in newest.items()}


def _silent_role(role: str, stack: Stack | None, lag: int | None, members: int) -> PartStatus:
    """A role that said nothing here: what the supervisor of its worker says, else what its group does.

    The gateway has no group, and who runs roles by hand may want none: without a stack it is not needed.
    """
    if stack is None:
        needed = role in GROUPED
        facts = {"members": members} if members else {}
        return PartStatus(role, ELSEWHERE if members else ABSENT, needed=needed, lag=lag, facts=facts)
    worker = _worker(stack, role)
    if worker is None:
        return PartStatus(role, ABSENT, lag=lag)
    return PartStatus(
        role,
        # Ready is what a role says itself.
        worker.state if worker.state not in WORKING else ABSENT,
        lag=lag,
        last_error=worker.last_error,
        pid=worker.process.pid if worker.process else None,
        restarts=worker.restarts,
    )


def _role(record: HealthRecord, stack: Stack | None, lag: int | None) -> PartStatus:
    worker = _worker(stack, record.role)
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


# The gateway is in none: nobody but itself can say that it runs.
GROUPED = frozenset(role_inputs(Topics()))


async def _members(settings: Settings, roles: Collection[str]) -> dict[str, int]:
    """As `read_members`; nothing where the broker does not say."""
    try:
        async with asyncio.timeout(BROKER_TIMEOUT_S):
            return await read_members(settings, GROUPED.intersection(roles))
    except (PMLError, KafkaError, TimeoutError):
        return {}


async def read_members(settings: Settings, roles: Collection[str]) -> dict[str, int]:
    """For each of these roles that reads in a group, how many members the group has, wherever they run.

    A member that died counts until its session is over (`kafka.session_timeout_s`).

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    if not roles:
        return {}
    async with admin_client(settings) as admin:
        return {role: await _group_members(admin, settings.group(role)) for role in roles}


async def _group_members(admin: AIOKafkaAdminClient, group: str) -> int:
    # One group a request: aiokafka reads no second one of the answer (it takes version 3 for version 2).
    (answer,) = await admin.describe_consumer_groups([group])
    return sum(len(found[MEMBERS]) for found in answer.groups if found[0] == NoError.errno)


async def read_lags(settings: Settings) -> dict[str, int]:
    """For each role, how many records lie behind the offset that its group committed.

    A role whose group never committed has everything before it. Nothing is known where topics are missing,
    and of a broker that does not know its groups yet.

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
        try:
            committed = {role: await _committed(admin, settings.group(role)) for role in inputs}
        except GROUPS_UNKNOWN:
            return {}
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


def _worker(stack: Stack | None, role: str) -> Part | None:
    return next((part for part in _parts(stack) if role in part.name.split("+")), None)


def _part(stack: Stack | None, name: str) -> Part | None:
    return next((part for part in _parts(stack) if part.name == name), None)


def _error(part: Part | None) -> str | None:
    return part.last_error if part else None


def _told(error: PMLError | TimeoutError) -> str:
    if isinstance(error, PMLError):
        return error.message
    return f"it did not answer within {BROKER_TIMEOUT_S:.0f} s"
