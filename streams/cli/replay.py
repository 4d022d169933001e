"""`pml replay`."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.output import Json, print_json, print_table, stderr_console
from pml.streams.cli.session import load_settings, open_store, run_async

if TYPE_CHECKING:
    from pml.streams.replay.play import ReplayReport
    from pml.streams.replay.rows import RowsReplay
    from pml.streams.replay.sources import LogEntry
    from pml.streams.settings import Settings


def replay(
    *,
    source: Annotated[
        str, typer.Option("--from", metavar="SOURCE", help="kafka, - or a file of `pml events dump --json`.")
    ] = "kafka",
    session: Annotated[str | None, typer.Option(help="Only this session; the metrics are left out.")] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of that session.")] = "local",
    verify: Annotated[bool, typer.Option("--verify", help="Compare with what is live.")] = False,
    json: Json = False,
) -> None:
    """Fold the sessions of the log again; with --verify also metrics and rows of ClickHouse, and compare.

    Joins no consumer group and commits nothing. A file has no records that belong to no session and names
    no partitions; they are computed from the sessions. Exit code 1 where anything differs.

    Examples: pml replay --verify · pml replay --from events.jsonl --verify --json ·
    pml replay --session ses_1 --verify
    """
    chosen = None if session is None else (tenant, session)
    report = run_async(_replay(load_settings(), source, chosen, verify))
    if json:
        print_json(report.as_dict())
    else:
        _print(report)
    if not report.same:
        raise typer.Exit(FAILED)


async def _replay(
    settings: Settings, source: str, session: tuple[str, str] | None, verify: bool
) -> ReplayReport:
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from pml.streams.replay.accounts import AccountsReplay
    from pml.streams.replay.live import live_metrics, live_sessions
    from pml.streams.replay.play import replay as play
    from pml.streams.replay.sessions import SessionsReplay

    # The live tables first: whatever they hold then is in the log that is read after them.
    sessions = SessionsReplay(await live_sessions(settings, session) if verify else {})
    accounts = AccountsReplay(await live_metrics(settings)) if verify and session is None else None
    columns = (SpinnerColumn(), TextColumn("events"), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as open_until_end:
        rows = await _rows(settings, session, open_until_end) if verify else None
        progress = open_until_end.enter_context(Progress(*columns, console=stderr_console(), transient=True))
        bar = progress.add_task("events", total=None)
        entries = _entries(settings, source, open_until_end)
        return await play(
            entries,
            sessions=sessions,
            accounts=accounts,
            rows=rows,
            session=session,
            on_event=partial(progress.advance, bar),
        )


async def _rows(settings: Settings, session: tuple[str, str] | None, stack: ExitStack) -> RowsReplay:
    from pml.clickhouse.replay import stored_rows
    from pml.streams.replay.live import sink_committed
    from pml.streams.replay.rows import RowsReplay

    committed = await sink_committed(settings)
    store = stack.enter_context(open_store(settings))
    return RowsReplay(lambda number, first, last: stored_rows(store, number, first, last, session), committed)


def _entries(settings: Settings, source: str, stack: ExitStack) -> AsyncIterator[LogEntry]:
    """
    Raises:
        typer.BadParameter: the file cannot be read.
    """
    from pml.streams.replay.sources import read_lines, read_log

    if source == "kafka":
        return read_log(settings)

    async def lines() -> AsyncIterator[LogEntry]:
        for entry in read_lines(file):
            yield entry

    try:
        file = sys.stdin.buffer if source == "-" else stack.enter_context(Path(source).open("rb"))  # noqa: SIM115
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error.strerror}") from None
    return lines()


def _print(report: ReplayReport) -> None:
    from pml.streams.replay.play import NOT_REBUILT

    rows = [
        (item.projection, item.folded, item.compared, item.differences, item.verdict)
        for item in report.comparisons
    ]
    print_table(("projection", "events folded", "compared", "differences", "verdict"), rows)
    for item in report.comparisons:
        for text in item.notes:
            typer.echo(f"{item.projection}: {text}")
        if item.first is not None:
            typer.echo(f"first difference of {item.first.line()}")
    typer.echo(f"{report.events} events read; not rebuilt: {', '.join(NOT_REBUILT)}")
