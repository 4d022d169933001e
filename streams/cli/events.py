"""`pml events tail|dump`: the log as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pml.streams.cli.output import Json, print_json_line, say, shortened
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.schemas.events import Event

app = typer.Typer(no_args_is_help=True, help="The log of events.")
Session = Annotated[str | None, typer.Option(help="Only this session.")]
Tenant = Annotated[str, typer.Option(help="The tenant of that session.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", help="Only events of this type; may be given several times.")
]
# What a person looks for in an event, the most telling first.
TELLING = ("task_id", "tool", "layer", "status", "served_by", "fate", "reason", "preview", "error", "name")


@app.callback()
def _group() -> None:
    """The log of events."""


@app.command()
def tail(
    *,
    session: Session = None,
    tenant: Tenant = "local",
    event_type: Types = None,
    from_beginning: Annotated[bool, typer.Option(help="Begin with the oldest event.")] = False,
    until_end: Annotated[bool, typer.Option(help="Stop at the end of the log as it is now.")] = False,
    json: Json = False,
) -> None:
    """Follow the log until Ctrl-C; with --json one event a line.

    Examples: pml events tail · pml events tail --session ses_1 --from-beginning ·
    pml events tail --type task.failed --type run.failed
    """
    start: Literal["beginning", "end"] = "beginning" if from_beginning else "end"
    _print_events(json, session_id=session, tenant=tenant, types=event_type, start=start, until_end=until_end)


@app.command()
def dump(
    *,
    session: Session = None,
    tenant: Tenant = "local",
    event_type: Types = None,
    from_beginning: Annotated[bool, typer.Option(help="As always: dump begins with the oldest.")] = True,
    until_end: Annotated[bool, typer.Option(help="As always: dump stops at the end.")] = True,
    json: Json = False,
) -> None:
    """Print the log from its beginning to its end; with --json one event a line.

    Examples: pml events dump --json > events.jsonl · pml events dump --session ses_1
    """
    start: Literal["beginning", "end"] = "beginning" if from_beginning else "end"
    _print_events(json, session_id=session, tenant=tenant, types=event_type, start=start, until_end=until_end)


def _print_events(as_json: bool, **wanted: Any) -> None:
    run_async(_follow(as_json, wanted))


async def _follow(as_json: bool, wanted: dict[str, Any]) -> None:
    from pml.streams.client import EventConsumer

    async with EventConsumer(load_settings(), **wanted) as events:
        async for event in events:
            if as_json:
                print_json_line(event.model_dump(exclude_none=True))
            else:
                say(event_line(event))


def event_line(event: Event) -> str:
    """An event in one line for a person."""
    data = event.data.model_dump(exclude_none=True)
    told = [shortened(_value(data[name]), 60) for name in TELLING if data.get(name) not in (None, "")]
    who = event.run_id or event.session_id or f"offset {event.offset}"
    return f"{event.occurred_at[:23]}  {who}  {event.seq:>4}  {event.type:20} {'  '.join(told)}"


def _value(value: Any) -> str:
    return str(value.get("message", value)) if isinstance(value, dict) else str(value)
