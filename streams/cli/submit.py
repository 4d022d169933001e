"""`pml submit`."""

from __future__ import annotations

import sys
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.exits import DONE, FAILED, WAITING
from pml.streams.cli.output import Json, note, print_json, print_table, say, shortened
from pml.streams.cli.session import load_settings, person, run_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from pml.schemas.events import Event
    from pml.streams.client import RunSummary, Submission
    from pml.streams.settings import Settings

# A run ends by itself after its own time-out; this much more is left for what waits before it.
WAIT_MARGIN_S = 60
_EXITS = {"completed": DONE, "waiting": WAITING}


def submit(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|-",
            help="A workflow (YAML, JSON) or a program (.py, .ts); - is stdin. Without: what --intent means.",
        ),
    ] = None,
    *,
    language: Annotated[
        str | None, typer.Option("--language", help="python or typescript: what comes is a program.")
    ] = None,
    intent: Annotated[str | None, typer.Option(help="What it is for, in words.")] = None,
    context: Annotated[
        list[str] | None, typer.Option(help="Parameters: a JSON object, or k=v (v is JSON, else text).")
    ] = None,
    session: Annotated[str | None, typer.Option(help="The session; without it the run is its own.")] = None,
    run_id: Annotated[str | None, typer.Option(help="Your own id: the same one attaches.")] = None,
    per_layer: Annotated[
        bool, typer.Option("--per-layer", help="Wait after each layer for `pml run continue`.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Wait until the run has ended, or waits for somebody.")
    ] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout", min=0.1, help="With --wait: seconds; then exit code 5.")
    ] = None,
    json: Json = False,
) -> None:
    """Publish a workflow, a program or an intent; with --wait follow it to its end and print its results.

    An intent alone runs the learned capability that it means (`pml capability list`).

    Exit code 0 done, 1 the run failed, 3 it was refused, 4 no broker, 5 waited too long, 6 it waits for
    somebody (`pml run continue`, `pml approvals`).

    Examples: pml submit notes.yaml --wait --per-layer · pml submit job.py --wait --context path=notes.txt ·
    pml submit - --context repo=. --context '{"n": 20}' ·
    pml submit --intent 'What changed?' --context repo=. --wait
    """
    from pml.streams.cli.workflow_file import read_context

    if file is None and not intent:
        raise typer.BadParameter("give a file, or --intent for what was learned", param_hint="FILE")
    asked = _asked(file, language, per_layer)
    given = {"context": read_context(context or []), "intent": intent}
    settings = load_settings()
    submission, summary = run_async(
        _submit(settings, {**asked, **given}, session=session, run_id=run_id, wait=wait, timeout_s=timeout_s)
    )
    if summary is None:
        _print_submission(submission, as_json=json)
    else:
        finish(summary, as_json=json)


def _asked(file: str | None, language: str | None, per_layer: bool) -> dict[str, Any]:
    """What is to be run: a workflow, or a program with its options; without a file what the intent means."""
    from pml.schemas.commands import Code
    from pml.streams.cli.program_file import language_of
    from pml.streams.cli.workflow_file import read_text, read_workflow

    options = {"per_layer_validation": True} if per_layer else None
    if file is None:
        return {"workflow": None, "options": options}
    spoken = language_of(file, language)
    if spoken is not None:
        return {"workflow": Code(source=read_text(file), language=spoken), "options": options}
    workflow = read_workflow(file)
    if per_layer:
        workflow = {**workflow, "options": {**(workflow.get("options") or {}), "per_layer_validation": True}}
    return {"workflow": workflow}


async def _submit(
    settings: Settings,
    asked: dict[str, Any],
    *,
    session: str | None,
    run_id: str | None,
    wait: bool,
    timeout_s: float | None,
) -> tuple[Submission, RunSummary | None]:
    from pml.streams.client import IntentProducer, wait_for_run

    async with IntentProducer(settings) as producer:
        submission = await producer.start_run(**asked, session_id=session, run_id=run_id, principal=person())
    if not wait:
        return submission, None
    limit_s = timeout_s or _patience_s(settings, asked["workflow"])
    return submission, await wait_for_run(
        settings, submission, timeout_s=limit_s, on_event=watcher(), until_waiting=True
    )


