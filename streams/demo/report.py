"""What the demo found: as one JSON object, and as tables a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from pml.streams.demo.comparison import differences
from pml.streams.demo.runs import Measured


@dataclass(frozen=True, slots=True)
class WorkflowReport:
    """A workflow run without and with speculation."""

    name: str
    layers: int
    tasks: int
    wall_ms_plain: float
    wall_ms_speculative: float
    hits: int
    small_hits: int
    misses: int
    wasted: int
    saved_ms: float
    identical: bool
    differences: tuple[str, ...]
    by_shape: tuple[str, ...]
    speculated: bool
    unsafe_speculations: int
    eligible: int
    eligible_speculated: int

    @property
    def ok(self) -> bool:
        """The same results, nothing unsafe run early, and hits wherever something could run early."""
        return self.identical and not self.unsafe_speculations and not self.missed

    @property
    def missed(self) -> bool:
        """Whether calls could run early, or did, and none was of use."""
        return self.hits == 0 and (self.speculated or self.eligible > 0)


@dataclass(frozen=True, slots=True)
class IntentReport:
    """An intent that was answered by what a program had taught.

    `run` compares the program without speculation with the run of the capability that the intent meant.
    """

    intent: str
    file: str
    capability: str
    capability_id: str
    meant: str | None
    run: WorkflowReport

    @property
    def ok(self) -> bool:
        """Whether the capability of the program was found, ran, and came to the same."""
        return self.meant == self.capability_id and self.run.ok


@dataclass(frozen=True, slots=True)
class DemoReport:
    """All workflows and programs, and three questions asked of what is now in ClickHouse."""

    workflows: tuple[WorkflowReport, ...]
    queries: Mapping[str, list[dict[str, Any]]]
    data_dir: str
    intents: tuple[IntentReport, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether PML kept its promise everywhere."""
        meant = all(item.ok for item in self.intents)
        return bool(self.workflows) and meant and all(item.ok for item in self.workflows)

    @property
    def runs(self) -> tuple[WorkflowReport, ...]:
        """Everything that was run without and with speculation."""
        return (*self.workflows, *(item.run for item in self.intents))

    @property
    def eligible_calls_speculated(self) -> float | None:
        """The share of the calls that could run early for which one was begun: of none, none."""
        eligible = sum(item.eligible for item in self.runs)
        speculated = sum(item.eligible_speculated for item in self.runs)
        return round(speculated / eligible, 3) if eligible else None

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        return {
            "workflows": [asdict(item) for item in self.workflows],
            "intents": [asdict(item) for item in self.intents],
            "queries": dict(self.queries),
            "eligible_calls_speculated": self.eligible_calls_speculated,
            "data_dir": self.data_dir,
            "ok": self.ok,
        }


def compare(name: str, tasks: int, plain: Measured, speculative: Measured) -> WorkflowReport:
    """The report of one workflow."""
    counts = speculative.summary.counts
    found = differences(plain.outcome, speculative.outcome)
    return WorkflowReport(
        name=name,
        layers=speculative.summary.layers,
        tasks=tasks,
        wall_ms_plain=round(plain.wall_ms, 1),
        wall_ms_speculative=round(speculative.wall_ms, 1),
        hits=counts.hits,
        small_hits=speculative.small_hits,
        misses=counts.misses,
        wasted=counts.wasted,
        saved_ms=round(counts.saved_ms, 1),
        identical=not found,
        differences=tuple(found),
        by_shape=tuple(sorted(name for name, task in plain.outcome.tasks.items() if task.volatile)),
        speculated=speculative.speculated,
        unsafe_speculations=plain.unsafe_speculations + speculative.unsafe_speculations,
        eligible=speculative.eligible,
        eligible_speculated=speculative.eligible_speculated,
    )


def show(report: DemoReport, console: Console) -> None:
    """Print the report for a person."""
    parts = (_workflows(report), *_intents(report), *_remarks(report), *_queries(report))
    console.print(Group(*parts, _next_steps(report)))


