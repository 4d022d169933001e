"""`python -m benchmarks.learning.hyperpaths`: hyperpaths updated after edits, beside searching anew."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Annotated, Any

import numba
import numpy as np
import orjson
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Bound, Figure, percentile
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import WIDTH, Result, show
from pml.processors.learning.hyperedge_weights import hyperedge_weights
from pml.processors.learning.hypergraph import Edits, Hyperedge, Hypergraph
from pml.processors.learning.hyperpath_update import CROSSOVER, Updated, update
from pml.processors.learning.hyperpaths import Cost, shortest_hyperpaths

NAME = "hyperpaths"
SEED, ROUNDS = 1, 3
VERTICES, HYPEREDGES, SOURCES = 10_000, 30_000, 100
# How many inputs a hyperedge has, and with which probability.
INPUTS, INPUT_SHARES = (1, 2, 3), (0.5, 0.3, 0.2)
COSTS: tuple[Cost, ...] = ("sum", "rank", "bottleneck")
SINGLE_CHANGES = 200
BATCHES = (1, 3, 10, 30, 100, 300, 1_000, 2_000, 3_000, 6_000, 10_000)
BATCHES_EACH = 6
# Beyond any share, and below any: always one way, or always the other.
ALWAYS_REPAIR, NEVER_REPAIR = 1e9, 0.0
KINDS = ("weight rises", "weight falls", "removal", "insertion")
FLOOR = 10


def main(
    seed: Annotated[int, typer.Option(min=0, help="What graphs and edits are drawn with.")] = SEED,
    rounds: Annotated[int, typer.Option(min=1, help="How many graphs.")] = ROUNDS,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the tables.")] = False,
) -> None:
    """Measure what updating hyperpaths saves, and from how many edits at once it saves nothing.

    Exit code 0 whatever the figures are.

    Examples: python -m benchmarks.learning.hyperpaths · python -m benchmarks.learning.hyperpaths --rounds 1
    """
    others = OthersWatch()
    with planned(NAME, rounds, seed) as plan:
        plan.say("compiling")
        facts: dict[str, Any] = {"numba": numba.__version__, "first_call_s": round(_first_call_s(), 2)}
        figures, facts["single_changes"] = _single_changes(plan)
        facts["crossover"] = _crossover(plan)
        facts["crossover_share"] = CROSSOVER
        facts["reached_share"] = round(_reached_share(plan.seed_of(0)), 3)
        result = Result.of(NAME, figures, plan, others, facts)
    result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    show([result], console)
    console.print(_table(facts["crossover"]))
    console.print(f"compiling or reading the machine code, once: {facts['first_call_s']} s", highlight=False)


def drawn_hyperedges(draws: np.random.Generator, vertices: int, count: int) -> list[Hyperedge]:
    """Of 1 to 3 inputs between any vertices, with weights from drawn successes, everything covered."""
    attempts = draws.integers(1, 100, count)
    weights = hyperedge_weights(draws.binomial(attempts, draws.beta(5, 1, count)), attempts, np.ones(count))
    ends = draws.integers(0, vertices, (count, INPUTS[-1] + 1)).tolist()
    sizes = draws.choice(INPUTS, count, p=INPUT_SHARES)
    return [
        Hyperedge(tuple(end[1 : 1 + size]), (end[0],), float(weight))
        for end, size, weight in zip(ends, sizes, weights, strict=True)
    ]


def drawn_edits(draws: np.random.Generator, graph: Hypergraph, kind: str, count: int) -> Edits:
    """`count` edits of one kind: weights times 1 to 3 or divided by it, hyperedges gone or new."""
    if kind == "insertion":
        return Edits(added=tuple(drawn_hyperedges(draws, graph.vertices, count)))
    usable = np.flatnonzero(np.isfinite(graph.weights[: len(graph)]))
    numbers = draws.choice(usable, count, replace=False)
    if kind == "removal":
        return Edits(removed=tuple(numbers.tolist()))
    factors = draws.uniform(1, 3, count) ** (1 if kind == "weight rises" else -1)
    changed = graph.weights[numbers] * factors
    return Edits(weights=dict(zip(numbers.tolist(), changed.tolist(), strict=True)))


def mixed_edits(draws: np.random.Generator, graph: Hypergraph, count: int) -> Edits:
    """`count` edits: a tenth removals, a tenth insertions; of the rest half rise, half fall. One rises."""
    tenth = count // 10
    changed = drawn_edits(draws, graph, "weight rises", count - tenth)
    numbers, (gone, falling) = list(changed.weights), (tenth, (count - tenth) // 2)
    removed, kept = numbers[:gone], numbers[gone:]
    weights = {number: changed.weights[number] for number in kept}
    for number in kept[:falling]:
        weights[number] = float(graph.weights[number]) ** 2 / weights[number]
    return Edits(weights, tuple(removed), tuple(drawn_hyperedges(draws, graph.vertices, tenth)))


class _Pair:
    """The same graph and tree twice: one is updated, the other searched from scratch after the same edits."""

    def __init__(self, seed: int, cost: Cost) -> None:
        self.draws = np.random.default_rng(seed)
        hyperedges = drawn_hyperedges(self.draws, VERTICES, HYPEREDGES)
        self.ours, self.baseline = (
            shortest_hyperpaths(Hypergraph(VERTICES, hyperedges), range(SOURCES), cost) for _ in range(2)
        )

    def timed(self, edits: Edits) -> tuple[float, float, Updated]:
        """Milliseconds of both, edits of the graph included, and what was updated."""
        ours_ms, updated = _taken_ms(lambda: update(self.ours, edits, ALWAYS_REPAIR))
        baseline_ms, _ = _taken_ms(lambda: update(self.baseline, edits, NEVER_REPAIR))
        return ours_ms, baseline_ms, updated

    def check(self) -> None:
        """Figures of something that is wrong are worth nothing."""
        if not np.array_equal(self.ours.distances, self.baseline.distances):
            raise AssertionError("updated and recomputed distances differ")


def _taken_ms(work: Callable[[], Updated]) -> tuple[float, Updated]:
    began = time.perf_counter()
    done = work()
    return (time.perf_counter() - began) * 1_000, done


def _first_call_s() -> float:
    began = time.perf_counter()
    tree = shortest_hyperpaths(Hypergraph(2, [Hyperedge((0,), (1,), 1.0)]), [0])
    update(tree, Edits(weights={0: 2.0}), ALWAYS_REPAIR)
    return time.perf_counter() - began


def _single_changes(plan: Plan) -> tuple[list[Figure], list[dict[str, Any]]]:
    figures, facts = [], []
    for cost in COSTS:
        for kind in KINDS:
            plan.say(f"single changes: {cost}, {kind}")
            rounds = [_timed_singly(plan.seed_of(number), cost, kind) for number in range(plan.rounds)]
            figure = Figure(
                f"one change, {cost}, {kind}",
                "trees/s",
                tuple(1_000 / fmean(ours) for ours, _, _ in rounds),
                tuple(1_000 / fmean(baseline) for _, baseline, _ in rounds),
                Bound("at least", FLOOR),
            )
            figures.append(figure)
            facts.append({"cost": cost, "kind": kind} | _spread(rounds))
    return figures, facts


Timed = tuple[list[float], list[float], list[int]]


def _timed_singly(seed: int, cost: Cost, kind: str) -> Timed:
    pair = _Pair(seed, cost)
    taken = [pair.timed(drawn_edits(pair.draws, pair.ours.graph, kind, 1)) for _ in range(SINGLE_CHANGES)]
    pair.check()
    ours, baseline, updated = zip(*taken, strict=True)
    return list(ours), list(baseline), [each.vertices for each in updated]


def _spread(rounds: Sequence[Timed]) -> dict[str, Any]:
    """Of all rounds together: what a change costs, also the dearest ones, and what it touches."""
    ours = [taken for round_ours, _, _ in rounds for taken in round_ours]
    baseline = [taken for _, round_baseline, _ in rounds for taken in round_baseline]
    vertices = [touched for _, _, touched_each in rounds for touched in touched_each]
    return {
        "update_ms": {f"p{share}": round(percentile(ours, share), 4) for share in (50, 99, 100)},
        "recompute_ms": {f"p{share}": round(percentile(baseline, share), 4) for share in (50, 99, 100)},
        "vertices_lost": {"mean": round(fmean(vertices), 2), "most": max(vertices)},
    }


def _crossover(plan: Plan) -> list[dict[str, Any]]:
    rows = []
    for cost in COSTS:
        for count in BATCHES:
            plan.say(f"{count} edits at once: {cost}")
            taken = [
                taken
                for number in range(plan.rounds)
                for taken in _batches(plan.seed_of(number), cost, count)
            ]
            ours, baseline = (median(side) for side in zip(*taken, strict=True))
            rows.append(
                {
                    "cost": cost,
                    "edits": count,
                    "share": round(count / HYPEREDGES, 5),
                    "update_ms": round(ours, 3),
                    "recompute_ms": round(baseline, 3),
                    "times_as_fast": round(baseline / ours, 2),
                }
            )
    return rows


def _batches(seed: int, cost: Cost, count: int) -> list[tuple[float, float]]:
    pair = _Pair(seed, cost)
    taken = [pair.timed(mixed_edits(pair.draws, pair.ours.graph, count))[:2] for _ in range(BATCHES_EACH)]
    pair.check()
    return taken


def _reached_share(seed: int) -> float:
    """How many of the vertices have a hyperpath at all, 0 to 1."""
    return float(np.mean(np.isfinite(_Pair(seed, "sum").ours.distances)))


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Times as fast as from scratch, by edits at once", box=box.SIMPLE, pad_edge=False)
    for column in ("edits", "share", *COSTS):
        table.add_column(column, justify="right")
    for count in BATCHES:
        of = [row for row in rows if row["edits"] == count]
        table.add_row(f"{count:,}", f"{of[0]['share']:.2%}", *(f"{row['times_as_fast']:.2f}" for row in of))
    return table


if __name__ == "__main__":
    typer.run(main)
