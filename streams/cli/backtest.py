"""`pml backtest`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pml.streams.cli.backtest_report import print_report
from pml.streams.cli.export import moment
from pml.streams.cli.output import Json, print_json, stderr_console
from pml.streams.cli.session import load_settings, open_store, run_async

if TYPE_CHECKING:
    from collections.abc import Callable

Moment = Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339; without a zone it is UTC.")]


def backtest(
    *,
    model: Annotated[str, typer.Option(metavar="MODEL", help="Its id, mdl_…; see pml model list.")],
    threshold: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="The confidence at which calls begin; else the one that holds."),
    ] = None,
    budget: Annotated[
        Literal["low", "normal", "high"] | None, typer.Option(help="Of each session; else the settings'.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="RFC 3339; else when the model was made: it has seen nothing since."
        ),
    ] = None,
    until: Moment = None,
    keep: Annotated[bool, typer.Option(help="Lay it beside the model: its promotion names it.")] = True,
    json: Json = False,
) -> None:
    """Hold a model against what went on: what it would have begun early, what of that was of use.

    Beside the threshold that you ask for stands what others would have come to, and which saves most.

    After each run of a named session the model is asked as the pipeline asks; which tools may run early is
    what permissions say now. Nothing is called, and no running part is disturbed.

    Examples: pml backtest --model mdl_0123456789ab · pml backtest --model mdl_0123456789ab --threshold 0.6
    --since 2026-11-01 --json
    """
    from pml.streams.catalog_topic import read_catalog
    from pml.streams.discovery.finder import load_embedding
    from pml.streams.learning.backtesting import Wanted, run_backtest
    from pml.streams.learning.kept_backtests import keep_backtest
    from pml.streams.learning.manifests import read_manifest

    settings = load_settings()
    read_manifest(settings.models_folder, model)
    wanted = Wanted(model, threshold, budget, moment(since, "--since"), moment(until, "--until"))
    records = run_async(read_catalog(settings))
    with open_store(settings) as store, _progress() as tell:
        embedding = load_embedding(settings.discovery.model)
        report = run_backtest(settings, store, records, wanted, embedding=embedding, progress=tell).as_dict()
    if keep:
        keep_backtest(settings.models_folder, report)
    if json:
        print_json(report)
    else:
        print_report(report)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """A bar of sessions, on stderr."""
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("sessions"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        bar = progress.add_task("sessions", total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)
