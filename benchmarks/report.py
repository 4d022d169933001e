"""What people and programs get: a table, and one JSON file a benchmark."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Bound, Figure
from benchmarks.machine import BUSY_SHARE, OthersWatch, commit, describe
from benchmarks.plan import Plan
from pml.schemas.times import to_rfc3339
from pml.streams.local.stack import write_whole

RESULTS = Path(__file__).parent / "results"
# Where nobody looks at a terminal.
WIDTH = 110


@dataclass(frozen=True, slots=True)
class Result:
    """The figures of one benchmark, what else was counted, and all that is needed to measure them again."""

    name: str
    figures: tuple[Figure, ...]
    rounds: int
    seed: int
    commit: str
    machine: Mapping[str, Any]
    others_share: float
    took_s: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON-serialisable values."""
        return {
            "name": self.name,
            "figures": [figure.as_dict() for figure in self.figures],
            **({"facts": dict(self.facts)} if self.facts else {}),
            "rounds": self.rounds,
            "seed": self.seed,
            "commit": self.commit,
            "machine": dict(self.machine),
            "others_share": round(self.others_share, 2),
            "took_s": round(self.took_s, 1),
            "measured_at": to_rfc3339(time.time_ns() // 1_000_000),
        }

    @classmethod
    def of(
        cls,
        name: str,
        figures: Sequence[Figure],
        plan: Plan,
        others: OthersWatch,
        facts: Mapping[str, Any] | None = None,
    ) -> Result:
        """What was measured since the watch was made, here and now."""
        return cls(
            name=name,
            figures=tuple(figures),
            rounds=plan.rounds,
            seed=plan.seed,
            commit=commit(),
            machine=describe(plan.folder),
            others_share=others.share(),
            took_s=others.elapsed_s,
            facts=facts or {},
        )

    def only(self, names: Iterable[str]) -> Result:
        """The same with nothing but these figures."""
        chosen = frozenset(names)
        return replace(self, figures=tuple(figure for figure in self.figures if figure.name in chosen))

    def write(self, folder: Path = RESULTS) -> Path:
        """Replace the result of this name."""
        path = folder / f"{self.name}.json"
        write_whole(path, orjson.dumps(self.as_dict(), option=orjson.OPT_INDENT_2) + b"\n")
        return path


def show(results: Sequence[Result], console: Console) -> None:
    """The table of ratios, and below it where they come from."""
    table = Table(title="PML ÷ baseline, median of the rounds", box=box.SIMPLE, pad_edge=False)
    table.add_column("figure")
    for column in ("PML", "baseline", "ratio", "min–max", "must be", "aim", ""):
        table.add_column(column, justify="right", no_wrap=True)
    for result in results:
        for figure in result.figures:
            table.add_row(f"{result.name}: {figure.name}, {figure.unit}", *_cells(figure))
        table.add_section()
    console.print(table)
    for result in results:
        for line in _footnotes(result):
            console.print(line, markup=False, highlight=False)


def _cells(figure: Figure) -> tuple[str, ...]:
    bound = figure.bound
    return (
        _number(median(figure.values)),
        _number(median(figure.baseline)),
        f"{figure.ratio:.2f}",
        f"{min(figure.ratios):.2f}–{max(figure.ratios):.2f}",
        _limit(bound),
        f"{bound.aim:g}" if bound and bound.aim is not None else "",
        {True: "[green]held[/]", False: "[bold red]NOT HELD[/]", None: ""}[figure.held],
    )


def _limit(bound: Bound | None) -> str:
    if bound is None:
        return ""
    return f"{'≥' if bound.sense == 'at least' else '≤'} {bound.limit:g}"


def _footnotes(result: Result) -> list[str]:
    machine = result.machine
    lines = [
        f"{result.name}: {result.rounds} rounds, seed {result.seed}, commit {result.commit}, "
        f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, "
        f"disk sync {machine['disk_sync_ms']:.3g} ms, {result.took_s:.0f} s"
    ]
    if result.others_share > BUSY_SHARE:
        lines.append(
            f"  others took {result.others_share:.0%} of the cores meanwhile: do not trust these figures"
        )
    return lines + [f"  {figure.name}: {figure.note}" for figure in result.figures if figure.note]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
