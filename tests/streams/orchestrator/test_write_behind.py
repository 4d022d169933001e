"""Write-behind beside a takeover: it waits for it, does not spin, and puts nothing old over what is new."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from pml.streams.orchestrator.table import PartitionTable
from pml.streams.orchestrator.write_behind import WriteBehind

PAUSE_S = 0.02


class Counting(WriteBehind):
    """Counts its looks at the partition."""

    looks = 0

    async def write(self) -> None:
        self.looks += 1
        await super().write()


def fenced_with_a_restamp_to_do() -> Any:
    """A partition that was overtaken before its states were written under its term."""
    restamp = asyncio.Event()
    restamp.set()
    settings = SimpleNamespace(orchestrator=SimpleNamespace(write_behind_s=PAUSE_S))
    shell = SimpleNamespace(settings=settings, now_ms=lambda: 0)
    return SimpleNamespace(
        ready=False,
        restoring=False,
        restamp=restamp,
        shell=shell,
        states=SimpleNamespace(changed=set(), definitions={}, stored={}),
        term=1,
        end=1,
        causes={},
    )


async def test_a_partition_that_is_not_ours_costs_a_look_each_pause() -> None:
    partition = fenced_with_a_restamp_to_do()
    behind = Counting(partition, "changelog", retake)
    running = asyncio.create_task(behind.run())
    await asyncio.sleep(5 * PAUSE_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert behind.looks == 0, "nothing is written while the partition is being taken"
    assert partition.restamp.is_set(), "it is still to be done, by whoever takes the partition again"


class Outbox:
    """Acknowledges each batch, and lets something happen before it does."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []
        self.before_answer: Callable[[], None] = lambda: None

    async def send(self, topic: str, number: int, batch: list[Any]) -> int:
        self.batches.append([record.key for record in batch])
        self.before_answer()
        return 0


def owned(outbox: Outbox) -> tuple[Any, list[Any]]:
    """A partition with a definition to be written, and what its states were told of the table."""
    told: list[Any] = []
    partition = fenced_with_a_restamp_to_do()
    partition.ready, partition.number = True, 0
    partition.restamp.clear()
    partition.shell.outbox = outbox
    partition.table = PartitionTable({}, 0)
    partition.states.definitions = {b"00000/definition/x": b"{}"}
    partition.states.written = told.append
    return partition, told


async def retake(partition: Any) -> None:
    raise AssertionError("nothing was in doubt")


async def test_states_and_then_the_marker_are_written_and_known() -> None:
    outbox = Outbox()
    partition, told = owned(outbox)
    await WriteBehind(partition, "changelog", retake).write()
    assert outbox.batches == [[b"00000/definition/x"], [b"00000/marker"]]
    assert len(told) == 2


async def test_what_an_owner_wrote_before_it_took_the_partition_again_is_not_what_it_knows() -> None:
    outbox = Outbox()
    partition, told = owned(outbox)
    outbox.before_answer = lambda: setattr(partition, "term", 7)
    await WriteBehind(partition, "changelog", retake).write()
    assert told == [], "the states of the new term were read from the log"
    assert len(outbox.batches) == 1, "nothing more is written under the term before, least of all its marker"


async def test_what_a_rebalance_interrupts_is_written_after_it() -> None:
    """Faust may replay what is older into the table meanwhile: a marker must not lie above that."""
    outbox = Outbox()
    partition, told = owned(outbox)
    behind = WriteBehind(partition, "changelog", retake)
    outbox.before_answer = lambda: setattr(partition, "restoring", True)
    await behind.write()
    await behind.write()
    assert (outbox.batches, told) == ([[b"00000/definition/x"]], [])
    outbox.before_answer = lambda: None
    partition.restoring = False
    assert partition.restamp.is_set()
    await behind.write()
    assert outbox.batches[1:] == [[b"00000/definition/x"], [b"00000/marker"]]
    assert len(told) == 2
