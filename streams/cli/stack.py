"""`pml up`, `pml down`, `pml status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.exits import FAILED, UNREACHABLE
from pml.streams.cli.output import Json, note, print_json, print_table, shortened, stderr_console
from pml.streams.cli.session import load_settings, run_async

if TYPE_CHECKING:
    from pml.streams.local.stack import Part, Stack
    from pml.streams.settings import Settings
    from pml.streams.status import Status

STYLES = {"ready": "green", "elsewhere": "green", "starting": "yellow", "stopped": "dim"}


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return as soon as it is ready.")] = False,
    timeout_s: Annotated[
        float, typer.Option("--timeout", min=1, help="With --detach: seconds to wait until it is ready.")
    ] = 180,
    json: Json = False,
) -> None:
    """Start the local stack: broker, store, topics, tables and workers.

    Nothing embedded is started where KAFKA_BOOTSTRAP_SERVERS or CLICKHOUSE_URL is set.
    Without --detach it runs until Ctrl-C.

    Examples: pml up · pml up --detach · PML_DATA_DIR=/tmp/other pml up -d
    """
    from pml.streams.local.stack import running_stack

    settings = load_settings()
    stack = running_stack(settings.data_dir)
    if stack is not None:
        note(f"already up: {settings.data_dir} (process {stack.supervisor.pid}); `pml status` shows it")
    elif detach:
        _up_detached(settings, timeout_s)
    else:
        _up_here(settings)
        return
    if json:
        _print_status(settings, as_json=True)


def down(json: Json = False) -> None:
    """Stop the local stack cleanly; data stay.

    Example: pml down
    """
    from pml.streams.local.detached import stop_stack
    from pml.streams.local.stack import running_stack

    settings = load_settings()
    stack = running_stack(settings.data_dir)
    if stack is not None:
        with stderr_console().status("stopping the stack …"):
            stop_stack(settings, stack)
    note("down" if stack else f"nothing was up on {settings.data_dir}")
    if json:
        print_json({"data_dir": str(settings.data_dir), "stopped": stack is not None})


def status(json: Json = False) -> None:
    """Show each part that `pml up` runs: state, address, lag, last error.

    A role that said nothing in this data folder is `absent`, or `elsewhere` where its consumer group has
    members. The gateway is needed only where `pml up` runs it.

    Exit code 0 where every part is ready, 1 where one is not, 4 where broker or store do not answer.

    Examples: pml status · pml status --json
    """
    found = _print_status(load_settings(), as_json=json)
    if not found.ready:
        raise typer.Exit(FAILED if found.reachable else UNREACHABLE)


def _up_here(settings: Settings) -> None:
    from pml.streams.local.foreground import run_in_foreground

    run_in_foreground(settings, lambda part: note(_line(part)), lambda: note("ready; Ctrl-C stops it"))


def _up_detached(settings: Settings, timeout_s: float) -> None:
    from pml.streams.local.detached import start_detached
    from pml.streams.local.foreground import fetch_jars

    fetch_jars(settings)
    with stderr_console().status("starting …") as shown:
        stack = start_detached(settings, timeout_s, lambda stack: shown.update(_progress(stack)))
    note(f"ready: broker {stack.broker}, data in {settings.data_dir}; `pml down` stops it")


def _progress(stack: Stack) -> str:
    waiting = [part.name for part in stack.parts if part.state != "ready"]
    return f"starting {', '.join(waiting) or 'tables and topics'} …"


def _line(part: Part) -> str:
    error = f": {part.last_error}" if part.state in ("failed", "restarting") else ""
    return f"{part.name:14} {part.state}{error}"


def _print_status(settings: Settings, *, as_json: bool) -> Status:
    from pml.streams.status import read_status

    found = run_async(read_status(settings))
    if as_json:
        print_json(found.as_dict())
    else:
        _print_parts(found)
    return found


def _print_parts(found: Status) -> None:
    print_table(("part", "state", "address", "lag", "restarts", "last error"), map(_row, found.parts))
    for model in found.models:
        serves = model["serves"] or "what is counted of the latest runs"
        note(f"the model of tenant {model['tenant']} was rolled back, {serves} serves: {model['why']}")
    if not found.up:
        note(f"no local stack is up on {found.data_dir}; `pml up` starts one")


def _row(part: Any) -> tuple[Any, ...]:
    from rich.text import Text

    address = " ".join(filter(None, (part.address, "(embedded)" if part.embedded else None)))
    state = Text(part.state, style=STYLES.get(part.state, "red" if part.needed else "dim"))
    return part.name, state, address, part.lag, part.restarts or None, shortened(part.last_error or "")
