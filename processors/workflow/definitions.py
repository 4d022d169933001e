"""Definitions as the log keeps them: whole, with sanitised literals (DESIGN §2, rule 7)."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import conditions
from pml.schemas.canonical import canonical_json
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.sanitiser import REDACTED, sanitise, sanitise_text
from pml.schemas.workflow import (
    Argument,
    Decision,
    Expression,
    ListOf,
    LiteralValue,
    ObjectOf,
    Task,
    Workflow,
)

DEFINITION_BYTES_MAX = 262_144


def safe_text(text: str | None) -> str | None:
    """A text of a definition, however long."""
    return sanitise_text(text, DEFINITION_BYTES_MAX) if text else None


def safe_definition(workflow: Workflow) -> dict[str, Any]:
    """The workflow as the log keeps it: whole, with sanitised literals and without the context.

    Raises:
        WorkflowInvalid: it is larger than the log keeps.
    """
    definition: dict[str, Any] = safe_workflow(workflow).model_dump(mode="json", exclude_none=True)
    return bounded(definition, "the workflow")


def safe_workflow(workflow: Workflow) -> Workflow:
    """The workflow with sanitised literals and without the context."""
    return workflow.model_copy(
        update={
            "tasks": tuple(_safe_task(task) for task in workflow.tasks),
            "decisions": tuple(_safe_decision(item) for item in workflow.decisions),
            "name": safe_text(workflow.name),
            "workflow_type": safe_text(workflow.workflow_type),
            "intent": safe_text(workflow.intent),
            "context": {},
            "result": None if workflow.result is None else safe_argument("result", workflow.result),
        }
    )


def bounded(definition: dict[str, Any], what: str) -> dict[str, Any]:
    """The definition itself.

    Raises:
        WorkflowInvalid: it is larger than the log keeps.
    """
    size = len(canonical_json(definition))
    if size > DEFINITION_BYTES_MAX:
        raise WorkflowInvalid(
            "DEFINITION_TOO_LARGE",
            f"{what} has {size} bytes (at most {DEFINITION_BYTES_MAX}); pass large values by context",
        )
    return definition


def _safe_task(task: Task) -> Task:
    safe = {name: safe_argument(name, argument) for name, argument in task.arguments.items()}
    return task.model_copy(update={"arguments": safe})


def safe_argument(name: str, argument: Argument) -> Argument:
    """An argument without the secrets that its literals hold; `name` may say that one is a secret."""
    match argument:
        case LiteralValue():
            return _safe_literal(name, argument)
        case ObjectOf(fields=fields):
            return ObjectOf(fields={key: safe_argument(key, item) for key, item in fields.items()})
        case ListOf(items=items):
            return ListOf(items=tuple(safe_argument(name, item) for item in items))
        case Expression(names=names):
            safe = {key: safe_argument(key, item) for key, item in names.items()}
            return argument.model_copy(update={"names": safe})
    return argument


def _safe_literal(name: str, argument: LiteralValue) -> LiteralValue:
    """The value under its name, which may say that it is a secret; else the mark of one cut for its size."""
    safe = sanitise({name: argument.value})
    return LiteralValue(value=safe.get(name, safe) if isinstance(safe, dict) else safe)


def _safe_decision(decision: Decision) -> Decision:
    """An expression is kept for its names; one that holds a secret loses all its texts."""
    if sanitise_text(decision.expression) == decision.expression:
        return decision
    return decision.model_copy(update={"expression": conditions.without_texts(decision.expression, REDACTED)})
