"""Whether two runs of one workflow came to the same: results as a whole, and the world they left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pml.schemas.canonical import canonical_json

MOST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True)
class TaskResult:
    """How a task ended: its full value, or the code of its error. `volatile`: it changes by itself."""

    status: str
    value: Any = None
    error_code: str | None = None
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to, and the digest of the world afterwards."""

    status: str
    tasks: Mapping[str, TaskResult]
    world: str
    decisions: Mapping[str, str] = field(default_factory=dict)


def differences(plain: Outcome, speculative: Outcome) -> list[str]:
    """Everything that differs, in words; an empty list means identical.

    Tools that change by themselves (clocks) are compared by the shape of their answer.
    """
    found: list[str] = []
    if plain.status != speculative.status:
        found.append(f"the run {plain.status} without and {speculative.status} with speculation")
    if plain.world != speculative.world:
        found.append("the files or the repository were left differently")
    if plain.decisions != speculative.decisions:
        found.append(f"decisions: {dict(plain.decisions)} and {dict(speculative.decisions)}")
    for task_id in sorted(plain.tasks.keys() | speculative.tasks.keys()):
        found += _task_differences(task_id, plain.tasks.get(task_id), speculative.tasks.get(task_id))
    return found[:MOST_DIFFERENCES]


def _task_differences(task_id: str, first: TaskResult | None, second: TaskResult | None) -> list[str]:
    if first is None or second is None:
        return [f"{task_id} ended in one run only"]
    if (first.status, first.error_code) != (second.status, second.error_code):
        return [f"{task_id}: {_ending(first)} and {_ending(second)}"]
    one, other = _comparable(first), _comparable(second)
    return [] if canonical_json(one) == canonical_json(other) else [f"{task_id}: the results differ"]


def _ending(result: TaskResult) -> str:
    return f"{result.status} ({result.error_code})" if result.error_code else result.status


def _comparable(result: TaskResult) -> Any:
    return shape(result.value) if result.volatile else result.value


def shape(value: Any) -> Any:
    """The types of a value without the values: what a clock's answer keeps from call to call."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return type(value).__name__
