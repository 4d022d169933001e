"""Write-behind beside a takeover: it waits for it, and does not spin."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

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
        restamp=restamp,
        shell=shell,
        states=SimpleNamespace(changed=set(), definitions={}, stored={}),
        term=1,
        end=1,
        causes={},
    )


async def test_a_partition_that_is_not_ours_costs_a_look_each_pause() -> None:
    async def retake(partition: Any) -> None:
        raise AssertionError("nothing was in doubt")

    partition = fenced_with_a_restamp_to_do()
    behind = Counting(partition, "changelog", retake)
    running = asyncio.create_task(behind.run())
    await asyncio.sleep(5 * PAUSE_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert behind.looks == 0, "nothing is written while the partition is being taken"
    assert partition.restamp.is_set(), "it is still to be done, by whoever takes the partition again"
