"""Parts of a replay in processes of their own: partitions have nothing to do with each other."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.errors import ConfigurationError
from pml.streams.replay.parts import Part, replay_part
from pml.streams.replay.play import ReplayReport
from pml.streams.replay.selection import Selection
from pml.streams.settings import Settings

# A process takes a second to begin, in which one that runs folds so many events.
RECORDS_EACH_LEAST = 20_000
# Behind everything that serves: a replay may take longer, a session may not.
NICENESS = 10
LOOK_S = 0.1
_SPAWN = multiprocessing.get_context("spawn")


class ReplayWorkerLost(ConfigurationError):
    """A process of a replay ended before its part was done: there are too many of them for the memory."""

    code = "REPLAY_WORKER_LOST"


@dataclass(frozen=True, slots=True)
class Hearers:
    """Who is told: `part` of each part that is done, in any order; `read` how many records were in all."""

    part: Callable[[Part, ReplayReport], None]
    read: Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Shared:
    """What all processes of a replay see: how many records were read, and whether it is over."""

    read: Any = field(default_factory=lambda: _SPAWN.Value("q", 0))
    over: Any = field(default_factory=_SPAWN.Event)


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_for(parts: Sequence[Part], most: int) -> int:
    """How many processes pay for these parts: at most so many, and one a part."""
    records = sum(part.records for part in parts)
    return max(1, min(most, len(parts), records // RECORDS_EACH_LEAST))


async def replay_parts(
    settings: Settings,
    selection: Selection,
    parts: Sequence[Part],
    workers: int,
    hearers: Hearers,
) -> None:
    """Replay every part, in this process where one is enough; `workers` is how many processes at once.

    The largest first: what is left for the last process to end is small.

    Raises:
        BrokerUnavailable, StoreUnavailable, LogCorrupted: as a part does; the others are given up.
        ReplayWorkerLost: somebody ended one of the processes.
    """
    parts = sorted(parts, key=lambda part: -part.records)
    if workers > 1:
        shared, loop = Shared(), asyncio.get_running_loop()
        async with _pool(workers, shared) as pool, _telling(shared, hearers):

            async def replayed(part: Part) -> None:
                with _deaf_children():
                    replaying = loop.run_in_executor(pool, _replayed, settings, selection, part)
                hearers.part(part, await replaying)

            try:
                await asyncio.gather(*map(replayed, parts))
            except BrokenExecutor:
                raise ReplayWorkerLost(
                    f"one of {workers} processes of the replay was ended from outside, as the kernel does "
                    "where memory runs out: take fewer at once (--workers 1)"
                ) from None
        return
    read = 0

    def heard(records: int) -> None:
        nonlocal read
        read += records
        hearers.read(read)

    for part in parts:
        hearers.part(part, await replay_part(settings, selection, part, heard))


@contextmanager
def _deaf_children() -> Iterator[None]:
    """A process that begins here does not hear Ctrl-C, also not before it comes to say so itself.

    What its parent holds back meanwhile stays held back in it.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@asynccontextmanager
async def _pool(workers: int, shared: Shared) -> AsyncIterator[ProcessPoolExecutor]:
    """Processes that are gone afterwards, whatever happened: they are told so, and look often."""
    pool = ProcessPoolExecutor(workers, _SPAWN, _begin, (shared.read, shared.over))
    try:
        yield pool
    finally:
        shared.over.set()
        await asyncio.to_thread(pool.shutdown, cancel_futures=True)


@asynccontextmanager
async def _telling(shared: Shared, hearers: Hearers) -> AsyncIterator[None]:
    async def tell() -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            hearers.read(shared.read.value)

    telling = asyncio.create_task(tell())
    try:
        yield
    finally:
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        hearers.read(shared.read.value)


_shared: list[Shared] = []
"""In a process of a pool: what it shares with its parent."""


def _begin(read: Any, over: Any) -> None:
    """A process of the pool begins: Ctrl-C is its parent's to hear."""
    from pml.streams.logs import silence_libraries

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    silence_libraries()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    _shared.append(Shared(read, over))


def _replayed(settings: Settings, selection: Selection, part: Part) -> ReplayReport:
    return asyncio.run(_unless_over(settings, selection, part, _shared[0]))


async def _unless_over(settings: Settings, selection: Selection, part: Part, shared: Shared) -> ReplayReport:
    """One part, given up once the replay is over or the parent is gone."""

    def heard(records: int) -> None:
        with shared.read.get_lock():
            shared.read.value += records

    replaying = asyncio.create_task(replay_part(settings, selection, part, heard))
    while not (await asyncio.wait((replaying,), timeout=LOOK_S))[0]:
        parent = multiprocessing.parent_process()
        if shared.over.is_set() or (parent is not None and not parent.is_alive()):
            replaying.cancel()
    return await replaying
