"""What every command about a run has in common: obeyed once, refused with a reason (DESIGN §2, rule 4)."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pml.processors.workflow.draft import Draft
from pml.processors.workflow.state import Run
from pml.schemas.canonical import value_hash
from pml.schemas.commands import Command
from pml.schemas.errors import Refused
from pml.schemas.principals import is_person
from pml.schemas.sanitiser import sanitise_text

_WHO_BYTES_MAX = 200
_WHY_BYTES_MAX = 2_048


class NotWaiting(Refused):
    """The run is not in the state that a command is about."""

    code = "NOT_WAITING"


class NoSuchRun(Refused):
    """The session does not have this run (any more)."""

    code = "NO_SUCH_RUN"


class Conflict(Refused):
    """An id was used before, with other content."""

    code = "CONFLICT"


class SessionFull(Refused):
    """A session remembers a bounded number of runs and commands.

    Of a run that was not begun `details` has the reason: `RUNS_REMEMBERED` stays so for as long as the
    session lives, `RUNS_LIVE` only until a run of it has ended.
    """

    code = "SESSION_FULL"
    retryable = True


RUNS_REMEMBERED = "runs_remembered"
RUNS_LIVE = "runs_live"


class PersonNeeded(Refused):
    """Only a person may decide this."""

    code = "PERSON_NEEDED"


@dataclass(frozen=True, slots=True)
class Decision:
    """Who decided, why, and with which command."""

    decided_by: str
    reason: str
    command_hash: str

    def fields(self) -> dict[str, str]:
        """The fields of an event that keeps it."""
        return asdict(self)


def decision_of(draft: Draft, command: Command) -> Decision:
    """The decision that a command carries."""
    return Decision(
        sanitise_text(command.principal, _WHO_BYTES_MAX),
        sanitise_text(getattr(command.data, "reason", ""), _WHY_BYTES_MAX),
        command_hash(draft, command),
    )


def command_hash(draft: Draft, command: Command) -> str:
    """What makes two commands the same: everything but ids of transport."""
    content = [command.type, command.run_id, command.data.model_dump(mode="json", exclude_defaults=True)]
    return value_hash(content, draft.catalog.policy.hash_key)


def live_run(draft: Draft, run_id: str | None) -> Run:
    """A run that has not ended.

    Raises:
        Refused: there is none of that name, or it has ended.
    """
    run = known_run(draft, run_id)
    if not run.live:
        raise NotWaiting(f"{run_id} has ended: {run.status}")
    return run


def known_run(draft: Draft, run_id: str | None) -> Run:
    """A run that the session remembers.

    Raises:
        NoSuchRun: there is none of that name.
    """
    found = next((run for run in draft.runs if run.run_id == run_id), None)
    if found is None:
        raise NoSuchRun(f"this session has no run {run_id or 'without a name'}; name the run and its session")
    return found


def require_person(command: Command, what: str) -> None:
    """
    Raises:
        PersonNeeded: the principal is none.
    """
    if not is_person(command.principal):
        raise PersonNeeded(f"only a person may {what}: use the command line; an agent's word does not count")
