"""What is told of a regime: how often the baseline's time goes into PML's, beside how often it could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.figures import Bound, Figure
from benchmarks.speculation.player import Account
from benchmarks.speculation.regime import Outcome

ALL = "all"
OF_BOUND = Bound("at least", 0.95, aim=0.98)


@dataclass(frozen=True, slots=True)
class Row:
    """One data set (or all of them) on one side, in times of a baseline; one value a round.

    `eligible` counts the reads after the first layer, over all rounds: what could be speculated at all.
    """

    regime: str
    dataset: str
    side: str
    baseline: str
    times: tuple[float, ...]
    bound: tuple[float, ...]
    limit: Bound | None
    account: Account
    eligible: int
    workflows: int
    tasks: int

    @property
    def figure(self) -> Figure:
        """The same as all benchmarks tell their figures: PML's is how often, the baseline is the bound."""
        name = f"{self.regime}, {self.dataset}: {self.side} beside {self.baseline}"
        return Figure(name, "times as fast", self.times, self.bound, self.limit)

    @property
    def hit_rate(self) -> float | None:
        """Of the real calls that could have been served early, how many were."""
        calls = self.account.hits + self.account.misses
        return self.account.hits / calls if calls else None

    @property
    def early_share(self) -> float | None:
        """Of the eligible calls, how many were speculated."""
        return self.account.started / self.eligible if self.eligible else None

    @property
    def waste_share(self) -> float | None:
        """Tool-seconds that nobody used, for each that somebody did."""
        return self.account.wasted_s / self.account.useful_s if self.account.useful_s else None

    def as_dict(self) -> dict[str, Any]:
        """What the figure does not say, as JSON-serialisable values."""
        return {
            "regime": self.regime,
            "dataset": self.dataset,
            "side": self.side,
            "baseline": self.baseline,
            "times": _round(median(self.times)),
            "times_min": _round(min(self.times)),
            "times_max": _round(max(self.times)),
            "bound": _round(median(self.bound)),
            "of_bound": _round(self.figure.ratio),
            "held": self.figure.held,
            "hit_rate": _round(self.hit_rate),
            "early_share": _round(self.early_share),
            "wasted_of_useful": _round(self.waste_share),
            "workflows": self.workflows,
            "tasks": self.tasks,
            "eligible": self.eligible,
        }


def rows(
    outcome: Outcome, side: str, baseline: str, datasets: Sequence[str], limit: Bound | None = OF_BOUND
) -> list[Row]:
    """A row for each data set that was played, then one for all of them; only that one has the limit."""
    played = [name for name in datasets if any(s.dataset == name for s in outcome.regime.sources)]
    single = [_row(outcome, side, baseline, name, [name]) for name in played if len(played) > 1]
    return [*single, _row(outcome, side, baseline, ALL, played, limit=limit)]


def _row(
    outcome: Outcome,
    side: str,
    baseline: str,
    name: str,
    datasets: Sequence[str],
    *,
    limit: Bound | None = None,
) -> Row:
    chosen = [n for n, source in enumerate(outcome.regime.sources) if source.dataset in datasets]
    ours, theirs = outcome.played[side], outcome.played[baseline]
    account = Account()
    for each in datasets:
        account.add(ours.accounts.get(each, Account()))
    tasks = [task for n in chosen for task in outcome.regime.sources[n].tasks]
    eligible = sum(task.safe and task.layer > 0 for task in tasks)
    return Row(
        regime=outcome.regime.name,
        dataset=name,
        side=side,
        baseline=baseline,
        times=_times(theirs.seconds, ours.seconds, chosen),
        bound=_times(theirs.ideal, ours.ideal, chosen),
        limit=limit,
        account=account,
        eligible=eligible * len(ours.seconds),
        workflows=len(chosen),
        tasks=len(tasks),
    )


def _times(theirs: list[list[float]], ours: list[list[float]], chosen: Sequence[int]) -> tuple[float, ...]:
    """By round: all seconds of the baseline divided by all of ours."""
    return tuple(
        sum(other[n] for n in chosen) / sum(own[n] for n in chosen)
        for other, own in zip(theirs, ours, strict=True)
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
