"""`step`: a durable step that does nothing, beside DBOS on SQLite.

PML's steps take the real path: command, orchestrator, bridge, an MCP server over stdio, outcome, log. A chain
is timed from sending the command until the run's end is read from the log.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks.figures import Bound, Figure
from benchmarks.machine import own_cpu_s
from benchmarks.parts import Parts, parts
from benchmarks.plan import Plan, in_turns
from benchmarks.stack import answer_of, bench_settings
from pml.schemas.errors import PMLError
from pml.schemas.events import RunAborted, RunCompleted, RunFailed
from pml.streams.client import EventConsumer, IntentProducer
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

CHAIN_STEPS = 100
RUNS = 20
STEPS = 20
STEP_BOUND = Bound("at most", 2.0, aim=1.0)
AT_ONCE_BOUND = Bound("at least", 3.0, aim=10.0)
ENDS = frozenset({RunCompleted.TYPE, RunFailed.TYPE, RunAborted.TYPE})
# The default of a run's time-out.
END_TIMEOUT_S = 300
# A broker that has just started takes twice the time: its compiler is busy for the first thousand steps.
WARM_UP_ROUNDS = 3
DBOS_MODULE = "benchmarks.baselines.dbos_steps"


class RunDidNotComplete(PMLError):
    """A run of nothing but no-ops ended otherwise."""

    code = "RUN_DID_NOT_COMPLETE"


@dataclass(slots=True)
class Measured:
    """One value a round."""

    step_ms: list[float] = field(default_factory=list)
    processor_ms: list[float] = field(default_factory=list)
    early_ms: list[float] = field(default_factory=list)
    unsafe_ms: list[float] = field(default_factory=list)
    steps_per_s: list[float] = field(default_factory=list)
    parts_ms: list[float] = field(default_factory=list)
    parts_per_s: list[float] = field(default_factory=list)
    dbos_ms: list[float] = field(default_factory=list)
    dbos_processor_ms: list[float] = field(default_factory=list)
    dbos_per_s: list[float] = field(default_factory=list)


async def measure(plan: Plan) -> Sequence[Figure]:
    """Both sides in every round, in turn first."""
    settings = bench_settings(plan.folder)
    measured = Measured()
    async with supervised(settings, plan.say), runner(settings) as runs, parts(settings) as alone:
        plan.say("warming up")
        await _warm_up(runs, alone)
        for number in range(plan.rounds):
            plan.say(f"round {number + 1} of {plan.rounds}")
            await in_turns(
                number,
                partial(_measure_dbos, settings, plan, number, measured),
                partial(_measure_pml, runs, measured),
                partial(_measure_parts, alone, measured),
            )
    return _figures(measured)


def chain(steps: int, tool: str = "noop:read", speculation: str = "off") -> dict[str, Any]:
    """A workflow of so many steps, one after another."""
    tasks = [
        {
            "id": f"n{number}",
            "tool": tool,
            "arguments": {"number": number},
            "depends_on": [f"n{number - 1}"] if number else [],
        }
        for number in range(steps)
    ]
    return {"name": f"chain of {steps}", "options": {"speculation": speculation}, "tasks": tasks}


class Runner:
    """Sends runs and sees their ends."""

    def __init__(self, producer: IntentProducer, ends: EventConsumer) -> None:
        self._producer = producer
        self._ends = ends

    async def run_all(self, workflows: Sequence[dict[str, Any]]) -> float:
        """Seconds from sending the first until the last has completed.

        Raises:
            RunDidNotComplete: one ended otherwise.
            TimeoutError: one has not ended within five minutes.
        """
        began = time.perf_counter()
        sent = await asyncio.gather(*(self._producer.start_run(workflow) for workflow in workflows))
        open_runs = {submission.run_id for submission in sent}
        async with asyncio.timeout(END_TIMEOUT_S):
            while open_runs:
                event = await anext(self._ends)
                if event.run_id in open_runs and event.type != RunCompleted.TYPE:
                    raise RunDidNotComplete(f"run {event.run_id} ended as {event.type}: {event.data}")
                open_runs.discard(event.run_id or "")
        return time.perf_counter() - began


@asynccontextmanager
async def runner(settings: Settings) -> AsyncIterator[Runner]:
    """A runner on a running stack, while the block does."""
    async with (
        IntentProducer(settings) as producer,
        EventConsumer(settings, start="end", types=ENDS) as ends,
    ):
        yield Runner(producer, ends)


async def _warm_up(runs: Runner, alone: Parts) -> None:
    for _ in range(WARM_UP_ROUNDS):
        await alone.chains(RUNS, STEPS)
        await runs.run_all([chain(CHAIN_STEPS)])
        await runs.run_all([chain(STEPS)] * RUNS)


async def _measure_pml(runs: Runner, measured: Measured) -> None:
    per_step = 1_000 / CHAIN_STEPS
    processor_s = own_cpu_s()
    measured.step_ms.append(await runs.run_all([chain(CHAIN_STEPS)]) * per_step)
    measured.processor_ms.append((own_cpu_s() - processor_s) * per_step)
    measured.early_ms.append(await runs.run_all([chain(CHAIN_STEPS, speculation="on")]) * per_step)
    measured.unsafe_ms.append(await runs.run_all([chain(CHAIN_STEPS, "noop:write")]) * per_step)
    measured.steps_per_s.append(RUNS * STEPS / await runs.run_all([chain(STEPS)] * RUNS))


async def _measure_parts(alone: Parts, measured: Measured) -> None:
    measured.parts_ms.append(await alone.chains(1, CHAIN_STEPS) * 1_000 / CHAIN_STEPS)
    measured.parts_per_s.append(RUNS * STEPS / await alone.chains(RUNS, STEPS))


async def _measure_dbos(settings: Settings, plan: Plan, number: int, measured: Measured) -> None:
    database = str(plan.folder / f"dbos-{number}.sqlite")
    sizes = ("--chain", str(CHAIN_STEPS), "--runs", str(RUNS), "--steps", str(STEPS))
    answer = await answer_of(settings, DBOS_MODULE, database, *sizes)
    measured.dbos_ms.append(min(answer["step_ms"].values()))
    measured.dbos_processor_ms.append(min(answer["processor_ms"].values()))
    measured.dbos_per_s.append(max(answer["steps_per_s"].values()))


def _figures(measured: Measured) -> list[Figure]:
    dbos_ms, dbos_per_s = tuple(measured.dbos_ms), tuple(measured.dbos_per_s)
    return [
        Figure(
            "one after another",
            "ms a step",
            tuple(measured.step_ms),
            dbos_ms,
            STEP_BOUND,
            f"a chain of {CHAIN_STEPS} safe calls, speculation off, ÷ the faster of DBOS's two ways. DBOS "
            "syncs each step to the disk; the embedded Kafka acknowledges what the kernel has",
        ),
        Figure(
            "… processor time",
            "ms a step",
            tuple(measured.processor_ms),
            tuple(measured.dbos_processor_ms),
            note="the same chain: broker, orchestrator, bridge, MCP server, metrics, sink, ClickHouse and "
            "the client together ÷ DBOS's one process",
        ),
        Figure(
            "… speculating",
            "ms a step",
            tuple(measured.early_ms),
            dbos_ms,
            note="the same chain with speculation on: each call runs while the one before it is recorded",
        ),
        Figure(
            "… at most once",
            "ms a step",
            tuple(measured.unsafe_ms),
            dbos_ms,
            note="the same chain of unsafe calls, each claimed before it runs; DBOS may repeat a step",
        ),
        Figure(
            f"{RUNS} × {STEPS} at once",
            "steps/s",
            tuple(measured.steps_per_s),
            dbos_per_s,
            AT_ONCE_BOUND,
            f"{RUNS} runs of {STEPS} steps at once ÷ as many DBOS workflows at once",
        ),
        Figure(
            "parts alone, one after another",
            "ms a step",
            tuple(measured.parts_ms),
            dbos_ms,
            note="an acknowledged record in a log, a call on a topic, the same MCP server, its answer on a "
            "topic, in plain aiokafka and MCP SDK ÷ DBOS: no orchestrator over these is quicker",
        ),
        Figure(
            f"parts alone, {RUNS} × {STEPS} at once",
            "steps/s",
            tuple(measured.parts_per_s),
            dbos_per_s,
            note="the same, so many chains at once ÷ DBOS",
        ),
    ]