def watcher() -> Callable[[Event], None] | None:
    """Tells a person at a terminal every step; None where there is none."""
    return _watch if sys.stderr.isatty() else None


def _patience_s(settings: Settings, workflow: Any) -> float:
    options = workflow.get("options") if isinstance(workflow, dict) else None
    given = options.get("timeout_s") if isinstance(options, dict) else None
    own_s = float(given) if isinstance(given, (int, float)) else settings.timeouts.run_s
    return own_s + WAIT_MARGIN_S


def _watch(event: Event) -> None:
    from pml.streams.cli.events import event_line

    note(event_line(event))


def _print_submission(submission: Submission, *, as_json: bool) -> None:
    ids = {"run_id": submission.run_id, "session_id": submission.session_id}
    if as_json:
        print_json({**ids, "command_id": submission.command_id, "status": "queued", "results": {}})
    else:
        say(submission.run_id)
        note(f"queued; pml run show {submission.run_id} --session {submission.session_id}")


def finish(summary: RunSummary, *, as_json: bool) -> None:
    """Print a run that has ended or waits, and end with the exit code that says so."""
    if as_json:
        print_json(summary.as_dict())
    else:
        print_run(summary.as_dict())
    raise typer.Exit(_EXITS.get(summary.status, FAILED))


def print_run(run: dict[str, Any]) -> None:
    """A run and its tasks for a person."""
    columns = ("task", "status", "served by", "ms", "saved ms", "result")
    print_table(columns, (_task_row(name, task) for name, task in run["results"].items()))
    counts = run["counts"]
    told = ", ".join(f"{counts[name]} {name}" for name in ("hits", "misses", "wasted") if name in counts)
    after = f" after {run['duration_ms']} ms; {told}" if run["duration_ms"] else ""
    say(f"{run['run_id']} {run['status']}{after}")
    if run.get("mode") == "sandbox":
        say(f"ran in the sandbox: {shortened('; '.join(run['reasons']), 400)}")
    for question, asked in run.get("waits_for", {}).items():
        say(_question(run, question, asked))
    for name, score in run.get("scores", {}).items():
        comment = f" ({shortened(score['comment'], 200)})" if score["comment"] else ""
        say(f"scored {name} {score['value']} by {score['principal']}, {score['source']}{comment}")
    if run.get("result") is not None:
        say(f"result: {shortened(dumps(run['result']), 400)}")
    if run.get("result_error"):
        say(f"it came to no result: {run['result_error']}")
    if run.get("error"):
        say(f"{run['error'].get('code')}: {run['error'].get('message')}")


def _question(run: dict[str, Any], question: str, asked: dict[str, Any]) -> str:
    """What a person may do about a run that waits."""
    if "approval_id" in asked:
        place = f"{question} --session {run['session_id']}"
        from pml.streams.approval_text import call_lines

        told = "; ".join(shortened(line, 120) for line in call_lines(asked))
        what = "all of it waits" if asked.get("calls") else "it waits"
        return (
            f"{what} for a person until {asked['expires_at']}: {told} ({asked['message']}): "
            f"pml approvals approve {place} · pml approvals reject {place}"
        )
    place = f"{run['run_id']} --session {run['session_id']}"
    until = f"until {asked['deadline_at']}, then {asked['on_timeout']}"
    return f"waits at {question} {until}: pml run continue {place} · pml run abort {place}"


def _task_row(name: str, task: dict[str, Any]) -> tuple[Any, ...]:
    error = task.get("error") or {}
    result = shortened(task.get("preview") or error.get("message") or "", 70)
    numbers = (task.get("duration_ms"), task.get("saved_ms") or None)
    return (name, task["status"], task.get("served_by"), *numbers, result)
