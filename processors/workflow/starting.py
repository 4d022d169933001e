"""`run.start`: obeyed once, attached to what it asked for before, or refused (DESIGN §2, rule 4)."""

from __future__ import annotations

from pml.processors.capabilities.identity import workflow_capability_id
from pml.processors.workflow.beforehand import begin
from pml.processors.workflow.check import check_written, checked_graph
from pml.processors.workflow.definitions import (
    DEFINITION_BYTES_MAX,
    safe_definition,
    safe_text,
    safe_workflow,
)
from pml.processors.workflow.draft import Draft, full_context
from pml.processors.workflow.folding import coordinate_of
from pml.processors.workflow.graph import build
from pml.processors.workflow.internal import ask_memory
from pml.processors.workflow.matching import begin_match
from pml.processors.workflow.nesting import begin_inlining
from pml.processors.workflow.obedience import RUNS_LIVE, RUNS_REMEMBERED, Conflict, SessionFull
from pml.processors.workflow.programs import begin_analysis
from pml.processors.workflow.state import Run, Session
from pml.schemas.base import Json
from pml.schemas.canonical import value_hash
from pml.schemas.commands import Code, Command, RunStart
from pml.schemas.errors import PMLError, WorkflowInvalid
from pml.schemas.events import CommandAttached, CommandRejected, RunCode, RunStarted
from pml.schemas.identifiers import derived_run_id
from pml.schemas.sanitiser import sanitise, sanitise_text
from pml.schemas.times import to_rfc3339
from pml.schemas.workflow import Options, Workflow

_TYPE_BYTES_MAX = 100
_USED = "{} was sent before with other content; choose another command_id"


def start_run(draft: Draft, command: Command, data: RunStart, known: Session | None) -> None:
    """Begin a run, or answer why not. `known` is the session before this input, if it lives."""
    run_id = command.run_id or derived_run_id(command.tenant, command.session_id, command.command_id)
    content = content_hash(draft, data)
    if known is not None and known.hash_of(command.command_id) is not None:
        reject(draft, command.type, Conflict(_USED.format(command.command_id)), run_id)
        return
    earlier = _earlier(known, run_id, command.command_id)
    if earlier is not None:
        _answer_repeat(draft, command, earlier, content)
        return
    try:
        _begin(draft, data, run_id, content)
    except PMLError as error:
        reject(draft, command.type, error, run_id)
        return
    if data.code is not None:
        begin_analysis(draft, run_id, data.code)
    elif data.workflow is None:
        begin_match(draft, run_id)
    elif data.workflow.calls_capabilities:
        begin_inlining(draft, run_id)
    else:
        ask_memory(draft, run_id)
        begin(draft, run_id)


def content_hash(draft: Draft, data: RunStart) -> str:
    """What makes two commands the same: everything but ids of transport."""
    return value_hash(data.model_dump(mode="json", exclude_defaults=True), draft.catalog.policy.hash_key)


def reject(draft: Draft, command_type: str, error: PMLError, run_id: str | None) -> None:
    """Answer a command that is not obeyed."""
    answer = {**error.as_dict(), "message": sanitise_text(error.message), "details": sanitise(error.details)}
    kind = sanitise_text(command_type, _TYPE_BYTES_MAX)
    invalid = isinstance(error, WorkflowInvalid) or None
    draft.emit(CommandRejected(command_type=kind, error=answer, invalid=invalid), run_id=run_id)


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


def _begin(draft: Draft, data: RunStart, run_id: str, content: str) -> None:
    """
    Raises:
        WorkflowInvalid: what is asked for cannot run.
        SessionFull: the session has too many runs.
    """
    check_room(draft, one_more=True)
    workflow = _workflow(data)
    graph = checked_graph(workflow, draft.catalog.servers) if workflow.tasks else build(workflow)
    context = sanitise(full_context(data))
    started = RunStarted(
        name=safe_text(workflow.name),
        intent=safe_text(data.intent or workflow.intent),
        request=safe_text(data.request),
        workflow_type=sanitise_text(workflow.type_name),
        capability_id=_capability_id(data),
        definition=safe_definition(workflow),
        code=_safe_code(data.code) if data.code else None,
        written=_written(data),
        context=context,
        defaults=_defaults(data, context),
        payload_ref=coordinate_of(draft.source.address),
        payload_hash=content,
        deadline_at=to_rfc3339(draft.now_ms + run_timeout_ms(draft, workflow.options)),
        layers=len(graph.layers),
        tasks=len(graph.nodes),
        speculation=workflow.options.speculation,
        predicts=_predicts(draft, workflow.options, run_id) or None,
    )
    draft.emit(started, run_id=run_id)


