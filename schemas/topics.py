"""The topics: names, partitions, retention (CONTRACT.md, Topics)."""

from __future__ import annotations

from dataclasses import dataclass, field

SESSION_PARTITIONS = 12
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LOG_BYTES_MAX = 16 * 1024 * 1024
RESULT_BYTES_MAX = 8 * 1024 * 1024
# A result and its envelope, escaped once more in the worst case of JSON text inside JSON.
RECORD_BYTES_MAX = 10 * 1024 * 1024
# A lesson names its context twice, as key and as subject: some hundred bytes.
LESSON_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """How a topic must be; `retention_ms` -1 keeps for ever, `compacted` keeps the newest of a key."""

    name: str
    partitions: int
    retention_ms: int
    compacted: bool = False
    log_append_time: bool = True
    max_message_bytes: int = RECORD_BYTES_MAX

    def configs(self) -> dict[str, str]:
        """The broker's topic configuration."""
        configs = {
            "cleanup.policy": "compact" if self.compacted else "delete",
            "message.timestamp.type": "LogAppendTime" if self.log_append_time else "CreateTime",
            "max.message.bytes": str(self.max_message_bytes),
            "retention.ms": str(self.retention_ms),
        }
        if self.retention_ms > 0:
            # Only closed segments expire.
            configs["segment.ms"] = str(min(HOUR_MS, self.retention_ms // 8))
        if self.compacted:
            # Whoever keeps the history of records may be away for a day.
            configs |= {"segment.ms": str(HOUR_MS), "min.cleanable.dirty.ratio": "0.1"}
            configs |= {"min.compaction.lag.ms": str(DAY_MS)}
        return configs


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of all topics under one prefix."""

    prefix: str = "pml."
    commands: str = field(init=False)
    tool_calls: str = field(init=False)
    call_claims: str = field(init=False)
    tool_outcomes: str = field(init=False)
    events: str = field(init=False)
    catalog: str = field(init=False)
    lessons: str = field(init=False)
    dead_letters: str = field(init=False)

    def __post_init__(self) -> None:
        for name in (
            "commands",
            "tool_calls",
            "call_claims",
            "tool_outcomes",
            "events",
            "catalog",
            "lessons",
            "dead_letters",
        ):
            object.__setattr__(self, name, self.prefix + name.replace("_", "-"))

    def specs(self) -> tuple[TopicSpec, ...]:
        """What must exist before anything starts."""
        return (
            TopicSpec(self.commands, SESSION_PARTITIONS, 7 * DAY_MS),
            TopicSpec(self.tool_calls, SESSION_PARTITIONS, 25 * HOUR_MS),
            TopicSpec(self.call_claims, SESSION_PARTITIONS, 7 * DAY_MS),
            TopicSpec(self.tool_outcomes, SESSION_PARTITIONS, 25 * HOUR_MS),
            TopicSpec(self.events, SESSION_PARTITIONS, -1, max_message_bytes=LOG_BYTES_MAX),
            TopicSpec(self.catalog, 1, -1, compacted=True),
            TopicSpec(self.lessons, SESSION_PARTITIONS, 7 * DAY_MS, max_message_bytes=LESSON_BYTES_MAX),
            TopicSpec(self.dead_letters, 1, 14 * DAY_MS, max_message_bytes=64 * 1024 * 1024),
        )
