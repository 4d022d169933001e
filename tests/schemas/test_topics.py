"""Topics: what must exist, and how."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pml.schemas.topics import (
    HOUR_MS,
    LOG_BYTES_MAX,
    RECORD_BYTES_MAX,
    RESULT_BYTES_MAX,
    SESSION_PARTITIONS,
    Topics,
    TopicSpec,
)

SPECS = {spec.name: spec for spec in Topics().specs()}


def test_the_names_are_the_contracts() -> None:
    assert set(SPECS) == {
        "pml.commands",
        "pml.tool-calls",
        "pml.call-claims",
        "pml.tool-outcomes",
        "pml.events",
        "pml.catalog",
        "pml.lessons",
        "pml.dead-letters",
    }


def test_every_name_has_the_prefix_and_a_spec() -> None:
    topics = Topics("test-7.")
    names = {getattr(topics, item.name) for item in fields(topics)} - {topics.prefix}
    assert {spec.name for spec in topics.specs()} == names
    assert all(name.startswith("test-7.") for name in names)


@pytest.mark.parametrize("name", ["commands", "tool-calls", "call-claims", "tool-outcomes", "events"])
def test_session_topics_share_partitions_and_the_brokers_clock(name: str) -> None:
    spec = SPECS[f"pml.{name}"]
    assert spec.partitions == SESSION_PARTITIONS == 12
    assert spec.configs()["message.timestamp.type"] == "LogAppendTime"
    assert not spec.compacted


@pytest.mark.parametrize(
    ("name", "retention_h"),
    [
        ("commands", 168),
        ("tool-calls", 25),
        ("call-claims", 168),
        ("tool-outcomes", 25),
        ("dead-letters", 336),
    ],
)
def test_what_expires_expires_in_time(name: str, retention_h: int) -> None:
    configs = SPECS[f"pml.{name}"].configs()
    assert int(configs["retention.ms"]) == retention_h * HOUR_MS
    # Only closed segments expire: at most an eighth of the retention late, at most an hour.
    assert int(configs["segment.ms"]) <= min(HOUR_MS, retention_h * HOUR_MS // 8)


def test_events_are_kept_for_ever_and_the_catalog_by_key() -> None:
    assert SPECS["pml.events"].configs()["retention.ms"] == "-1"
    assert SPECS["pml.events"].configs()["cleanup.policy"] == "delete"
    assert SPECS["pml.catalog"].configs()["cleanup.policy"] == "compact"


def test_the_largest_values_fit() -> None:
    assert RESULT_BYTES_MAX < RECORD_BYTES_MAX <= SPECS["pml.tool-outcomes"].max_message_bytes
    assert SPECS["pml.events"].max_message_bytes == LOG_BYTES_MAX
    dead = SPECS["pml.dead-letters"].max_message_bytes
    assert all(spec.max_message_bytes < dead for spec in SPECS.values() if spec.name != "pml.dead-letters")


def test_a_short_retention_has_shorter_segments() -> None:
    assert TopicSpec("t", 1, 8_000).configs()["segment.ms"] == "1000"
