"""`pml worker`."""

from __future__ import annotations

from typing import Annotated

import typer


def worker(
    roles: Annotated[
        list[str],
        typer.Argument(metavar="ROLE…", help="orchestrator, bridge, metrics, thresholds, sink: one or more."),
    ],
) -> None:
    """Run roles in this process until Ctrl-C or SIGTERM; `pml up` does it for you.

    Examples: pml worker orchestrator · pml worker metrics sink
    """
    from pml.streams.settings import Settings
    from pml.streams.worker import run_worker

    run_worker(Settings.load(), list(dict.fromkeys(roles)))