def _workflows(report: DemoReport) -> Table:
    table = Table(title="Each workflow twice: without and with speculation", title_justify="left")
    for column in ("workflow", "layers", "tasks", "plain ms", "speculative ms", "hits", "(< 5 ms)", "misses"):
        table.add_column(column, justify="left" if column == "workflow" else "right")
    for column in ("wasted", "saved ms", "eligible", "speculated", "identical", "unsafe early"):
        table.add_column(column, justify="right")
    for item in report.workflows:
        table.add_row(*_cells(item))
    return table


def _intents(report: DemoReport) -> list[RenderableType]:
    if not report.intents:
        return []
    title = "\nPrograms that ran once, and then by nothing but their intent, with other values"
    table = Table(title=title, title_justify="left")
    for column in ("intent", "learned from", "capability", "found"):
        table.add_column(column)
    for column in ("plain ms", "by intent ms", "hits", "identical"):
        table.add_column(column, justify="right")
    for item in report.intents:
        found = item.meant == item.capability_id
        numbers = (f"{item.run.wall_ms_plain:.0f}", f"{item.run.wall_ms_speculative:.0f}", str(item.run.hits))
        named = (item.intent, item.file, item.capability)
        table.add_row(*named, _verdict(found), *numbers, _verdict(item.run.identical))
    return [table]


def _verdict(good: bool) -> Text:
    return Text("yes", "green") if good else Text("NO", "bold red")


def _cells(item: WorkflowReport) -> list[RenderableType]:
    verdict = _verdict(item.identical)
    return [
        item.name,
        str(item.layers),
        str(item.tasks),
        f"{item.wall_ms_plain:.0f}",
        f"{item.wall_ms_speculative:.0f}",
        str(item.hits),
        str(item.small_hits),
        str(item.misses),
        str(item.wasted),
        f"{item.saved_ms:.1f}",
        str(item.eligible),
        str(item.eligible_speculated),
        verdict,
        str(item.unsafe_speculations),
    ]


def _remarks(report: DemoReport) -> list[RenderableType]:
    remarks: list[RenderableType] = []
    for item in report.runs:
        remarks += [Text(f"{item.name}: {difference}", "red") for difference in item.differences]
        if item.missed:
            told = "what was run early was of no use" if item.speculated else "no call was run early"
            remarks.append(Text(f"{item.name}: {told}, of {item.eligible} that could be", "red"))
    by_shape = [f"{item.name} ({', '.join(item.by_shape)})" for item in report.runs if item.by_shape]
    if by_shape:
        remarks.append(
            Text(f"Compared by shape, because a clock changes by itself: {'; '.join(by_shape)}", "dim")
        )
    remarks.append(Text(_told_share(report), "dim"))
    remarks.append(
        Text(
            "Identical: every full result, and every byte of the folder and the repository afterwards.", "dim"
        )
    )
    return remarks


def _told_share(report: DemoReport) -> str:
    share = report.eligible_calls_speculated
    told = "there was none" if share is None else f"{share:.0%} were speculated"
    return f"Eligible: calls after a first layer that were allowed to run early; of them {told}."


def _queries(report: DemoReport) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for name, rows in report.queries.items():
        table = Table(title=f"\npml query {name}", title_justify="left")
        for column in rows[0] if rows else ("nothing to show",):
            table.add_column(column)
        for row in rows[:8]:
            table.add_row(
                *(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values())
            )
        shown.append(table)
    return shown


def _next_steps(report: DemoReport) -> Text:
    verdict = ("Everything identical, nothing unsafe run early.", "bold green")
    if not report.ok:
        verdict = ("PML did not keep its promise here: see above.", "bold red")
    steps = (
        f"\n\nWhat to try next (the data stay in {report.data_dir}):\n"
        "  pml init                        a pml.toml, a servers file and a permissions file of your own\n"
        "  pml up --detach                 the same stack, in the background\n"
        "  pml submit FILE --wait          a workflow or a program of your own\n"
        "  pml capability list             what was learned from all of them\n"
        "  pml run list                    every run so far; pml run trace ID shows one step by step\n"
        "  pml query latency_saved         ask ClickHouse; any SELECT works too\n"
        "  pml events tail                 the log as it grows"
    )
    return Text.assemble("\n", verdict, steps)
