"""What the server `pml` of the simulation predicts: calls that a session may well make, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from pml.schemas.calls import CallRun
from pml.schemas.prediction import PredictAnswer, Predicted, PredictRequest
from pml.schemas.workflow import LiteralValue, Reference, Task, Workflow
from tests.simulation.tools import PATHS

_GUESSED = (
    "files:read",
    "files:list",
    "store:get",
    "files:write",
    "files:private",
    "counters:board",
    "no:tool",
)
_SURE = (0.5, 0.88, 0.93, 0.95, 0.99, 1.0)


async def predict(run: CallRun) -> dict[str, Any]:
    """The same question gets the same answer: what was called last once more, and a guess or two."""
    asked = PredictRequest.model_validate(run.arguments)
    random = Random(run.call_id)
    again = [
        (each.name, each.arguments, _SURE[3:]) for each in asked.past if each.arguments and ":" in each.name
    ]
    guessed = [
        (random.choice(_GUESSED), {"path": random.choice(PATHS)}, _SURE) for _ in range(random.randint(0, 3))
    ]
    calls = [*(again[-1:] if random.random() < 0.7 else []), *guessed]
    found = [_candidate(f"p{number}", call, random) for number, call in enumerate(calls, 1)]
    tasks = tuple(task for each, _ in found for task in each)
    candidates = tuple(candidate for _, candidate in found)
    answer = PredictAnswer(
        model="mdl_simulated",
        learner="markov_1",
        candidates=candidates,
        workflow=Workflow(tasks=tasks) if tasks else None,
    )
    return answer.model_dump(mode="json")


def _candidate(
    name: str, call: tuple[str, Mapping[str, Any], Sequence[float]], random: Random
) -> tuple[tuple[Task, ...], Predicted]:
    """A call, or a capability that makes it and then reads what it found; as sure as one of some numbers."""
    tool, arguments, likelihoods = call
    given = {key: LiteralValue(value=value) for key, value in arguments.items()}
    tasks = (Task(id=name, tool=tool, arguments=given),)
    if random.random() < 0.4:
        found = {"path": Reference(expression=f"{name}.first")}
        tasks += (Task(id=f"{name}__n2", tool=random.choice(_GUESSED), arguments=found),)
    sure = random.choice(likelihoods)
    told = Predicted(name=tool, likelihood=sure, confidence=sure, tasks=tuple(task.id for task in tasks))
    return tasks, told