def _predicts(draft: Draft, options: Options, run_id: str) -> bool:
    """A session that nobody named is its run (CONTRACT.md): nothing follows in it."""
    wanted = draft.catalog.policy.predictions == "on" and options.speculation != "off"
    return wanted and draft.source.session_id != run_id


def _workflow(data: RunStart) -> Workflow:
    """What a run begins with: no tasks yet for a program, an intent, or what calls capabilities.

    Raises:
        WorkflowInvalid: there is none of them.
    """
    if data.workflow is not None and data.workflow.calls_capabilities:
        check_written(data.workflow.decisions)
        return data.workflow.model_copy(update={"tasks": (), "decisions": (), "result": None})
    if data.workflow is not None:
        return _with_tasks(data.workflow)
    if data.code is None and not (data.intent and data.intent.strip()):
        message = "there is nothing to run; send data.workflow, data.code or data.intent"
        raise WorkflowInvalid("NOTHING_TO_RUN", message)
    return Workflow(options=data.options or Options())


def _defaults(data: RunStart, safe_context: Json) -> tuple[str, ...] | None:
    """The names that a workflow gives itself; one that is a secret, or cut off, is not told."""
    own = data.workflow.context if data.workflow else {}
    told = safe_context if isinstance(safe_context, dict) else {}
    return tuple(name for name in own if name not in data.context and name in told) or None


def _with_tasks(workflow: Workflow) -> Workflow:
    """
    Raises:
        WorkflowInvalid: it has none.
    """
    if not workflow.tasks:
        raise WorkflowInvalid("NO_TASKS", "the workflow has no tasks; give it at least one")
    return workflow


def _written(data: RunStart) -> dict[str, Json] | None:
    """A workflow that calls capabilities, as it was written.

    Raises:
        WorkflowInvalid: it is larger than the log keeps.
    """
    nested = data.workflow is not None and data.workflow.calls_capabilities
    return safe_definition(data.workflow) if data.workflow and nested else None


def _capability_id(data: RunStart) -> str | None:
    """Which capability a workflow is; a single call that nobody named is only a call of its tool."""
    workflow = data.workflow
    if workflow is None or not (len(workflow.tasks) > 1 or data.intent or workflow.intent or workflow.name):
        return None
    return workflow_capability_id(safe_workflow(workflow))


def _safe_code(code: Code) -> RunCode:
    """
    Raises:
        WorkflowInvalid: it has more bytes than the log keeps.
    """
    size = len(code.source.encode("utf-8", "replace"))
    if size > DEFINITION_BYTES_MAX:
        message = f"the program has {size} bytes (at most {DEFINITION_BYTES_MAX})"
        raise WorkflowInvalid("DEFINITION_TOO_LARGE", message)
    safe = sanitise_text(code.source, DEFINITION_BYTES_MAX)
    return RunCode(source=safe, language=code.language, redacted=safe != code.source)


def run_timeout_ms(draft: Draft, options: Options) -> int:
    """How long a run with these options may take."""
    wanted_s = options.timeout_s
    return draft.catalog.policy.run_timeout_ms if wanted_s is None else round(wanted_s * 1_000)


def check_room(draft: Draft, one_more: bool = False) -> None:
    """
    Raises:
        SessionFull: the session has too many runs that go on or, for `one_more`, too many in all.
    """
    policy, runs = draft.catalog.policy, draft.runs
    if one_more and len(runs) >= policy.runs_remembered_max:
        message = f"the session has {len(runs)} runs (at most {policy.runs_remembered_max} in all)"
        raise SessionFull(f"{message}; use another session", reason=RUNS_REMEMBERED)
    live = sum(run.live for run in runs)
    if live >= policy.runs_live_max:
        message = f"{live} runs of the session go on (at most {policy.runs_live_max} at a time)"
        raise SessionFull(f"{message}; send it again when one has ended", reason=RUNS_LIVE)
