"""`pml metrics`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from pml.streams.cli.output import Json, print_json, print_table
from pml.streams.cli.session import load_settings, run_async

COLUMNS = (
    "hits",
    "misses",
    "hit_rate",
    "eligible",
    "speculated",
    "wasted",
    "repeats",
    "saved_ms",
    "wasted_ms",
)


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
    lines = (
        _eligible(report),
        *_kinds(report["kinds"]),
        _shadow(report["shadow"]),
        _verified(report["verified"]),
    )
    for line in lines:
        if line:
            typer.echo(line)
    typer.echo(f"runs: {told or 'none yet'}; lag {report['lag']}")


def _eligible(report: dict[str, Any]) -> str:
    """How much of what could run early was speculated at all."""
    share = report["eligible_calls_speculated"]
    if share is None:
        return "eligible calls: none yet"
    return f"eligible calls {report['eligible']}, speculated {report['speculated']} ({share:.0%})"


def _kinds(kinds: dict[str, dict[str, float]]) -> Iterator[str]:
    """What each kind of speculation brought; of next layers alone the table says it."""
    for kind, account in kinds.items() if kinds.keys() - {"layer"} else ():
        yield (
            f"{kind}: {account['started']} begun, {account['hits']} hits saved {account['saved_ms']:.0f} ms, "
            f"{account['wasted']} wasted with {account['wasted_ms']:.0f} ms"
        )


def _shadow(shadow: dict[str, Any]) -> str:
    """What shadow mode would have done."""
    if not (shadow["planned"] or shadow["held"]):
        return ""
    reasons = ", ".join(f"{count} {reason}" for reason, count in shadow["reasons"].items())
    return (
        f"shadow mode: {shadow['planned']} planned, {shadow['would_serve']} would have been served and saved "
        f"{shadow['would_save_ms']:.0f} ms, {shadow['would_waste']} would have been waste ({reasons}), "
        f"{shadow['held']} had no budget"
    )


def _verified(verified: dict[str, int]) -> str:
    """How often a tool that was called again said the same."""
    told = ", ".join(f"{count} {outcome}" for outcome, count in verified.items())
    return f"hits that were verified: {told}" if told else ""


def _rows(tools: dict[str, dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(name, *_numbers(numbers)) for name, numbers in tools.items()]


def _numbers(report: dict[str, Any]) -> tuple[Any, ...]:
    rate = report["hit_rate"]
    told = {**report, "hit_rate": None if rate is None else round(rate, 3)}
    return tuple(told.get(column) for column in COLUMNS)
