"""What the server `pml` of the simulation predicts: calls that a session may well make, or not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from pml.schemas.calls import CallRun
from pml.schemas.prediction import PredictAnswer, Predicted, PredictRequest
from pml.schemas.workflow import Condition, Decision, LiteralValue, Reference, Task, Workflow
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
_DEEPEST = 3
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
    tasks = tuple(task for each, _, _ in found for task in each)
    decisions = tuple(decision for _, each, _ in found for decision in each)
    candidates = tuple(candidate for _, _, candidate in found)
    answer = PredictAnswer(
        model="mdl_simulated",
        learner="markov_1",
        candidates=candidates,
        workflow=Workflow(tasks=tasks, decisions=decisions) if tasks else None,
    )
    return answer.model_dump(mode="json")


def _candidate(
    name: str, call: tuple[str, Mapping[str, Any], Sequence[float]], random: Random
) -> tuple[tuple[Task, ...], tuple[Decision, ...], Predicted]:
    """A call, or a capability that makes it and then reads what it found, up to three calls deep; as sure as
    one of some numbers. Some of what follows runs only if a result says so.
    """
    tool, arguments, likelihoods = call
    tasks: list[Task] = []
    decisions: list[Decision] = []
    while not tasks or (len(tasks) < _DEEPEST and random.random() < 0.4):
        task_id = f"{name}__n{len(tasks) + 1}" if tasks else name
        given = {key: LiteralValue(value=value) for key, value in arguments.items()}
        found = {"path": Reference(expression=f"{tasks[-1].id}.first")} if tasks else given
        tasks.append(
            Task(
                id=task_id,
                tool=random.choice(_GUESSED) if tasks else tool,
                arguments=found,
                condition=_condition(f"{task_id}_d", tasks, decisions, random),
            )
        )
    sure = random.choice(likelihoods)
    told = Predicted(name=tool, likelihood=sure, confidence=sure, tasks=tuple(task.id for task in tasks))
    return tuple(tasks), tuple(decisions), told


def _condition(
    name: str, before: Sequence[Task], decisions: list[Decision], random: Random
) -> tuple[Condition, ...]:
    """Now and then one: about a result of a call before, or about a literal in place of a parameter."""
    if random.random() >= 0.3:
        return ()
    literals = f"'{random.choice(['even', 'odd'])}' == 'even'"
    read = f"{random.choice(before).id}.kind == 'even'" if before and random.random() < 0.7 else literals
    decisions.append(Decision(id=name, expression=read))
    return (Condition(node=name, outcome=random.choice(["true", "false"])),)
