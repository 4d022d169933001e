"""`pml run continue|replan|abort|retry|resolve`: what people decide about runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from pml.streams.cli.output import Json, print_json, say
from pml.streams.cli.session import load_settings, person, run_async

if TYPE_CHECKING:
    from pml.schemas.commands import CommandData
    from pml.schemas.events import Event
    from pml.streams.client import RunSummary, Submission
    from pml.streams.settings import Settings

D = TypeVar("D", bound="CommandData")
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


def replan_run(
    run_id: RunId,
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Tasks and decisions; - is stdin.")],
    *,
    session: Session = None,
    tenant: Tenant = "local",
    checkpoint: Checkpoint = None,
    hold: Annotated[bool, typer.Option("--hold", help="Wait again before the new tasks.")] = False,
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Replace what has not run of a run that waits; new tasks may build on what has completed.

    The file is a workflow of `tasks` and `decisions`; context, options and result are those of the run.

    Examples: pml run replan run_1 plan.yaml --wait · pml run replan run_1 - --hold --reason 'other folder'
    """
    from pml.schemas.commands import RunReplan
    from pml.streams.cli.workflow_file import read_plan

    plan = read_plan(file)
    fields = {"tasks": plan.tasks, "decisions": plan.decisions, "checkpoint_id": checkpoint, "hold": hold}
    data = checked(RunReplan, {**fields, "reason": reason})
    decide(run_id, session, tenant, data, wait=wait, as_json=json)


def retry_run(
    run_id: RunId,
    *,
    session: Session = None,
    tenant: Tenant = "local",
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Go on with a failed run from what failed; what completed is not repeated.

    Examples: pml run retry run_1 --wait · pml run retry run_1 --reason 'the file is there now'
    """
    from pml.schemas.commands import RunRetry

    decide(run_id, session, tenant, RunRetry(reason=reason), wait=wait, as_json=json)


def resolve_task(
    run_id: RunId,
    task_id: Annotated[str, typer.Argument(metavar="TASK_ID")],
    *,
    session: Session = None,
    tenant: Tenant = "local",
    done: Annotated[bool, typer.Option("--done", help="It happened; the result is --result.")] = False,
    not_done: Annotated[bool, typer.Option("--not-done", help="It did not happen.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Call it again.")] = False,
    result: Annotated[
        str | None, typer.Option(help="With --done: a JSON object, as the tool gives it.")
    ] = None,
    reason: Reason = "",
    wait: Wait = False,
    json: Json = False,
) -> None:
    """Say what became of a task whose outcome is unknown; a run that failed for it goes on.

    Examples: pml run resolve run_1 n2 --done --result '{"path": "a.md"}' · pml run resolve run_1 n2 --retry
    """
    from pml.schemas.commands import TaskResolve

    chosen = [name for name, said in (("done", done), ("not_done", not_done), ("retry", retry)) if said]
    if len(chosen) != 1 or (result is not None and not done):
        raise typer.BadParameter("say one of --done, --not-done and --retry; --result goes with --done")
    fields = {"task_id": task_id, "resolution": chosen[0], "result": _object(result), "reason": reason}
    decide(run_id, session, tenant, checked(TaskResolve, fields), wait=wait, as_json=json)


def checked(model: type[D], fields: dict[str, Any]) -> D:
    """The data of a command, as arguments and options gave it.

    Raises:
        typer.BadParameter: a field has the wrong shape.
    """
    from pydantic import ValidationError

    from pml.schemas.codec import explain

    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise typer.BadParameter(explain(error)) from None


def _object(text: str | None) -> dict[str, Any] | None:
    import orjson

    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise typer.BadParameter("--result must be a JSON object")
    return value


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
        say(f"{run_id} {answer.type}")


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
