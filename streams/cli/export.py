"""`pml export traces`: the training set as a file."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pml.streams.cli.output import Json, note, print_json, stderr_console
from pml.streams.cli.session import load_settings, open_store

if TYPE_CHECKING:
    from pml.clickhouse.training.selection import Selection

app = typer.Typer(no_args_is_help=True, help="What was recorded, as files for training models of your own.")
FORMATS = ("npz", "parquet")
# That of `pml.clickhouse.training.selection`, which a command imports when it runs.
Split = Literal["groups", "sessions", "time"]
Moment = Annotated[str | None, typer.Option(metavar="TIME", help="RFC 3339; without a zone it is UTC.")]


@app.callback()
def _group() -> None:
    """What was recorded, as files for training models of your own."""


@app.command()
def traces(
    file: Annotated[Path, typer.Argument(help="Where to; a file that is there is replaced.")],
    *,
    to: Annotated[str | None, typer.Option("--to", help="npz or parquet; else by the file's name.")] = None,
    since: Moment = None,
    until: Moment = None,
    tenant: Annotated[str | None, typer.Option(help="Only its traces; else those of all.")] = None,
    validation: Annotated[float, typer.Option(min=0, max=1, help="Share of the split to validate on.")] = 0.1,
    test: Annotated[float, typer.Option(min=0, max=1, help="Share of the split to test on.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Which groups or sessions these are.")] = 0,
    split: Annotated[
        Split, typer.Option(help="What lies on one side: groups of near-duplicates, sessions, or a time.")
    ] = "groups",
    json: Json = False,
) -> None:
    """Write every run that has ended, with its calls, to a file, and FILE.json, which says what is in it.

    Near-duplicates (the same capability with the same arguments) lie on one side of the split; with
    `--split sessions` or `--split time` the runs of a session do, too.

    Examples: pml export traces traces.npz · pml export traces traces.parquet --since 2026-11-01 ·
    pml export traces traces.npz --until 2026-11-20T12:00:00Z --test 0.3 --seed 7 --json ·
    pml export traces traces.npz --split time
    """
    from pml.clickhouse.training.selection import EARLIEST, LATEST, Selection

    kind = _kind(to, file)
    selection = Selection(
        tenant,
        moment(since, "--since") or EARLIEST,
        moment(until, "--until") or LATEST,
        validation,
        test,
        seed,
        split,
    )
    manifest = _written(kind, selection, file)
    if json:
        print_json(manifest)
    else:
        sides = ", ".join(f"{count} {side.replace('_', ' ')}" for side, count in manifest["sides"].items())
        note(f"{manifest['traces']} traces ({sides}) in {file}, {manifest['bytes']} bytes; see {file}.json")


def _kind(to: str | None, file: Path) -> str:
    """
    Raises:
        typer.BadParameter: neither the option nor the name says what to write.
    """
    kind = to or file.suffix.removeprefix(".")
    if kind not in FORMATS:
        raise typer.BadParameter(f"{kind or file.name!r} is none of {', '.join(FORMATS)}; say --to")
    return kind


def moment(text: str | None, option: str) -> str | None:
    """A time in UTC with microseconds, as the store compares it.

    Raises:
        typer.BadParameter: it is none.
    """
    if text is None:
        return None
    from datetime import UTC

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option} {text!r} is no time such as 2026-11-20T12:00:00Z") from None
    zoned = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return zoned.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _written(kind: str, selection: Selection, file: Path) -> dict[str, Any]:
    """
    Raises:
        ConfigurationError: the file cannot be written.
    """
    from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from pml.clickhouse.training.export import write_npz, write_parquet
    from pml.schemas.errors import ConfigurationError

    write = write_npz if kind == "npz" else write_parquet
    columns = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn(), TimeElapsedColumn())
    with (
        open_store(load_settings()) as store,
        Progress(*columns, console=stderr_console(), transient=True) as progress,
    ):
        bar = progress.add_task("reading the traces", total=None)
        try:
            return write(store, selection, file, lambda size: progress.advance(bar, size))
        except OSError as error:
            raise ConfigurationError(f"{file} cannot be written: {error.strerror or error}") from None
