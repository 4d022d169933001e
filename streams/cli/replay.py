"""`pml replay`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.exits import FAILED
from pml.streams.cli.export import moment
from pml.streams.cli.output import Json, note, print_json, print_table, say, stderr_console
from pml.streams.cli.session import load_settings, open_store, run_async

if TYPE_CHECKING:
    from pml.streams.replay.parts import Part
    from pml.streams.replay.play import ReplayReport
    from pml.streams.replay.selection import Selection
    from pml.streams.settings import Settings


# A bar need not move for each line.
LINES_TOLD = 500
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
    ] = "kafka",
    session: Annotated[str | None, typer.Option(help="Only this session; the metrics are left out.")] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of that session.")] = "local",
    since: Moment = None,
    until: Moment = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare with what is live.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where the same replay was stopped; not from a file.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes at once; else one a processor, as far as they pay.")
    ] = None,
    json: Json = False,
) -> None:
    """Fold the sessions of the log again; with --verify also metrics and rows of ClickHouse, and compare.

    Joins no consumer group and commits nothing. A file has no records that belong to no session and names
    no partitions; they are computed from the sessions. Of a stretch of time the metrics are left out, and
    sessions that began before it are not folded. Partitions are read side by side, behind whatever else wants
    the processors. One that was stopped goes on with --resume after the last partition that was done.
    Exit code 1 where anything differs, and where --verify found no event.

    Examples: pml replay --verify · pml replay --from events.jsonl --verify --json ·
    pml replay --session ses_1 --verify · pml replay --from clickhouse --since 2026-11-01 --verify ·
    pml replay --verify --resume --workers 4
    """
    from pml.streams.replay.selection import Selection

    chosen = None if session is None else (tenant, session)
    selection = Selection(source, chosen, _time_ms(since, "--since"), _time_ms(until, "--until"), verify)
    if resume and not selection.in_parts:
        raise typer.BadParameter("a file is read from its first line on: leave --resume out, or --from")
    settings = load_settings()
    if selection.in_parts:
        report = run_async(_parts(settings, selection, workers, resume=resume))
    else:
        report = run_async(_file(settings, selection))
    nothing_read = verify and report.events == 0
    if json:
        print_json({**report.as_dict(), "same": report.same and not nothing_read})
    else:
        _print(report)
    if nothing_read:
        of = "" if session is None else f" of session {session} of tenant {tenant}"
        note(f"no event{of} was found to verify: check the names, the times, and kafka.topic_prefix")
    if nothing_read or not report.same:
        raise typer.Exit(FAILED)


async def _parts(
    settings: Settings, selection: Selection, workers: int | None, *, resume: bool
) -> ReplayReport:
    """Every partition that is not done yet, with those that are."""
    from pml.streams.replay.checkpoint import Checkpoint
    from pml.streams.replay.parts import parts_of
    from pml.streams.replay.play import merged
    from pml.streams.replay.workers import Hearers, processors, replay_parts, workers_for

    checkpoint = Checkpoint.of(settings, selection, note)
    done = checkpoint.done() if resume else {}
    resumed = len(done)
    parts = [part for part in await parts_of(settings, selection) if part.partition not in done]
    if not done:
        checkpoint.begin()

    def finished(part: Part, report: ReplayReport) -> None:
        checkpoint.add(part.partition, report)
        done[part.partition] = report

    with _progress(sum(part.records for part in parts)) as told:
        try:
            await replay_parts(
                settings,
                selection,
                parts,
                workers or workers_for(parts, processors()),
                Hearers(finished, told),
            )
        except BaseException:
            if checkpoint.kept:
                note(
                    f"{checkpoint.kept} of {len(parts) + resumed} partitions are done; --resume goes on there"
                )
            raise
    checkpoint.remove()
    report = merged(done[number] for number in sorted(done))
    report.resumed = resumed
    return report


async def _file(settings: Settings, selection: Selection) -> ReplayReport:
    """
    Raises:
        typer.BadParameter: the file cannot be read.
    """
    from pml.streams.replay.parts import folds_of, read_live
    from pml.streams.replay.play import replay as play
    from pml.streams.replay.sources import read_file, within

    with ExitStack() as open_until_end:
        open_until_end.enter_context(_interruptible())
        file, size_bytes = _opened(selection.source, open_until_end)
        live = await read_live(settings, selection)
        store = open_until_end.enter_context(open_store(settings)) if selection.verify else None
        told = open_until_end.enter_context(_progress(size_bytes, "bytes"))
        read = within(read_file(_heard(file, told)), selection.since_ms, selection.until_ms)
        return await play(read, folds_of(selection, live, store), selection.session)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C ends also a read that waits for more: the event loop would note it for when that has ended."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _heard(file: IO[bytes], told: Any) -> Iterator[bytes]:
    """The lines of a file; how many bytes were read is told."""
    read = 0
    for number, line in enumerate(file):
        read += len(line)
        if number % LINES_TOLD == 0:
            told(read)
        yield line


def _opened(source: str, stack: ExitStack) -> tuple[IO[bytes], int | None]:
    """The file, and its size where that is known.

    Raises:
        typer.BadParameter: it cannot be read.
    """
    from pml.streams.replay.selection import STANDARD_INPUT

    if source == STANDARD_INPUT:
        return sys.stdin.buffer, None
    try:
        file = stack.enter_context(Path(source).open("rb"))  # noqa: SIM115
    except OSError as error:
        raise typer.BadParameter(f"{source} cannot be read: {error.strerror}") from None
    return file, Path(source).stat().st_size


@contextmanager
def _progress(total: int | None, what: str = "records") -> Iterator[Any]:
    """A bar on standard error; what it gives is told how many there were so far."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=stderr_console(), transient=True) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda count: progress.update(bar, completed=count)


def _time_ms(text: str | None, option: str) -> int | None:
    """
    Raises:
        typer.BadParameter: it is no time.
    """
    from pml.schemas.times import from_rfc3339

    found = moment(text, option)
    return None if found is None else from_rfc3339(found)


def _print(report: ReplayReport) -> None:
    rows = [
        (item.projection, item.folded, item.compared, item.differences, item.verdict)
        for item in report.comparisons
    ]
    print_table(("projection", "events folded", "compared", "differences", "verdict"), rows)
    for item in report.comparisons:
        for text in item.notes:
            say(f"{item.projection}: {text}")
        if item.first is not None:
            say(f"first difference of {item.first.line()}")
    say(f"{report.events} events read")
