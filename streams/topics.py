"""The topics on the broker: created explicitly, and checked where they exist (CONTRACT.md, Topics)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidReplicationFactorError,
    LeaderNotAvailableError,
    NoError,
    TopicAlreadyExistsError,
    for_code,
)

from pml.schemas.errors import BrokerUnavailable, ConfigurationError, TopicMismatch
from pml.schemas.topics import SESSION_PARTITIONS, TopicSpec
from pml.streams.connection import client_options
from pml.streams.reachability import FORBIDDEN, broker_errors
from pml.streams.settings import Settings

# One node makes seven topics in under a second; a busy cluster takes several.
CREATE_TIMEOUT_S = 30.0
POLL_S = 0.1
Refusal = tuple[str, int, str | None]
CHECKED = ("cleanup.policy", "message.timestamp.type")


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic as the broker has it."""

    partitions: int
    configs: Mapping[str, str]
    ready: bool = True


async def ensure_topics(settings: Settings) -> None:
    """Create the topics that are missing, then check all of them.

    Raises:
        TopicMismatch: one exists with other partitions, retention, clean-up or timestamps.
        BrokerUnavailable: the broker does not answer, or the topics are not ready in 30 s.
        ConfigurationError: the broker refuses to create one (rights, replication factor).
    """
    specs = settings.topics.specs()
    async with admin_client(settings) as admin:
        found = await found_topics(admin, [spec.name for spec in specs])
        missing = [_new(spec, settings) for spec in specs if spec.name not in found]
        if missing:
            await _create(admin, missing)
            found = await _wait_until_ready(admin, [spec.name for spec in specs])
    check_topics(specs, found)


async def ensure_changelog(settings: Settings, name: str, configs: Mapping[str, str]) -> None:
    """Create the changelog of a Faust table where it is missing, and wait until it has leaders.

    Faust makes it too, but looks at it at once and ends when it sees no partitions yet.

    Raises:
        BrokerUnavailable, ConfigurationError: as `ensure_topics`.
    """
    factor = settings.kafka.replication_factor
    async with admin_client(settings) as admin:
        if name not in await found_topics(admin, [name]):
            new = NewTopic(name, SESSION_PARTITIONS, factor, topic_configs=dict(configs))
            await _create(admin, [new])
            await _wait_until_ready(admin, [name])


def check_topics(specs: Iterable[TopicSpec], found: Mapping[str, FoundTopic]) -> None:
    """Refuse topics that are not as they must be.

    Raises:
        TopicMismatch: says of each what differs.
    """
    wrong = {spec.name: mismatches(spec, found[spec.name]) for spec in specs if spec.name in found}
    wrong = {name: differences for name, differences in wrong.items() if differences}
    if wrong:
        told = "; ".join(f"{name} has {' and '.join(differences)}" for name, differences in wrong.items())
        raise TopicMismatch(
            f"topics exist in another shape than PML needs: {told}. Alter or remove them, "
            "or set kafka.topic_prefix to one of your own",
            topics=wrong,
        )


def mismatches(spec: TopicSpec, found: FoundTopic) -> list[str]:
    """What differs, each as `has (not wanted)`; empty where the topic is right."""
    wanted = spec.configs()
    names = CHECKED if spec.compacted else (*CHECKED, "retention.ms")
    differences = [
        f"{name}={found.configs.get(name)} (not {wanted[name]})"
        for name in names
        if found.configs.get(name) != wanted[name]
    ]
    if found.partitions != spec.partitions:
        differences.insert(0, f"{found.partitions} partitions (not {spec.partitions})")
    if int(found.configs.get("max.message.bytes", "0")) < spec.max_message_bytes:
        has = found.configs.get("max.message.bytes")
        differences.append(f"max.message.bytes={has} (less than {spec.max_message_bytes})")
    return differences


@asynccontextmanager
async def admin_client(settings: Settings) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connected admin client.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    async with broker_errors(settings):
        admin = AIOKafkaAdminClient(**client_options(settings))
        try:
            await admin.start()
            yield admin
        finally:
            await admin.close()


async def found_topics(admin: AIOKafkaAdminClient, wanted: Iterable[str]) -> dict[str, FoundTopic]:
    """Those of these topics that exist."""
    names = set(wanted)
    # All topics: a request that names one makes a broker with automatic creation create it.
    described = [topic for topic in await admin.describe_topics() if topic["topic"] in names]
    _refuse_other_errors(described)
    existing = {topic["topic"]: topic for topic in described if topic["error_code"] == NoError.errno}
    configs = await _configs(admin, existing)
    return {
        name: FoundTopic(len(topic["partitions"]), configs[name], _has_leaders(topic))
        for name, topic in existing.items()
        if name in configs
    }


def _refuse_other_errors(described: Iterable[Mapping[str, Any]]) -> None:
    # Leaders are elected right after a topic was made.
    passed = (NoError.errno, LeaderNotAvailableError.errno)
    for topic in described:
        if topic["error_code"] not in passed:
            raise _refusal(topic["topic"], topic["error_code"], None)


def _has_leaders(topic: Mapping[str, Any]) -> bool:
    return all(partition["leader"] >= 0 for partition in topic["partitions"])


async def _configs(admin: AIOKafkaAdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    if not resources:
        return {}
    answers = await admin.describe_configs(resources)
    return {
        name: {entry[0]: entry[1] for entry in entries}
        for answer in answers
        for error_code, _, _, name, entries in answer.resources
        if error_code == NoError.errno
    }


def _new(spec: TopicSpec, settings: Settings) -> NewTopic:
    factor = settings.kafka.replication_factor
    return NewTopic(spec.name, spec.partitions, factor, topic_configs=spec.configs())


async def _create(admin: AIOKafkaAdminClient, topics: list[NewTopic]) -> None:
    give_up = time.monotonic() + CREATE_TIMEOUT_S
    refused = await _refused(admin, topics)
    while any(map(_fenced, refused)) and time.monotonic() < give_up:
        await asyncio.sleep(POLL_S)
        refused = await _refused(admin, topics)
    for name, code, message in refused:
        raise _refusal(name, code, message)


async def _refused(admin: AIOKafkaAdminClient, topics: list[NewTopic]) -> list[Refusal]:
    """Name, code and message of each topic that was not made; another stack may have been quicker."""
    answer = await admin.create_topics(topics, timeout_ms=int(CREATE_TIMEOUT_S * 1000))
    made = (NoError.errno, TopicAlreadyExistsError.errno)
    return [refusal for refusal in answer.topic_errors if refusal[1] not in made]


def _fenced(refused: Refusal) -> bool:
    """Whether the brokers were silent for too long to be given anything; they are back in a moment."""
    _, code, message = refused
    return code == InvalidReplicationFactorError.errno and "fenced" in (message or "")


def _refusal(topic: str, code: int, message: str | None) -> Exception:
    if for_code(code) in FORBIDDEN:
        return for_code(code)(f"create {topic}")
    reason = (message or for_code(code).__name__).rstrip(".")
    return ConfigurationError(
        f"the broker refuses topic {topic}: {reason}. Check the rights of kafka.sasl_username and "
        "kafka.replication_factor"
    )


async def _wait_until_ready(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, FoundTopic]:
    give_up = time.monotonic() + CREATE_TIMEOUT_S
    while time.monotonic() < give_up:
        found = await found_topics(admin, names)
        if len(found) == len(names) and all(topic.ready for topic in found.values()):
            return found
        await asyncio.sleep(POLL_S)
    raise BrokerUnavailable(f"the broker has no leaders for the new topics after {CREATE_TIMEOUT_S:.0f} s")
