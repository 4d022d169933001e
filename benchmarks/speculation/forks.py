"""An adversary: workflows with a branch that was always taken before and never is now.

What was learned is written into the catalog as the projection would have written it, for a workflow type of
each run's own, because a type whose runs err is not trusted a second time. The branch hangs on a slow task
beside a quick one: when the quick one ends, the calls behind the branch begin; when the slow one ends, all
are in vain.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from aiokafka import AIOKafkaProducer

from benchmarks.speculation.conversion import SourceTask, SourceWorkflow, steps_of, workflow_of
from benchmarks.speculation.model import by_layer_s
from benchmarks.speculation.sample import Drawn
from pml.processors.speculation.branches import branch_key
from pml.schemas.catalog import BranchStats, CatalogRecord
from pml.schemas.codec import encode
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.connection import producer_options
from pml.streams.settings import Settings
from pml.streams.sources import opened

DATASET = "forks"
DECISION = {"id": "d1", "expression": 't2.value == "something else"'}
TIMES_TAKEN = 1_000
# Three at a time are what the budget lets run.
WRONG, RIGHT = ("t3", "t4", "t5"), ("t6", "t7")
# A write: a read at the end would be one that speculation is right about.
LAST = "t8"
QUICK_SHARE = 0.1


def fork(number: int) -> SourceWorkflow:
    """One of them: two roots, three tasks behind the wrong branch, two behind the right one, a last one."""
    shape: dict[str, tuple[int, tuple[str, ...]]] = {"t1": (0, ()), "t2": (0, ())}
    shape |= dict.fromkeys((*WRONG, *RIGHT), (1, ("t2",))) | {LAST: (2, RIGHT)}
    tasks = [
        SourceTask(name, f"tool {name}", name != LAST, {}, (), after, layer)
        for name, (layer, after) in shape.items()
    ]
    return SourceWorkflow(DATASET, f"fork-{number}", tuple(tasks), {})


def fork_workflow(drawn: Drawn, workflow_type: str, speculation: str) -> dict[str, Any]:
    """The workflow as it is submitted."""
    workflow = workflow_of(drawn.source, times_s(drawn), speculation=speculation)
    outcomes = dict.fromkeys(WRONG, "true") | dict.fromkeys(RIGHT, "false")
    for task in workflow["tasks"]:
        if task["id"] in outcomes:
            task["condition"] = {"node": DECISION["id"], "outcome": outcomes[task["id"]]}
    return workflow | {"workflow_type": workflow_type, "decisions": [DECISION]}


def times_s(drawn: Drawn) -> tuple[float, ...]:
    """The times of the tools, the first one's so much shorter that it ends before the second."""
    first, *others = drawn.tools_s
    return (min(first, others[0]) * QUICK_SHARE, *others)


def ideal_s(drawn: Drawn) -> float:
    """How long it takes without overhead, with or without errors: what is in vain holds nobody up."""
    steps = zip(drawn.source.tasks, steps_of(drawn.source, times_s(drawn)), strict=True)
    return by_layer_s([step for task, step in steps if task.id not in WRONG])


def type_of(drawn: Drawn) -> str:
    """The workflow type of a run that speculates: no other run has it."""
    return f"{drawn.source.id}-{drawn.seed}"


async def teach(settings: Settings, workflow_types: Iterable[str]) -> None:
    """Write down that the wrong branch of these types was always taken.

    Raises:
        BrokerUnavailable: the broker does not answer.
    """
    producer = AIOKafkaProducer(**producer_options(settings))
    async with opened(producer, settings):
        for workflow_type in workflow_types:
            data = BranchStats(
                tenant=DEFAULT_TENANT,
                workflow_type=workflow_type,
                decision_id=DECISION["id"],
                counts={"true": TIMES_TAKEN},
            )
            name = branch_key(DEFAULT_TENANT, workflow_type, DECISION["id"])
            record = CatalogRecord(kind=data.KIND, id=name, version=data.VERSION, data=data)
            await producer.send(settings.topics.catalog, value=encode(record), key=record.key)
