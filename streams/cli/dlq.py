"""`pml dlq list|show|requeue`: dead letters."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pml.streams.cli.output import Json, print_json, print_table, shortened, stdout_console
from pml.streams.cli.session import load_settings, run_async
from pml.streams.printable import printable

app = typer.Typer(no_args_is_help=True, help="Dead letters: records that could not be handled.")


@app.callback()
def _group() -> None:
    """Dead letters: records that could not be handled."""


@app.command("list")
def list_letters(
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="The newest so many.")] = 50,
    json: Json = False,
) -> None:
    """List dead letters: where each came from, where it stopped, why.

    Examples: pml dlq list · pml dlq list --limit 500 --json
    """
    from pml.streams.dead_letter_reader import read_letters

    letters = run_async(read_letters(load_settings(), limit))
    if json:
        print_json([letter.summary() for letter in letters])
        return
    columns = ("id", "at", "topic", "partition", "offset", "stage", "code", "bytes", "message")
    print_table(columns, ([_short(letter.summary()[column]) for column in columns] for letter in letters))


@app.command()
def show(
    letter_id: Annotated[int, typer.Argument(metavar="ID", help="The id that `pml dlq list` shows.")],
    json: Json = False,
) -> None:
    """Show one dead letter whole: why, and its key, headers and value as they were.

    Example: pml dlq show 17
    """
    from pml.streams.dead_letter_reader import read_letter

    letter = run_async(read_letter(load_settings(), letter_id))
    if json:
        print_json(letter.as_dict())
        return
    console = stdout_console()
    for name, value in letter.as_dict().items():
        console.print(f"[bold]{name}[/bold]", end=" ")
        console.print(_shown(value), markup=False)


@app.command()
def requeue(
    letter_ids: Annotated[
        list[int], typer.Argument(metavar="ID…", min=0, help="The ids that `pml dlq list` shows.")
    ],
    json: Json = False,
) -> None:
    """Send dead letters once more, as they were, to the topics that they came from.

    For what a newer release, or a mended file, can handle now. A command that was obeyed in
    the meantime is answered as any repeat. What still cannot be handled becomes a dead letter again.

    Examples: pml dlq requeue 17 · pml dlq requeue 17 18 19 --json
    """
    from dataclasses import asdict

    from pml.streams.requeue import requeue as send_again

    sent = run_async(send_again(load_settings(), letter_ids))
    if json:
        print_json({"items": [asdict(item) for item in sent]})
        return
    print_table(("id", "topic", "partition", "offset"), [tuple(asdict(item).values()) for item in sent])


def _short(value: Any) -> Any:
    return shortened(value, 60) if isinstance(value, str) else value


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    return "" if value is None else value
