import uuid
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from pml.schemas.errors import BrokerUnavailable, ConfigurationError, TopicMismatch
from pml.schemas.topics import Topics, TopicSpec
from pml.streams.settings import Settings
from pml.streams.topics import (
    FoundTopic,
    admin_client,
    ensure_changelog,
    ensure_topics,
    found_topics,
    mismatches,
)

SPECS = {spec.name: spec for spec in Topics("t.").specs()}


def as_wanted(spec: TopicSpec) -> FoundTopic:
    return FoundTopic(spec.partitions, spec.configs())


def settings_of(broker: str, folder: Path, **kafka: object) -> Settings:
    prefix = f"t{uuid.uuid4().hex[:8]}."
    return Settings.load(
        data_dir=folder, kafka={"bootstrap_servers": broker, "topic_prefix": prefix, **kafka}
    )


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_topic_as_it_must_be_has_no_mismatch(spec: TopicSpec) -> None:
    assert mismatches(spec, as_wanted(spec)) == []


@pytest.mark.parametrize(
    ("topic", "name", "value"),
    [
        ("t.commands", "cleanup.policy", "compact"),
        ("t.commands", "message.timestamp.type", "CreateTime"),
        ("t.commands", "retention.ms", "1000"),
        ("t.events", "retention.ms", "604800000"),
        ("t.events", "max.message.bytes", "1048576"),
        ("t.catalog", "cleanup.policy", "delete"),
    ],
)
def test_each_difference_that_matters_is_told(topic: str, name: str, value: str) -> None:
    found = FoundTopic(SPECS[topic].partitions, SPECS[topic].configs() | {name: value})
    assert [name in told and value in told for told in mismatches(SPECS[topic], found)] == [True]


def test_partitions_are_for_life() -> None:
    found = replace(as_wanted(SPECS["t.events"]), partitions=6)
    assert mismatches(SPECS["t.events"], found) == ["6 partitions (not 12)"]


def test_a_compacted_topic_may_have_any_retention() -> None:
    catalog = SPECS["t.catalog"]
    assert mismatches(catalog, FoundTopic(1, catalog.configs() | {"retention.ms": "1"})) == []


@pytest.mark.integration
async def test_topics_are_created_once_and_found_right_afterwards(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, tmp_path)
    await ensure_topics(settings)
    await ensure_topics(settings)
    async with admin_client(settings) as admin:
        found = await found_topics(admin, [spec.name for spec in settings.topics.specs()])
    assert {name: topic.partitions for name, topic in found.items()} == {
        spec.name: spec.partitions for spec in settings.topics.specs()
    }
    assert found[settings.topics.tool_calls].configs["segment.ms"] == "3600000"


@pytest.mark.integration
async def test_a_topic_that_exists_otherwise_stops_the_start(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, tmp_path)
    async with admin_client(settings) as admin:
        await admin.create_topics([NewTopic(settings.topics.commands, 3, 1)])
    with pytest.raises(TopicMismatch) as raised:
        await ensure_topics(settings)
    assert f"{settings.topics.commands} has 3 partitions (not 12)" in raised.value.message
    assert settings.topics.commands in raised.value.details["topics"]


@pytest.mark.integration
async def test_a_broker_that_is_fenced_for_a_moment_is_waited_for(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topics, asked = AIOKafkaAdminClient.create_topics, []

    async def fenced_at_first(admin: AIOKafkaAdminClient, topics: list[NewTopic], **options: Any) -> Any:
        asked.append(topics)
        if len(asked) > 2:
            return await create_topics(admin, topics, **options)
        said = "Unable to replicate the partition 1 time(s): All brokers are currently fenced."
        return SimpleNamespace(topic_errors=[(topic.name, 38, said) for topic in topics])

    monkeypatch.setattr(AIOKafkaAdminClient, "create_topics", fenced_at_first)
    settings = settings_of(kafka, tmp_path)
    await ensure_topics(settings)
    async with admin_client(settings) as admin:
        names = [spec.name for spec in settings.topics.specs()]
        assert set(await found_topics(admin, names)) == set(names)
    assert len(asked) == 3


@pytest.mark.integration
async def test_a_replication_factor_that_the_broker_cannot_give_is_told(kafka: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="replication"):
        await ensure_topics(settings_of(kafka, tmp_path, replication_factor=3))


@pytest.mark.integration
async def test_a_changelog_has_its_partitions_before_faust_looks_at_it(kafka: str, tmp_path: Path) -> None:
    settings = settings_of(kafka, tmp_path)
    name = f"{settings.group('metrics')}-totals-changelog"
    for _ in range(2):
        await ensure_changelog(settings, name, {"cleanup.policy": "compact"})
        async with admin_client(settings) as admin:
            found = (await found_topics(admin, [name]))[name]
        assert (found.partitions, found.ready, found.configs["cleanup.policy"]) == (12, True, "compact")


async def test_a_broker_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BrokerUnavailable, match="pml up"):
        await ensure_topics(settings_of("127.0.0.1:1", tmp_path))
