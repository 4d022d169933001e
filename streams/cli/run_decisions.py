"""`pml run continue|abort`: what somebody decides about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pml.streams.cli.output import Json, print_json
from pml.streams.cli.session import load_settings, person, run_async

if TYPE_CHECKING:
    from pml.schemas.commands import CommandData
    from pml.schemas.events import Event
    from pml.streams.client import RunSummary, Submission
    from pml.streams.settings import Settings

# The orchestrator answers within milliseconds; one that is being started again needs some seconds.
ANSWER_S = 30.0

RunId = Annotated[str, typer.Argument(metavar="RUN_ID")]
Session = Annotated[str | None, typer.Option(help="Its session; without it ClickHouse is asked.")]
Tenant = Annotated[str, typer.Option()]
Reason = Annotated[str, typer.Option(help="Why; kept in the log.")]
Wait = Annotated[bool, typer.Option("--wait", "-w", help="Follow the run to its end or next question.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="The checkpoint that is meant; else the one that it waits at.")
]


def continue_run(
    run_id: RunId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    checkpoint: Checkpoint = None,
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Go on with a run that waits at a checkpoint.

    Exit code 3 where it does not wait, 6 where it waits again (with --wait).

    Examples: pml run continue run_1 --wait · pml run continue run_1 --session ses_1 --checkpoint k2
    """
    from pml.schemas.commands import RunContinue

    decide(
        run_id, session, tenant, RunContinue(checkpoint_id=checkpoint, reason=reason), wait=wait, as_json=json
    )


def abort_run(
    run_id: RunId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Stop a run: nothing new begins, an unsafe call that runs is awaited.

    Examples: pml run abort run_1 --reason 'not what I meant' · pml run abort run_1 --session ses_1 --wait
    """
    from pml.schemas.commands import RunAbort

    decide(run_id, session, tenant, RunAbort(reason=reason), wait=wait, as_json=json)


def decide(
    run_id: str, session: str | None, tenant: str, data: CommandData, *, wait: bool, as_json: bool
) -> None:
    """Send a decision, print its answer and, with `wait`, what the run came to."""
    from pml.streams.cli.submit import finish

    answer, summary = run_async(_decide(load_settings(), run_id, session, tenant, data, wait=wait))
    if summary is not None:
        finish(summary, as_json=as_json)
    elif as_json:
        print_json(answer.model_dump(exclude_none=True))
    else:
        typer.echo(f"{run_id} {answer.type}")


async def _decide(
    settings: Settings, run_id: str, session: str | None, tenant: str, data: CommandData, *, wait: bool
) -> tuple[Event, RunSummary | None]:
    from pml.streams.client import IntentProducer, wait_for_answer
    from pml.streams.run_history import session_of

    session = session or await session_of(settings, tenant, run_id)
    async with IntentProducer(settings) as producer:
        sent = await producer.decide(run_id, data, session_id=session, tenant=tenant, principal=person())
    answer = await wait_for_answer(settings, sent, timeout_s=ANSWER_S)
    return answer, await _followed(settings, sent) if wait else None


async def _followed(settings: Settings, sent: Submission) -> RunSummary:
    from pml.streams.cli.submit import WAIT_MARGIN_S, watcher
    from pml.streams.client import wait_for_run

    limit_s = settings.timeouts.run_s + WAIT_MARGIN_S
    return await wait_for_run(settings, sent, timeout_s=limit_s, on_event=watcher(), until_waiting=True)
