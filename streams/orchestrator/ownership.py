"""Which partitions are ours: Faust's rebalance hooks around taking over, keeping and dropping them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import structlog
from faust.types import TP

from pml.streams.app import ChunkApp
from pml.streams.crash_points import crash_point
from pml.streams.orchestrator.partition import Left, Partition
from pml.streams.orchestrator.shell import Shell
from pml.streams.orchestrator.table import SessionTable
from pml.streams.orchestrator.takeover import catch_up, is_ours, pass_expired, take_over
from pml.streams.orchestrator.write_behind import WriteBehind

# One heartbeat tells a fenced owner that the group has named another; half of one for its answer.
HEARTBEATS_WAITED = 1.5

log = structlog.get_logger("pml.orchestrator")


class Ownership:
    """The partitions of this process.

    Args:
        fail: called with what ended a partition's task; the role ends with it.
        taken: called when all our partitions are taken.
    """

    def __init__(
        self,
        app: ChunkApp,
        shell: Shell,
        table: SessionTable,
        fail: Callable[[BaseException], None],
        taken: Callable[[], None],
    ) -> None:
        self._app = app
        self._shell = shell
        self._table = table
        self._fail = fail
        self._taken = taken
        self._partitions: dict[int, Partition] = {}
        self._tasks: dict[int, list[asyncio.Task[None]]] = {}
        self._generation = -1

    def connect(self) -> None:
        """Let Faust call us."""
        self._app.delivery = replace(self._app.delivery, positions=self.positions)
        self._app.on_partitions_revoked.connect(self._suspend)
        self._app.on_partitions_assigned.connect(self._drop_lost)
        self._app.on_rebalance_complete.connect(self._take_all)

    def get(self, number: int) -> Partition | None:
        """A partition, if it is ours."""
        return self._partitions.get(number)

    @property
    def all(self) -> list[Partition]:
        """Our partitions."""
        return list(self._partitions.values())

    def positions(self, assigned: Iterable[TP]) -> Mapping[TP, int]:
        """Where the inputs of our partitions go on (rule 4, step 7)."""
        found = {
            TP(tp.topic, tp.partition): self._partitions[tp.partition].inbox.positions[tp.topic]
            for tp in assigned
            if tp.partition in self._partitions and tp.topic in self._partitions[tp.partition].inbox.positions
        }
        crash_point("orchestrator.after_seek")
        return found

    async def close(self) -> None:
        """Stop all tasks."""
        await asyncio.gather(*(self._drop(number) for number in list(self._partitions)))

    async def _suspend(self, app: Any, revoked: Any, **_: Any) -> None:
        """What waits is read again by the next owner; what is being decided ends by itself."""
        for partition in self._partitions.values():
            partition.inbox.close()
            partition.restoring = True

    async def _drop_lost(self, app: Any, assigned: Any, **_: Any) -> None:
        self._generation = self._app.consumer_generation_id
        for number in self._partitions.keys() - self._numbers(assigned):
            await self._drop(number)
            self._table.drop(number)

    async def _take_all(self, app: Any, **_: Any) -> None:
        """Rule 4, all partitions at once; inputs flow when this returns. May be cancelled and repeated."""
        numbers = self._numbers(self._app.consumer.assignment())
        await asyncio.gather(*(self._take(self._partitions.get(n) or self._new(n)) for n in numbers))
        self._taken()

    async def _take(self, partition: Partition) -> None:
        async with partition.lock:
            if not await is_ours(partition):
                await take_over(partition)
            await pass_expired(partition)
            partition.inbox.open(partition.positions)
            partition.restoring = False
        self._start(partition)

    async def _regain(self, partition: Partition) -> None:
        """After a doubt: fold on; if another owner took the partition, leave it or take it again."""
        if await catch_up(partition):
            return
        await asyncio.sleep(self._shell.settings.kafka.heartbeat_s * HEARTBEATS_WAITED)
        await self._retake(partition)

    async def _retake(self, partition: Partition) -> None:
        """Take a partition again if the group still names us; else the next rebalance says whose it is."""
        partition.ready = False
        if self._app.rebalancing or self._app.consumer_generation_id != self._generation:
            raise Left(f"the group may have named another owner of partition {partition.number}")
        await take_over(partition)

    def _new(self, number: int) -> Partition:
        partition = Partition(
            number, self._shell, self._table.partition(number), self._pause(number), self._regain
        )
        self._partitions[number] = partition
        return partition

    def _start(self, partition: Partition) -> None:
        if partition.number not in self._tasks:
            behind = WriteBehind(partition, self._table.changelog, self._retake)
            work = (partition.run(), partition.deadlines.run(), behind.run())
            self._tasks[partition.number] = [self._task(item) for item in work]

    def _task(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _drop(self, number: int) -> None:
        self._partitions.pop(number)
        tasks = self._tasks.pop(number, [])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _pause(self, number: int) -> Callable[[bool], None]:
        topics = (self._shell.topics.commands, self._shell.topics.tool_outcomes)
        inputs = {TP(topic, number) for topic in topics}

        def pause(on: bool) -> None:
            consumer = self._app.consumer
            if not self._app.rebalancing:
                (consumer.pause_partitions if on else consumer.resume_partitions)(inputs)

        return pause

    def _numbers(self, assigned: Iterable[Any]) -> set[int]:
        return {tp.partition for tp in assigned if tp.topic == self._shell.topics.commands}
