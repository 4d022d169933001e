"""`pml replay`."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.export import moment
from pml.streams.cli.output import Json, print_json, print_table, stderr_console
from pml.streams.cli.session import load_settings, open_store, run_async

if TYPE_CHECKING:
    from pml.streams.replay.play import ReplayReport
    from pml.streams.replay.rows import RowsReplay
    from pml.streams.replay.sources import Entries
    from pml.streams.settings import Settings


KAFKA, CLICKHOUSE = "kafka", "clickhouse"
Moment = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Only events from or up to then: RFC 3339; without a zone it is UTC."),
]


def replay(
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from", metavar="SOURCE", help="kafka, clickhouse, - or a file of `pml events dump --json`."
        ),
    ] = KAFKA,
    session: Annotated[str | None, typer.Option(help="Only this session; the metrics are left out.")] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of that session.")] = "local",
    since: Moment = None,
    until: Moment = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare with what is live.")] = False,
    json: Json = False,
) -> None:
    """Fold the sessions of the log again; with --verify also metrics and rows of ClickHouse, and compare.

    Joins no consumer group and commits nothing. A file has no records that belong to no session and names
    no partitions; they are computed from the sessions. Of a stretch of time the metrics are left out, and
    sessions that began before it are not folded. Exit code 1 where anything differs.

    Examples: pml replay --verify · pml replay --from events.jsonl --verify --json ·
    pml replay --session ses_1 --verify · pml replay --from clickhouse --since 2026-11-01 --verify
    """
    chosen = None if session is None else (tenant, session)
    span = (_time_ms(since, "--since"), _time_ms(until, "--until"))
    report = run_async(_replay(load_settings(), Selection(source, chosen, *span), verify))
    if json:
        print_json(report.as_dict())
    else:
        _print(report)
    if not report.same:
        raise typer.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is replayed: where from, of which session (tenant and name), and of which stretch of time."""

    source: str
    session: tuple[str, str] | None
    since_ms: int | None
    until_ms: int | None

    @property
    def whole(self) -> bool:
        """Whether it begins with the log."""
        return self.since_ms is None

    @property
    def has_totals(self) -> bool:
        """Whether what was counted over all of it can be compared."""
        return self.session is None and self.since_ms is None and self.until_ms is None


async def _replay(settings: Settings, chosen: Selection, verify: bool) -> ReplayReport:
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from pml.streams.replay.accounts import AccountsReplay
    from pml.streams.replay.live import live_metrics, live_sessions
    from pml.streams.replay.play import replay as play
    from pml.streams.replay.sessions import SessionsReplay
    from pml.streams.replay.sources import within

    # The live tables first: whatever they hold then is in the log that is read after them.
    live = await live_sessions(settings, chosen.session) if verify else {}
    sessions = SessionsReplay(live, whole=chosen.whole)
    accounts = AccountsReplay(await live_metrics(settings)) if verify and chosen.has_totals else None
    columns = (SpinnerColumn(), TextColumn("events"), MofNCompleteColumn(), TimeElapsedColumn())
    with ExitStack() as open_until_end:
        beside = verify and chosen.source != CLICKHOUSE
        rows = await _rows(settings, chosen, open_until_end) if beside else None
        progress = open_until_end.enter_context(Progress(*columns, console=stderr_console(), transient=True))
        bar = progress.add_task("events", total=None)
        entries = _entries(settings, chosen.source, open_until_end)
        return await play(
            within(entries, chosen.since_ms, chosen.until_ms),
            sessions=sessions,
            accounts=accounts,
            rows=rows,
            session=chosen.session,
            on_event=partial(progress.advance, bar),
        )


def _time_ms(text: str | None, option: str) -> int | None:
    """
    Raises:
        typer.BadParameter: it is no time.
    """
    from pml.schemas.times import from_rfc3339

    found = moment(text, option)
    return None if found is None else from_rfc3339(found)


async def _rows(settings: Settings, chosen: Selection, stack: ExitStack) -> RowsReplay:
    from pml.clickhouse.replay import stored_rows
    from pml.streams.replay.live import sink_committed
    from pml.streams.replay.rows import RowsReplay

    committed = await sink_committed(settings)
    store = stack.enter_context(open_store(settings))
    return RowsReplay(
        lambda number, first, last: stored_rows(store, number, first, last, chosen.session),
        committed,
        whole=chosen.whole,
    )


def _entries(settings: Settings, source: str, stack: ExitStack) -> Entries:
    """
    Raises:
        typer.BadParameter: the file cannot be read.
    """
    from pml.streams.replay.sources import read_lines, read_log, read_store

    if source == KAFKA:
        return read_log(settings)
    if source == CLICKHOUSE:
        return read_store(stack.enter_context(open_store(settings)))

    async def lines() -> Entries:
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
