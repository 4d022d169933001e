"""A command about a run that exists: obeyed once, attached, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pml.processors.workflow.approvals import decide_approval
from pml.processors.workflow.deciding import abort_run, continue_run
from pml.processors.workflow.draft import Draft
from pml.processors.workflow.obedience import (
    Conflict,
    Decision,
    SessionFull,
    command_hash,
    decision_of,
)
from pml.processors.workflow.replanning import replan_run
from pml.processors.workflow.resolving import resolve_task
from pml.processors.workflow.retrying import retry_run
from pml.processors.workflow.scoring import FORGOTTEN, score_run
from pml.processors.workflow.starting import reject
from pml.processors.workflow.state import Session
from pml.schemas.commands import (
    ApprovalDecide,
    Command,
    CommandData,
    RunAbort,
    RunContinue,
    RunReplan,
    RunRetry,
    RunScore,
    TaskResolve,
)
from pml.schemas.errors import Refused
from pml.schemas.events import CommandAttached

_HANDLERS: dict[type[CommandData], Callable[[Draft, Command, Any, Decision], None]] = {
    RunContinue: continue_run,
    RunAbort: abort_run,
    RunReplan: replan_run,
    RunRetry: retry_run,
    RunScore: score_run,
    TaskResolve: resolve_task,
    ApprovalDecide: decide_approval,
}


def obey(draft: Draft, command: Command, known: Session | None) -> bool:
    """Do what a command asks for, or answer why not; whether something may follow from it now.

    Args:
        draft: the answer so far.
        command: what somebody wants.
        known: the session before this input, if it lives.
    """
    try:
        if known is not None and _obeyed_before(draft, command, known):
            _attach(draft, command)
            return False
        _HANDLERS[type(command.data)](draft, command, command.data, decision_of(draft, command))
    except Refused as error:
        reject(draft, command.type, error, command.run_id)
        return False
    return not isinstance(command.data, RunScore)


def _attach(draft: Draft, command: Command) -> None:
    """The run as it is now; a score may be about one that the session does not remember."""
    run = next((run for run in draft.runs if run.run_id == command.run_id), None)
    draft.emit(CommandAttached(status=run.status if run else FORGOTTEN), run_id=command.run_id)


def _obeyed_before(draft: Draft, command: Command, known: Session) -> bool:
    """
    Raises:
        Conflict: the id was used for something else.
        SessionFull: the session cannot remember one more.
    """
    before = known.hash_of(command.command_id)
    started = any(run.command_id == command.command_id for run in known.runs.values())
    if started or before not in {None, command_hash(draft, command)}:
        raise Conflict(f"{command.command_id} was sent before with other content; choose another command_id")
    if before is None:
        _check_room(draft, command, known)
    return before is not None


def _check_room(draft: Draft, command: Command, known: Session) -> None:
    """
    Raises:
        SessionFull: as many were obeyed as a session remembers; of scores it remembers as many more.
    """
    most = draft.catalog.policy.commands_remembered_max
    if isinstance(command.data, RunScore):
        if len(known.scores) >= most:
            raise SessionFull(f"the session has {most} scores; send it again when it has rested for its time")
    elif len(known.obeyed) >= most:
        raise SessionFull(f"the session has obeyed {most} commands; use another session")
