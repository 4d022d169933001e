"""`run.score`: what somebody thinks of a run, while it goes on or long after it has ended."""

from __future__ import annotations

from pml.processors.workflow.draft import Draft
from pml.processors.workflow.obedience import Decision, NoSuchRun
from pml.schemas.commands import Command, RunScore
from pml.schemas.events import RunScored
from pml.schemas.principals import is_person
from pml.schemas.sanitiser import sanitise_text

FORGOTTEN = "forgotten"
"""The status of a run that this life of its session does not remember."""
_CATEGORY_BYTES_MAX = 800
_COMMENT_BYTES_MAX = 2_048


def score_run(draft: Draft, command: Command, data: RunScore, decision: Decision) -> None:
    """Write down a score. The run need not be known: a session that had it may have ended long ago.

    Raises:
        NoSuchRun: no run is named.
    """
    if command.run_id is None:
        raise NoSuchRun("a score is about a run; name the run and its session")
    scored = RunScored(
        name=data.name,
        number=data.number,
        category=None if data.category is None else sanitise_text(data.category, _CATEGORY_BYTES_MAX),
        boolean=data.boolean,
        source=data.source or _source_of(command.principal),
        comment=sanitise_text(data.comment, _COMMENT_BYTES_MAX),
        known=any(run.run_id == command.run_id for run in draft.runs),
        command_hash=decision.command_hash,
    )
    # Of whoever scored it, not of the run's own principal.
    draft.emit(scored, run_id=command.run_id)


def _source_of(principal: str) -> str:
    if is_person(principal):
        return "human"
    return "agent" if principal.startswith("agent:") else "program"
