"""The producer of dead letters: one, whoever is first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pml.schemas.errors import UndecodableRecord
from pml.schemas.topics import Topics
from pml.streams.bridge import letters as module
from pml.streams.bridge.letters import DeadLetters


class Producer:
    """Takes a while to start."""

    made: list[Producer]

    def __init__(self, **_: Any) -> None:
        self.made.append(self)
        self.stopped = False

    async def start(self) -> None:
        await asyncio.sleep(0)

    async def stop(self) -> None:
        self.stopped = True


async def test_two_first_letters_at_once_share_a_producer_which_is_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent: list[Any] = []

    async def dead_letter(producer: Any, *_: Any) -> None:
        sent.append(producer)

    Producer.made = []
    monkeypatch.setattr(module, "AIOKafkaProducer", Producer)
    monkeypatch.setattr(module, "dead_letter", dead_letter)
    letters, record, error = DeadLetters(Topics(), {}), None, UndecodableRecord("no JSON")
    await asyncio.gather(*(letters.send(record, "decode", error) for _ in range(2)))  # type: ignore[arg-type]
    await letters.close()
    assert sent == [Producer.made[0]] * 2
    assert [producer.stopped for producer in Producer.made] == [True]
