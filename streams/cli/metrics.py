"""`pml metrics`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pml.streams.cli.output import Json, print_json, print_table
from pml.streams.cli.session import load_settings, run_async

COLUMNS = ("hits", "misses", "wasted", "repeats", "saved_ms", "wasted_ms")


def metrics(
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until all that the log holds is counted.")
    ] = False,
    timeout_s: Annotated[float, typer.Option("--timeout", min=0.1, help="With --wait: seconds.")] = 30,
    json: Json = False,
) -> None:
    """Show what speculation brought and cost: hits, misses, waste, latency saved, in all and by tool.

    Examples: pml metrics · pml metrics --wait --json
    """
    from pml.streams.projections.reader import read_metrics

    report = run_async(read_metrics(load_settings(), wait_s=timeout_s if wait else None)).as_dict()
    if json:
        print_json(report)
        return
    print_table(("tool", *COLUMNS), [*_rows(report["tools"]), ("all", *_numbers(report))])
    told = ", ".join(f"{count} {status}" for status, count in report["runs"].items())
    typer.echo(f"runs: {told or 'none yet'}; lag {report['lag']}")


def _rows(tools: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(name, *_numbers(numbers)) for name, numbers in tools.items()]


def _numbers(report: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(report.get(column) for column in COLUMNS)
