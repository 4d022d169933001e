"""All regimes, one after another, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import Bound, Figure, percentile
from benchmarks.plan import Plan
from benchmarks.speculation import forks, regimes
from benchmarks.speculation.conversion import SourceWorkflow
from benchmarks.speculation.findings import OF_BOUND, Row, rows
from benchmarks.speculation.player import Account
from benchmarks.speculation.regime import Outcome, Regime, run, side_by_side
from benchmarks.speculation.sample import DATASETS, Sizes, datasets_folder, draw, read_workflows, sample
from benchmarks.speculation.stage import Stage, stage
from pml.processors.speculation.budget import BUDGETS

# A slow-down of three per cent is the most that speculation may cost where it cannot help.
HARMLESS = Bound("at least", round(1 / 1.03, 4))
WITHIN = Bound("at most", 1.0)
SERVING_BOUND = Bound("at most", 0.05, aim=0.02)
# A tool that sleeps this long is there only to warm everything up.
WARM_UP_S = 0.01
WARM_UP_LANES, WARM_UP_ROUNDS = 4, 3
ERRING_SEED = 999_999


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is played: with tools alone, with decisions (runs are longer then), and by the adversary.

    All of it ends within a quarter of an hour.
    """

    tools: Sizes
    decisions: Sizes
    forks: int


WHOLE = Scope(Sizes(10, layers_max=8, tasks_max=16), Sizes(6, layers_max=6, tasks_max=12), 40)
QUICK = Scope(Sizes(3, 6, 12), Sizes(2, 4, 8), 16)


@dataclass(slots=True)
class Findings:
    """Everything that is told: rows, other figures, and what was played."""

    rows: list[Row]
    figures: list[Figure]
    facts: dict[str, Any]


async def measure(plan: Plan, scope: Scope) -> Findings:
    """Play everything.

    Raises:
        ConfigurationError: PML_DATASETS does not name the data sets.
        PMLError: the stack did not come up, or a run did not complete.
    """
    folder = datasets_folder()
    found = {name: read_workflows(folder, name) for name in DATASETS}
    many, few = _sampled(found, scope.tools, plan.seed), _sampled(found, scope.decisions, plan.seed)
    async with stage(plan) as on:
        await _teach(on, scope, plan)
        await _warm_up(on, many, plan)
        tools = await run(regimes.tools_only(on, many), plan)
        decided = await run(regimes.decisions(on, few), plan)
        loop = await run(regimes.agent_loop(on, few), plan)
        nothing = await run(regimes.nothing_speculable(on, few), plan)
        wrong = await run(regimes.always_wrong(on, scope.forks), plan)
        plan.say("one session that always errs")
        erring = await regimes.err_in_one_session(on.boldest[1], ERRING_SEED)
    depths = [regimes.depth_name(depth) for depth in on.players]
    told = [
        *_each(tools, [regimes.WITHOUT], regimes.BY_LAYER, None),
        *_each(tools, depths, regimes.BY_LAYER),
        *_each(tools, depths, regimes.WITHOUT, None),
        *_each(decided, depths, regimes.WITHOUT),
        *_each(loop, depths, regimes.LOOP),
        *_each(nothing, depths[-1:], regimes.WITHOUT, HARMLESS),
        *_each(wrong, depths[-1:], regimes.WITHOUT, HARMLESS),
    ]
    outcomes = (tools, decided, loop, nothing, wrong)
    return Findings(
        told, [_serving(tools, decided), *_wasted(erring)], _facts(scope, found, many, few, outcomes)
    )


def _sampled(found: dict[str, list[SourceWorkflow]], sizes: Sizes, seed: int) -> list[SourceWorkflow]:
    """So many of each, mixed, so that no data set has the machine for itself."""
    drawn = [sample(workflows, sizes, seed) for workflows in found.values()]
    return [source for sources in zip(*drawn, strict=False) for source in sources]


async def _warm_up(on: Stage, sources: Sequence[SourceWorkflow], plan: Plan) -> None:
    """A broker that has just started takes twice the time for its first thousand records."""
    plan.say("warming up")
    warm: Regime = regimes.tools_only(on, sources)
    drawn = [draw(source, WARM_UP_S, plan.seed) for source in sources]
    for side in [*warm.sides] * WARM_UP_ROUNDS:
        await side_by_side(side, drawn, WARM_UP_LANES, {})


async def _teach(on: Stage, scope: Scope, plan: Plan) -> None:
    """What the adversary needs to be believed, for all of its runs."""
    seeds = [plan.seed_of(number) for number in range(plan.rounds)]
    types = [f"{forks.fork(n).id}-{seed}" for n in range(scope.forks) for seed in seeds]
    types += [f"{forks.fork(n).id}-{ERRING_SEED}" for n in range(regimes.ERRING_RUNS)]
    await forks.teach(on.boldest[1].settings, types)


def _each(outcome: Outcome, sides: Iterable[str], baseline: str, limit: Bound | None = OF_BOUND) -> list[Row]:
    datasets = (*DATASETS, forks.DATASET)
    return [row for side in sides for row in rows(outcome, side, baseline, datasets, limit)]


def _serving(*outcomes: Outcome) -> Figure:
    """How long a hit takes to be served, beside the tool that it spares."""
    played = [side for outcome in outcomes for side in outcome.played.values()]
    served_ms = [each for side in played for account in side.accounts.values() for each in account.serving_ms]
    return Figure(
        "serving a hit, p99",
        "ms",
        (percentile(served_ms, 99),),
        (regimes.TOOLS_MEDIAN_S * 1_000,),
        SERVING_BOUND,
        f"from the record that lets a hit be served to the one that says so, {len(served_ms)} hits, p50 "
        f"{percentile(served_ms, 50):g} ms ÷ a tool of 200 ms",
    )


def _wasted(erring: Account) -> list[Figure]:
    """What a session wastes at most that is always wrong."""
    budget = BUDGETS["normal"]
    return [
        Figure(
            "calls in vain, one session",
            "calls",
            (float(erring.started),),
            (float(budget.calls),),
            WITHIN,
            f"{regimes.ERRING_RUNS} runs with three calls each that are never used ÷ the budget of a session",
        ),
        Figure(
            "tool-seconds in vain, one session",
            "s",
            (erring.wasted_s,),
            (budget.wasted_ms_per_hour / 1_000,),
            WITHIN,
            "the same runs ÷ the budget of an hour",
        ),
    ]


def _facts(
    scope: Scope,
    found: dict[str, list[SourceWorkflow]],
    many: Sequence[SourceWorkflow],
    few: Sequence[SourceWorkflow],
    outcomes: Sequence[Outcome],
) -> dict[str, Any]:
    return {
        "limits": {
            "tools": {"layers": scope.tools.layers_max, "tasks": scope.tools.tasks_max},
            "decisions": {"layers": scope.decisions.layers_max, "tasks": scope.decisions.tasks_max},
        },
        "cpu_share": {outcome.regime.name: round(outcome.cpu_share, 3) for outcome in outcomes},
        "datasets": {
            name: {
                "workflows": len(workflows),
                "played": sum(source.dataset == name for source in many),
                "played_with_decisions": sum(source.dataset == name for source in few),
                "unsafe_share": round(_unsafe_share([s for s in many if s.dataset == name]), 3),
            }
            for name, workflows in found.items()
        },
    }


def _unsafe_share(sources: Sequence[SourceWorkflow]) -> float:
    tasks = [task for source in sources for task in source.tasks]
    return sum(not task.safe for task in tasks) / len(tasks)
