"""What commands print: one JSON document or tables on stdout, notes and errors on stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import typer

from pml.streams.printable import LINES, printable, printable_json

# A table that goes into a pipe is cut for nobody.
PIPE_WIDTH = 250

Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def print_json(value: Any) -> None:
    """One JSON document; indented for a person, in one line for a program."""
    import orjson

    option = orjson.OPT_INDENT_2 if sys.stdout.isatty() else 0
    _echo_json(value, option | orjson.OPT_NON_STR_KEYS)


def print_json_line(value: Any) -> None:
    """One JSON document of a stream, in one line."""
    _echo_json(value, 0)


def _echo_json(value: Any, option: int) -> None:
    """JSON: exact for a file or a program; for a person with all written out that is not seen."""
    import orjson

    try:
        told = orjson.dumps(value, default=str, option=option).decode()
    except orjson.JSONEncodeError:
        told = orjson.dumps(_in_utf8(value), default=_text_in_utf8, option=option).decode()
    typer.echo(printable_json(told) if sys.stdout.isatty() else told)


def _text_in_utf8(value: Any) -> str:
    """A text; bytes of a file's name or an argument that are no UTF-8 are written out: `\\udcff`."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _in_utf8(value: Any) -> Any:
    """The same value, whose texts are in UTF-8."""
    match value:
        case str():
            return _text_in_utf8(value)
        case dict():
            return {_in_utf8(name): _in_utf8(item) for name, item in value.items()}
        case list() | tuple():
            return [_in_utf8(item) for item in value]
    return value


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """A table; without rows it says so."""
    from rich.table import Table
    from rich.text import Text

    heads, name = map(printable, columns), None if title is None else printable(title)
    table = Table(*heads, title=name, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    console = stdout_console()
    console.print(table if table.row_count else Text("nothing to show", style="dim"))


def stdout_console() -> Any:
    """The console for results."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, soft_wrap=False)


def stderr_console() -> Any:
    """The console for notes and progress."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def note(text: str) -> None:
    """A remark for a person, beside the result."""
    typer.echo(printable(text), err=True)


def say(text: str) -> None:
    """A result in words for a person, which may hold what agents and tools wrote."""
    typer.echo(printable(text))


def say_source(text: str) -> None:
    """Source text: exact for a file or a program; for a person with all written out that is not seen."""
    typer.echo(printable(text, LINES) if sys.stdout.isatty() else text)


def shortened(text: str, most: int = 80) -> str:
    """The text in one line, cut where it is longer."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _cell(value: Any) -> Any:
    from rich.text import Text

    if isinstance(value, Text):
        return value
    if value is None:
        return Text("")
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    return Text(_number(value) if isinstance(value, float) else printable(str(value)))


def _number(value: float) -> str:
    """Shares need their digits; milliseconds and counts are read by their size."""
    return f"{value:,.1f}" if value == 0 or abs(value) >= 10 else f"{value:.4g}"
