"""`pml demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pml.streams.cli.dependent_options import only_with
from pml.streams.cli.exits import FAILED
from pml.streams.cli.output import Json, note, print_json, stderr_console, stdout_console
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.streams.demo.learning_report import LearningReport
    from pml.streams.demo.report import DemoReport
    from pml.streams.demo.stage import Stage
    from pml.streams.settings import Settings

Say = Callable[[str], None]
SEED = 1
SESSIONS = 60
LATENCY_MS = 300
Sessions = Annotated[
    int | None,
    typer.Option(
        min=3,
        max=3_000,
        help="With --learn: how many are drawn; two of three train.",
        show_default=str(SESSIONS),
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="With --learn: what sessions are drawn with.", show_default=str(SEED)),
]
Latency = Annotated[
    int | None,
    typer.Option(
        "--latency-ms",
        min=0,
        max=5_000,
        help="With --learn: each call takes so much longer.",
        show_default=str(LATENCY_MS),
    ),
]


def demo(
    *,
    repository: Annotated[
        Path,
        typer.Option("--repository", help="The git repository that the workflows read.", file_okay=False),
    ] = Path(),
    learn: Annotated[
        bool, typer.Option("--learn", help="Sessions instead: train on some, predict in others.")
    ] = False,
    sessions: Sessions = None,
    seed: Seed = None,
    threshold: Annotated[
        float | None, typer.Option(min=0, max=1, help="With --learn: the confidence to begin at.")
    ] = None,
    latency_ms: Latency = None,
    json: Json = False,
) -> None:
    """Run real workflows on real MCP servers, without and with speculation, and compare.

    Then programs: each is learned by running it once, and run again by nothing but its intent. Starts a stack
    of its own, stops it at the end and leaves its data. Exit code 1 where any result differs, an unsafe tool
    was run early, what was run early was of no use, or an intent was not understood.

    With --learn: sessions of three workflows; a model is trained on two of three, and the others are played
    with nothing predicted, by the best baseline and by the model. Exit code 1 where any result differs.

    Examples: pml demo · pml demo --json · pml demo --repository ~/src/project · pml demo --learn
    """
    from pml.streams.demo.stage import Stage
    from pml.streams.local.foreground import fetch_jars

    only_with("--learn", learn, sessions=sessions, seed=seed, threshold=threshold, latency_ms=latency_ms)
    settings = load_settings()
    fetch_jars(settings)
    console = stderr_console()
    with console.status("starting …") as status:

        def say(text: str) -> None:
            status.update(text) if console.is_terminal else note(text)

        stage = (
            Stage(_predicting(settings), repository.absolute(), _or(latency_ms, LATENCY_MS))
            if learn
            else Stage(settings, repository.absolute())
        )
        drawn = _or(sessions, SESSIONS), _or(seed, SEED)
        report, show = _learn(stage, *drawn, threshold, say) if learn else _compare(stage, say)
    if json:
        print_json(report.as_dict())
    else:
        show()
    if not report.ok:
        raise typer.Exit(FAILED)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _predicting(settings: Settings) -> Settings:
    """After each run of a session it is asked what comes next."""
    policy = settings.speculation.model_copy(update={"predictions": "on"})
    return settings.model_copy(update={"speculation": policy})


def _compare(stage: Stage, say: Say) -> tuple[DemoReport, Callable[[], None]]:
    """Every example without and with speculation."""
    from pml.streams.demo.play import play
    from pml.streams.demo.programs import load_programs
    from pml.streams.demo.report import show
    from pml.streams.demo.stage import load_workflows

    report = run_async(play(stage, load_workflows(), load_programs(), say))
    return report, lambda: show(report, stdout_console())


def _learn(
    stage: Stage, sessions: int, seed: int, threshold: float | None, say: Say
) -> tuple[LearningReport, Callable[[], None]]:
    """Sessions without and with prediction."""
    from pml.streams.demo.learning import Plan, learn
    from pml.streams.demo.learning_report import show

    recorded = 2 * sessions // 3
    plan = Plan(recorded, sessions - recorded, seed, threshold, stage.latency_ms)
    report = run_async(learn(stage, plan, say))
    return report, lambda: show(report, stdout_console())
