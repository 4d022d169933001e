"""What a program says, as the answer of a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pml.schemas.stepping import ProgramError, StepAnswer
from pml.schemas.workflow import LiteralValue, Task, Workflow


def step_answer(said: Mapping[str, Any], calls_before: int) -> StepAnswer:
    """The answer for `calls`, a `value` or an `error`; calls become tasks that are counted over the run.

    Raises:
        ValidationError: a call is of no tool that can be.
    """
    if "calls" not in said:
        error = said.get("error")
        return StepAnswer(value=said.get("value"), error=error and ProgramError.model_validate(error))
    tasks = tuple(
        Task(
            id=f"n{calls_before + number}",
            tool=call["tool"],
            arguments={name: LiteralValue(value=value) for name, value in call["arguments"].items()},
        )
        for number, call in enumerate(said["calls"], 1)
    )
    return StepAnswer(workflow=Workflow(tasks=tasks))


def calls_of(answer: StepAnswer) -> list[dict[str, Any]]:
    """The calls of an answer as the program made them."""
    tasks = answer.workflow.tasks if answer.workflow else ()
    return [{"tool": task.tool, "arguments": _plain(task)} for task in tasks]


def _plain(task: Task) -> dict[str, Any]:
    values = ((name, value) for name, value in task.arguments.items() if isinstance(value, LiteralValue))
    return {name: literal.value for name, literal in values}
