"""`run.start`: obeyed once, attached to what it asked for before, or refused (DESIGN §2, rule 4)."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import conditions
from pml.processors.workflow.advance import advance
from pml.processors.workflow.check import checked_graph
from pml.processors.workflow.draft import Draft, full_context
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.internal import ask_memory
from pml.processors.workflow.obedience import Conflict, SessionFull
from pml.processors.workflow.state import Run, Session
from pml.schemas.canonical import canonical_json, value_hash
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import PMLError, WorkflowInvalid
from pml.schemas.events import CommandAttached, CommandRejected, RunStarted
from pml.schemas.identifiers import derived_run_id
from pml.schemas.sanitiser import REDACTED, sanitise, sanitise_text
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Argument, Decision, ListOf, LiteralValue, ObjectOf, Options, Task, Workflow

DEFINITION_BYTES_MAX = 262_144
_TYPE_BYTES_MAX = 100
_USED = "{} was sent before with other content; choose another command_id"


def start_run(draft: Draft, command: Command, data: RunStart, known: Session | None) -> None:
    """Begin a run, or answer why not. `known` is the session before this input, if it lives."""
    run_id = command.run_id or derived_run_id(command.tenant, command.session_id, command.command_id)
    content = content_hash(draft, data)
    if known is not None and command.command_id in known.obeyed:
        reject(draft, command.type, Conflict(_USED.format(command.command_id)), run_id)
        return
    earlier = _earlier(known, run_id, command.command_id)
    if earlier is not None:
        _answer_repeat(draft, command, earlier, content)
        return
    try:
        started = _begin(draft, command, data, run_id, content)
    except PMLError as error:
        reject(draft, command.type, error, run_id)
        return
    ask_memory(draft, run_id, started)
    advance(draft, run_id)


def content_hash(draft: Draft, data: RunStart) -> str:
    """What makes two commands the same: everything but ids of transport."""
    return value_hash(data.model_dump(mode="json", exclude_defaults=True), draft.catalog.policy.hash_key)


def reject(draft: Draft, command_type: str, error: PMLError, run_id: str | None) -> None:
    """Answer a command that is not obeyed."""
    answer = {**error.as_dict(), "message": sanitise_text(error.message), "details": sanitise(error.details)}
    kind = sanitise_text(command_type, _TYPE_BYTES_MAX)
    draft.emit(CommandRejected(command_type=kind, error=answer), run_id=run_id)


def _earlier(session: Session | None, run_id: str, command_id: str) -> Run | None:
    if session is None:
        return None
    by_command = (run for run in session.runs.values() if run.command_id == command_id)
    return session.runs.get(run_id) or next(by_command, None)


def _answer_repeat(draft: Draft, command: Command, earlier: Run, content: str) -> None:
    if earlier.payload_hash == content:
        draft.emit(CommandAttached(status=earlier.status), run_id=earlier.run_id)
        return
    message = f"{earlier.run_id} was started with other content; choose another run_id and command_id"
    reject(draft, command.type, Conflict(message), earlier.run_id)


def _begin(draft: Draft, command: Command, data: RunStart, run_id: str, content: str) -> RunStarted:
    workflow = _workflow(draft, data)
    graph = checked_graph(workflow, draft.catalog.servers)
    definition = safe_definition(workflow)
    started = RunStarted(
        name=_text(workflow.name),
        intent=_text(data.intent or workflow.intent),
        workflow_type=sanitise_text(workflow.type_name),
        definition=definition,
        context=sanitise(full_context(data)),
        payload_ref=coordinate_of(draft.source.address),
        payload_hash=content,
        deadline_at=to_rfc3339(draft.now_ms + run_timeout_ms(draft, workflow.options)),
        layers=len(graph.layers),
        tasks=len(graph.nodes),
        speculation=workflow.options.speculation,
    )
    draft.emit(started, run_id=run_id)
    return started


def run_timeout_ms(draft: Draft, options: Options) -> int:
    """How long a run with these options may take."""
    wanted_s = options.timeout_s
    return draft.catalog.policy.run_timeout_ms if wanted_s is None else round(wanted_s * 1_000)


def _text(text: str | None) -> str | None:
    return sanitise_text(text, DEFINITION_BYTES_MAX) if text else None


def _workflow(draft: Draft, data: RunStart) -> Workflow:
    """The workflow of a command that may begin a run here and now.

    Raises:
        WorkflowInvalid: there is none, and intents are not answered by this release.
        SessionFull: the session has too many runs.
    """
    if data.workflow is None:
        raise WorkflowInvalid("NOT_SUPPORTED", "this release runs workflows only; send one in data.workflow")
    check_room(draft, one_more=True)
    return data.workflow


def check_room(draft: Draft, one_more: bool = False) -> None:
    """
    Raises:
        SessionFull: the session has too many runs that go on or, for `one_more`, too many in all.
    """
    policy, runs = draft.catalog.policy, draft.runs
    full = one_more and len(runs) >= policy.runs_remembered_max
    if full or sum(run.live for run in runs) >= policy.runs_live_max:
        raise SessionFull(
            f"the session has {len(runs)} runs (at most {policy.runs_live_max} at a time and "
            f"{policy.runs_remembered_max} in all); use another session"
        )


def safe_definition(workflow: Workflow) -> dict[str, Any]:
    """The workflow as the log keeps it: whole, with sanitised literals and without the context.

    Raises:
        WorkflowInvalid: it is larger than the log keeps.
    """
    safe = workflow.model_copy(
        update={
            "tasks": tuple(_safe_task(task) for task in workflow.tasks),
            "decisions": tuple(_safe_decision(item) for item in workflow.decisions),
            "name": _text(workflow.name),
            "workflow_type": _text(workflow.workflow_type),
            "intent": _text(workflow.intent),
            "context": {},
        }
    )
    definition: dict[str, Any] = safe.model_dump(mode="json", exclude_none=True)
    size = len(canonical_json(definition))
    if size > DEFINITION_BYTES_MAX:
        raise WorkflowInvalid(
            "DEFINITION_TOO_LARGE",
            f"the workflow has {size} bytes (at most {DEFINITION_BYTES_MAX}); pass large values by context",
        )
    return definition


def _safe_task(task: Task) -> Task:
    safe = {name: _safe_argument(name, argument) for name, argument in task.arguments.items()}
    return task.model_copy(update={"arguments": safe})


def _safe_argument(name: str, argument: Argument) -> Argument:
    match argument:
        case LiteralValue():
            return _safe_literal(name, argument)
        case ObjectOf(fields=fields):
            return ObjectOf(fields={key: _safe_argument(key, item) for key, item in fields.items()})
        case ListOf(items=items):
            return ListOf(items=tuple(_safe_argument(name, item) for item in items))
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
