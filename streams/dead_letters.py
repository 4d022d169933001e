"""Dead letters: what could not be read, handled or written, bytes untouched (CONTRACT.md, Topics)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from pml.schemas.errors import PMLError
from pml.schemas.times import to_rfc3339
from pml.schemas.topics import Topics
from pml.streams.telemetry import DEAD_LETTERS

HEADER_PREFIX = "pml-dlq-"
MESSAGE_BYTES_MAX = 2_048


class Received(Protocol):
    """A record as a consumer got it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...


async def dead_letter(producer: Any, topics: Topics, record: Received, stage: str, error: PMLError) -> None:
    """Send the record as it is to the dead letters, acknowledged, and count it.

    `stage` is where it stopped: `decode`, `decide`, `call`, `project`, `insert`. The record's own headers
    are kept. Where sending fails the producer's error goes up: the record is not handled then.
    """
    headers = [
        *(record.headers or ()),
        *dead_letter_headers(record, stage, error, time.time_ns() // 1_000_000),
    ]
    await producer.send_and_wait(topics.dead_letters, value=record.value, key=record.key, headers=headers)
    DEAD_LETTERS.labels(record.topic, stage, error.code).inc()


def dead_letter_headers(record: Received, stage: str, error: PMLError, at_ms: int) -> list[tuple[str, bytes]]:
    """Where the record lay, when and where it stopped, and why."""
    message = error.message.encode()[:MESSAGE_BYTES_MAX].decode(errors="ignore")
    facts = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "at": to_rfc3339(at_ms),
        "stage": stage,
        "code": error.code,
        "message": message,
    }
    return [(HEADER_PREFIX + name, str(value).encode()) for name, value in facts.items()]
