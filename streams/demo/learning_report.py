"""What `pml demo --learn` found, for a person and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pml.streams.demo.comparison import Outcome, differences


@dataclass(frozen=True, slots=True)
class Way:
    """How sessions were played: with which model, or with none."""

    name: str
    manifest: Mapping[str, Any] | None

    @property
    def key(self) -> str:
        """The name as part of an id."""
        return self.name.replace(" ", "-")

    @property
    def learner(self) -> str:
        """What predicted."""
        return "" if self.manifest is None else str(self.manifest["serves"])


@dataclass(frozen=True, slots=True)
class WayPlayed:
    """What became of the sessions: how long each was waited for, what it came to, and what was predicted.

    `thresholds`: what held at each prediction, in their order.
    """

    way: Way
    waited_ms: tuple[float, ...]
    outcomes: tuple[Sequence[Outcome], ...]
    calls: int
    begun: int
    hits: int
    thresholds: tuple[float, ...] = ()

    @property
    def wasted(self) -> int:
        """Calls that were begun and served nobody."""
        return self.begun - self.hits


@dataclass(frozen=True, slots=True)
class LearningReport:
    """All ways in which the same sessions were played, the first without predictions, as `plan` says."""

    plan: Mapping[str, Any]
    model: Mapping[str, Any]
    ways: tuple[WayPlayed, ...]

    @property
    def differences(self) -> list[str]:
        """Every result that is another than where nothing was predicted, in words."""
        plain = self.ways[0]
        return [
            f"{other.way.name}, session {number}, workflow {step}: {found}"
            for other in self.ways[1:]
            for number, pair in enumerate(zip(plain.outcomes, other.outcomes, strict=True), 1)
            for step, (one, two) in enumerate(zip(*pair, strict=True), 1)
            for found in differences(one, two)
        ]

    @property
    def ok(self) -> bool:
        """Whether all sessions came to the same whatever was predicted."""
        return not self.differences

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            **self.plan,
            "model": {name: self.model[name] for name in ("model_id", "serves", "baseline", "reason")},
            "ways": [_row(way) for way in self.ways],
            "identical": self.ok,
            "differences": self.differences,
        }


def _row(played: WayPlayed) -> dict[str, Any]:
    return {
        "way": played.way.name,
        "learner": played.way.learner,
        "calls": played.calls,
        "begun": played.begun,
        "hits": played.hits,
        "wasted": played.wasted,
        "thresholds": [played.thresholds[0], played.thresholds[-1]] if played.thresholds else None,
        "waited_ms": round(sum(played.waited_ms), 1),
        "waited_ms_a_session": round(statistics.median(played.waited_ms), 1),
    }


def show(report: LearningReport, console: Console) -> None:
    """Print the report for a person."""
    plan = report.plan
    title = f"{plan['played']} sessions that were not trained on, in each way the same (seed {plan['seed']})"
    table = Table(title=title, title_justify="left")
    table.add_column("predicted by")
    for column in ("calls", "begun early", "hits", "wasted", "threshold", "waited ms", "a session (median)"):
        table.add_column(column, justify="right")
    for played in report.ways:
        row = _row(played)
        name = f"{row['way']}: {row['learner']}" if row["learner"] else row["way"]
        counts = (str(row[column]) for column in ("calls", "begun", "hits", "wasted"))
        moved = " → ".join(f"{value:.2f}" for value in row["thresholds"] or ())
        table.add_row(name, *counts, moved, f"{row['waited_ms']:.0f}", f"{row['waited_ms_a_session']:.0f}")
    console.print(table)
    for text in _remarks(report):
        console.print(text)


def _remarks(report: LearningReport) -> list[Text]:
    plan = report.plan
    threshold = "as it is" if plan["threshold"] is None else f"{plan['threshold']:g} (an override)"
    told = [
        Text(f"Trained on {plan['recorded']} sessions: {report.model['reason']}.", "dim"),
        Text(
            f"Each call of the files server takes {plan['latency_ms']} ms longer than it would here.", "dim"
        ),
        Text(f"The threshold is {threshold}; wasted: begun, and of no use to anybody.", "dim"),
        Text(f"Sessions and models are the tenant {plan['tenant']}'s; they serve nobody else.", "dim"),
    ]
    if _moved(report):
        told.append(
            Text("Thresholds learn: a later way began where the one before it had left them.", "yellow")
        )
    if report.model["serves"] == report.model["baseline"]:
        told.append(Text("The model is the best baseline, for the reason above.", "yellow"))
    told += [Text(text, "red") for text in report.differences[:20]]
    verdict = ("Everything identical.", "bold green") if report.ok else ("Results differ.", "bold red")
    return [*told, Text.assemble("\n", verdict)]


def _moved(report: LearningReport) -> bool:
    """Whether predictions were held to several thresholds, so that ways do not compare like with like."""
    return len({threshold for played in report.ways for threshold in played.thresholds}) > 1
