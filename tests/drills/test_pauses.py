"""An owner that is paused until another has taken its partitions, a broker and a store that die."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable

import pytest

from pml.schemas.codec import decode_event
from pml.streams.log.reader import counted
from tests.drills.verdict import read_topic, verdict
from tests.drills.workshop import SESSION_TIMEOUT_S, Workshop, until
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.store import start_embedded

ROUNDS = int(os.environ.get("PML_DRILL_ROUNDS", "1"))
# How long the store stays away; `make drill` makes it ten minutes.
STORE_AWAY_S = int(os.environ.get("PML_DRILL_STORE_AWAY_S", "0"))
RUNS_MEANWHILE = 10
# Measured: 93 MB in ten minutes and 53,000 events, most of it what consumer and buffer may hold.
SINK_GROWTH_MAX_MB = 200
pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest.mark.parametrize("turn", range(ROUNDS))
async def test_an_orchestrator_that_wakes_after_it_was_overtaken_writes_nothing_that_counts(
    workshop: Workshop, turn: int, say: Callable[[str], None]
) -> None:
    async with workshop.work():
        workshop.start("orchestrator", name="second")
        try:
            await workshop.until_ready("second", "orchestrator")
            held = await _held_in_peace(workshop, workshop.pid("orchestrator"))
            workshop.pause("orchestrator")
            await _until_taken(workshop, held)
        finally:
            workshop.resume("orchestrator")
            await asyncio.sleep(SESSION_TIMEOUT_S)
            workshop.kill("second")
    say(f"paused until its {len(held)} partitions were taken: {await verdict(workshop)}")


async def _held_in_peace(workshop: Workshop, pid: int) -> dict[int, int]:
    """The partitions that a process holds, with its terms, once nobody takes any more.

    Read before anyone is paused: on a busy machine the log is read for longer than a takeover takes.
    """
    before: dict[int, tuple[str, int]] = {}
    now = await _taken(workshop)
    while now != before:
        await asyncio.sleep(SESSION_TIMEOUT_S / 3)
        before, now = now, await _taken(workshop)
    held = {partition: term for partition, (owner, term) in now.items() if owner.endswith(f"-{pid}")}
    assert held, "who is to be paused holds nothing"
    return held


async def _until_taken(workshop: Workshop, held: dict[int, int]) -> None:
    """Wait until somebody else has taken every partition that the paused one held."""
    give_up = time.monotonic() + PATIENCE_S
    while left := await _still_held(workshop, held):
        assert time.monotonic() < give_up, f"nobody took the partitions {left} of the paused owner"
        await asyncio.sleep(0.2)


async def _still_held(workshop: Workshop, held: dict[int, int]) -> list[int]:
    taken = await _taken(workshop)
    return [partition for partition, term in held.items() if taken[partition][1] == term]


async def _taken(workshop: Workshop) -> dict[int, tuple[str, int]]:
    """Who took each partition last, and with which term."""
    records = await read_topic(workshop, workshop.settings.topics.events)
    told = (each for each in records if dict(each.headers).get("pml-type") == b"partition.taken")
    taken = (each for each in told if counted(each))
    return {each.partition: (decode_event(each.value).data.owner, each.offset) for each in taken}


@pytest.mark.parametrize("turn", range(ROUNDS))
async def test_a_broker_that_dies_and_comes_back_loses_and_doubles_nothing(
    workshop: Workshop, turn: int, say: Callable[[str], None]
) -> None:
    async with workshop.tended():
        async with workshop.work(per_second=4):
            workshop.broker.kill()
            await workshop.broker.start()
        say(f"broker killed: {await verdict(workshop)}")


async def test_runs_go_on_while_clickhouse_is_down_and_nothing_is_missing_afterwards(
    workshop: Workshop, say: Callable[[str], None]
) -> None:
    port = int(workshop.store.url.rpartition(":")[2])
    async with workshop.work():
        before_mb = workshop.memory_mb("sink")
        workshop.store.kill()
        runs = await _runs_of_a_store_less_time(workshop)
        grown_mb = workshop.memory_mb("sink") - before_mb
    replacement = await asyncio.to_thread(start_embedded, workshop.store_folder, port)
    workshop.store.process = replacement.process
    say(f"store away for {runs} runs, sink grew {grown_mb:.0f} MB: {await verdict(workshop)}")
    assert grown_mb < SINK_GROWTH_MAX_MB


async def _runs_of_a_store_less_time(workshop: Workshop) -> int:
    """Wait for ten runs, and for as long as the store is to stay away; how many runs began."""
    before, began = len(workshop.submissions), time.monotonic()

    def over() -> bool:
        enough = len(workshop.submissions) >= before + RUNS_MEANWHILE
        return enough and time.monotonic() - began >= STORE_AWAY_S

    await until(over, STORE_AWAY_S + PATIENCE_S, "no runs were submitted")
    return len(workshop.submissions) - before
