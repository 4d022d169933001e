"""`pml run list|show|trace`, and beside them what people decide about runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli import run_decisions, run_score
from pml.streams.cli.output import Json, print_json, print_table, say, shortened
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.schemas.events import Event

app = typer.Typer(no_args_is_help=True, help="Runs: what there was, how it went, step by step.")
_TOLD = (
    *("layer", "served_by", "fate", "reason", "outcome", "because", "choice", "decided_by"),
    *("checkpoint_id", "approval_id", "number", "category", "boolean"),
)
RunId = Annotated[str, typer.Argument(metavar="RUN_ID")]
Session = Annotated[str | None, typer.Option(help="Read the log of this session instead of ClickHouse.")]
Tenant = Annotated[str, typer.Option()]


app.command("continue")(run_decisions.continue_run)
app.command("replan")(run_decisions.replan_run)
app.command("abort")(run_decisions.abort_run)
app.command("retry")(run_decisions.retry_run)
app.command("resolve")(run_decisions.resolve_task)
app.command("score")(run_score.score)


@app.callback()
def _group() -> None:
    """Runs: what there was, how it went, step by step."""


@app.command("list")
def list_runs(
    *,
    session: Session = None,
    tenant: Tenant = "local",
    status: Annotated[
        str | None, typer.Option(help="running, waiting, completed, failed or aborted.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The newest so many.")] = 50,
    json: Json = False,
) -> None:
    """List runs, the newest first.

    Examples: pml run list · pml run list --status failed --json · pml run list --session ses_1
    """
    from pml.streams.run_listing import list_runs as read_runs

    runs = run_async(read_runs(load_settings(), tenant, session, status, limit)).rows
    if json:
        print_json(runs)
        return
    columns = ("run_id", "status", "name", "started_at", "duration_ms", "tasks", "hits", "misses", "saved_ms")
    rows = [{**run, "name": run["name"] or run["workflow_type"]} for run in runs]
    print_table([column.replace("_", " ") for column in columns], ([r[c] for c in columns] for r in rows))


@app.command()
def show(run_id: RunId, session: Session = None, tenant: Tenant = "local", json: Json = False) -> None:
    """Show a run: its status and each task with how it was served and what it gave.

    Examples: pml run show run_1 · pml run show run_1 --session ses_1 --json
    """
    from pml.streams.cli.submit import print_run
    from pml.streams.run_history import summarised

    run = summarised(_events(run_id, session, tenant)).as_dict()
    if json:
        print_json(run)
    else:
        print_run(run)


@app.command()
def trace(run_id: RunId, session: Session = None, tenant: Tenant = "local", json: Json = False) -> None:
    """Show every step of a run in order, with the milliseconds since its start.

    Examples: pml run trace run_1 · pml run trace run_1 --session ses_1 --json
    """
    from pml.streams.run_history import summarised

    events = _events(run_id, session, tenant)
    summary = summarised(events).as_dict()
    if json:
        print_json({**summary, "events": [event.model_dump(exclude_none=True) for event in events]})
        return
    print_table(("ms", "seq", "event", "task", "tool", "what"), _steps(events))
    say(f"{run_id} {summary['status']} after {summary['duration_ms']} ms")


def _events(run_id: str, session: str | None, tenant: str) -> list[Event]:
    from pml.streams.run_history import run_events

    return run_async(run_events(load_settings(), tenant, run_id, session))


def _steps(events: list[Event]) -> list[tuple[Any, ...]]:
    from pml.schemas.times import from_rfc3339

    began = from_rfc3339(events[0].occurred_at)
    return [_step(event, from_rfc3339(event.occurred_at) - began) for event in events]


def _step(event: Event, since_ms: int) -> tuple[Any, ...]:
    data = event.data.model_dump(exclude_none=True)
    told = [f"{name} {data[name]}" for name in _TOLD if name in data]
    told += [f"{name} {data[name]:.1f}" for name in ("duration_ms", "saved_ms") if data.get(name)]
    told += [f"confidence {data['confidence']:.2f}"] if data.get("confidence", 1) < 1 else []
    error = data.get("error")
    told += [str(error.get("message"))] if isinstance(error, dict) else []
    return (
        since_ms,
        event.seq,
        event.type,
        data.get("task_id"),
        data.get("tool"),
        shortened(", ".join(told), 100),
    )
