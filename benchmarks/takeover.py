"""`takeover`: how long nothing is decided when the orchestrator is killed, and what a recovery costs.

The stack is the one of `pml up`. Its orchestrator is killed as kill -9 does it, the supervisor starts it
again, and commands that were sent after the kill wait to be answered: on a stack whose members keep their
names (static membership, as `pml up` has it), and on one whose members do not. Both changelogs hold an hour
of a busy installation by then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from benchmarks.changelog import write_an_hour
from benchmarks.figures import Figure
from benchmarks.plan import Plan, in_turns
from benchmarks.recovery import EVENTS_BEHIND, SESSIONS, Measured, measure_recovery
from benchmarks.stack import bench_settings, beside
from benchmarks.step import Runner, chain, runner
from pml.schemas.errors import PMLError
from pml.schemas.events import RunStarted
from pml.schemas.identifiers import DEFAULT_TENANT, session_key
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.client import EventConsumer, IntentProducer, new_id
from pml.streams.connection import partition_for
from pml.streams.local.stack import running_stack
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

# What names the members of a stack; where it is set and empty, they have no names.
MEMBER_VARIABLE = "PML_KAFKA__GROUP_INSTANCE_ID"
ORCHESTRATOR = "orchestrator"
# The session's time-out is 10 s, a worker starts in a few; a busy machine takes a while.
DECISION_TIMEOUT_S = 180
# What the changelog is made of: so many sessions that were busy for an hour.
BUSY_SESSIONS, STEPS = 100, 3
# States are written behind twice a second.
SETTLE_S = 2.0


class NoOrchestrator(PMLError):
    """The stack has no orchestrator that could be killed."""

    code = "NO_ORCHESTRATOR"


@dataclass(slots=True)
class Killed:
    """One value a kill, in seconds: until the first decision, and until there is one in each partition."""

    first_s: list[float] = field(default_factory=list)
    all_s: list[float] = field(default_factory=list)


async def measure(plan: Plan) -> Sequence[Figure]:
    """Kill both orchestrators in every round, then recover a partition."""
    settings = bench_settings(plan.folder / "named")
    killed = {"named": Killed(), "nameless": Killed()}
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(supervised(settings, plan.say))
        others = beside(settings, plan.folder / "nameless", "pml_nameless")
        with _nameless():
            await stack.enter_async_context(supervised(others, plan.say))
        stacks = {"named": settings, "nameless": others}
        kept = [await _fill(found, plan) for found in stacks.values()]
        for number in range(plan.rounds):
            plan.say(f"kill {number + 1} of {plan.rounds}")
            await in_turns(number, *(partial(_kill, stacks[name], killed[name]) for name in stacks))
        recovered = await measure_recovery(beside(settings, plan.folder / "recovery", "unused"), plan)
    return _figures(killed["named"], killed["nameless"], recovered, max(kept))


@contextmanager
def _nameless() -> Iterator[None]:
    """Stacks that are made meanwhile give their members no names."""
    before = os.environ.get(MEMBER_VARIABLE)
    os.environ[MEMBER_VARIABLE] = ""
    try:
        yield
    finally:
        del os.environ[MEMBER_VARIABLE]
        if before is not None:
            os.environ[MEMBER_VARIABLE] = before


async def _fill(settings: Settings, plan: Plan) -> int:
    """An hour's worth of changelog; how many records of it are left by the time it is replayed."""
    async with runner(settings) as runs:
        await runs.run_all([chain(STEPS)] * BUSY_SESSIONS)
    plan.say("writing an hour of changelog")
    left = await write_an_hour(settings, f"{settings.group(ORCHESTRATOR)}-sessions-changelog", BUSY_SESSIONS)
    plan.say(f"{left:,} records are left")
    return left


async def _kill(settings: Settings, killed: Killed) -> None:
    """Kill it, send a command to every partition, and wait until all are obeyed."""
    async with _probe(settings) as (producer, starts):
        began = time.perf_counter()
        os.kill(_orchestrator(settings), signal.SIGKILL)
        waiting = set(_one_each())
        await asyncio.gather(*(producer.start_run(chain(1), run_id=run_id) for run_id in waiting))
        times: list[float] = []
        async with asyncio.timeout(DECISION_TIMEOUT_S):
            while waiting:
                event = await anext(starts)
                if event.run_id in waiting:
                    waiting.discard(event.run_id or "")
                    times.append(time.perf_counter() - began)
    killed.first_s.append(times[0])
    killed.all_s.append(times[-1])
    async with runner(settings) as runs:
        await _steady(runs)


@asynccontextmanager
async def _probe(settings: Settings) -> AsyncIterator[tuple[IntentProducer, EventConsumer]]:
    async with (
        IntentProducer(settings) as producer,
        EventConsumer(settings, start="end", types={RunStarted.TYPE}) as starts,
    ):
        yield producer, starts


async def _steady(runs: Runner) -> None:
    """It works and has written its states: the next kill finds it as this one did."""
    await runs.run_all([chain(STEPS)] * SESSION_PARTITIONS)
    await asyncio.sleep(SETTLE_S)


def _orchestrator(settings: Settings) -> int:
    stack = running_stack(settings.data_dir)
    for part in stack.parts if stack else ():
        if part.name == ORCHESTRATOR and part.process is not None:
            return part.process.pid
    raise NoOrchestrator(f"the stack on {settings.data_dir} has no orchestrator that runs")


def _one_each() -> Iterator[str]:
    """The ids of runs, sessions of their own, one in each partition."""
    missing = set(range(SESSION_PARTITIONS))
    while missing:
        run_id = new_id("run")
        number = partition_for(session_key(DEFAULT_TENANT, run_id))
        if number in missing:
            missing.discard(number)
            yield run_id


def _figures(named: Killed, nameless: Killed, recovered: Measured, kept: int) -> list[Figure]:
    return [
        Figure(
            "kill -9 to the next decision",
            "s",
            tuple(named.first_s),
            tuple(nameless.first_s),
            note="members that keep their names ÷ members without, both after an hour of changelog "
            f"(720,000 records, {kept:,} left by compaction when it was replayed)",
        ),
        Figure("kill -9 to a decision in each partition", "s", tuple(named.all_s), tuple(nameless.all_s)),
        Figure(
            "recovery of a partition",
            "s",
            tuple(recovered.recovered_s),
            tuple(recovered.plain_s),
            note=f"{SESSIONS:,} sessions, {recovered.live:,} of them live, {EVENTS_BEHIND:,} events behind "
            "the marker, until the calls are sent ÷ reading and decoding those events",
        ),
    ]
