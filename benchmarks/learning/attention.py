"""`python -m benchmarks.learning.attention`: what training and scoring of the attention model cost."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

import numba
import numpy as np
import orjson
import typer
from rich.console import Console

from benchmarks.figures import Bound, Figure, percentile
from benchmarks.learning.attention_array import directions, jax_loss, numpy_slopes
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import WIDTH, Result, show
from pml.processors.learning.attention.descent import (
    MEAN_DECAY,
    SQUARE_DECAY,
    TINY,
    Batch,
    Descent,
    Graph,
    adam,
    step_slopes,
)
from pml.processors.learning.attention.head import Asked, Scorer, all_scores
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.parameters import Parameters, Sizes, drawn, views
from pml.processors.learning.attention.training import DEFAULTS, Learner
from pml.processors.learning.traces import TraceSet

NAME = "attention"
SEED, ROUNDS = 1, 5
TOOLS, CAPABILITIES, MEMBERS = 1_000, 300, 6
STEPS, PREFIXES = 10, 128
SCORED, SCORED_OFTEN = (1_000, 10_000, 100_000), 300
# Traces of one step where replay is compared: fewer steps an epoch, so more epochs that can differ.
REPLAYED_AT_ONCE = 32
# Share of the best MRR of uniform replay that both kinds of replay have to reach.
WANTED_SHARE = 0.95
ONE_THREAD = "numpy, one thread"
FLOOR_NUMPY, FLOOR_JAX, AIM_JAX = 3, 1, 2

Epoch = Callable[[], float]


def main(
    seed: Annotated[int, typer.Option(min=0, help="What everything is drawn with.")] = SEED,
    rounds: Annotated[int, typer.Option(min=1, help="How often each epoch is timed.")] = ROUNDS,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the tables.")] = False,
) -> None:
    """Time a training epoch beside NumPy and JAX, replay by priorities, and scoring.

    JAX is measured where it is installed (extra `bench`), and NumPy with one thread where threadpoolctl is.

    Examples: python -m benchmarks.learning.attention
    """
    others = OthersWatch()
    with planned(NAME, rounds, seed) as plan:
        figures, facts = _epochs(plan)
        plan.say("replay")
        figures.append(_replay(plan, facts))
        plan.say("scoring")
        facts["scoring_p99_ms"] = {str(count): _scoring_ms(count, seed) for count in SCORED}
        result = Result.of(NAME, figures, plan, others, facts)
    result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    show([result], console)
    console.print(orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode(), highlight=False, markup=False)


class _Problem:
    """A drawn hypergraph of three levels, and the batches of an epoch."""

    def __init__(self, seed: int) -> None:
        draws, nodes = np.random.default_rng(seed), TOOLS + CAPABILITIES
        self.sizes = Sizes(nodes, DEFAULTS.text, DEFAULTS.width, DEFAULTS.heads, DEFAULTS.recent, 8)
        third = CAPABILITIES // 3
        contained = {
            owner: draws.integers(1, TOOLS + (owner - TOOLS) // third * third, MEMBERS).tolist()
            for owner in range(TOOLS, nodes)
        }
        self.membership = Membership.of(nodes, contained)
        points = draws.normal(0, DEFAULTS.text**-0.5, (nodes, DEFAULTS.text)).astype(np.float32)
        self.graph = Graph(points, self.membership.upward(), self.membership.downward())
        self.batches = [self._batch(draws) for _ in range(STEPS)]
        self.flat = drawn(self.sizes, seed)

    def _batch(self, draws: np.random.Generator) -> Batch:
        shape, negatives = (PREFIXES, self.sizes.text), DEFAULTS.negatives + DEFAULTS.failures
        asked = Asked(
            draws.normal(0, DEFAULTS.text**-0.5, shape).astype(np.float32),
            draws.integers(0, TOOLS, (PREFIXES, self.sizes.recent)).astype(np.int32),
            draws.normal(size=(PREFIXES, self.sizes.features)).astype(np.float32),
        )
        candidates = draws.integers(1, TOOLS, (PREFIXES, 1 + negatives)).astype(np.int32)
        own = np.ones(self.sizes.nodes, dtype=np.float32)
        return Batch(asked, candidates, np.ones(PREFIXES, dtype=np.float32), own)

    def descent(self) -> Descent:
        """Where training begins."""
        return Descent(self.flat.copy(), *(np.zeros_like(self.flat) for _ in range(3)))


def _ours(problem: _Problem) -> Epoch:
    descent = problem.descent()
    parameters, slopes = views(descent.flat, problem.sizes), views(descent.slopes, problem.sizes)

    def epoch() -> float:
        losses = []
        for number, batch in enumerate(problem.batches, start=1):
            losses.append(step_slopes(parameters, problem.graph, batch, slopes)[0])
            adam(descent, number, DEFAULTS.rate, DEFAULTS.shrinkage)
        return float(np.mean(losses))

    return epoch


def _numpy(problem: _Problem, *, one_thread: bool) -> Epoch | None:
    """With as many threads as its BLAS takes, or with one; None where nobody can say how many.

    Threads wait for each other where others have the cores.
    """
    limits: Any = nullcontext
    if one_thread:
        try:
            limits = importlib.import_module("threadpoolctl").threadpool_limits
        except ModuleNotFoundError:
            return None
    descent, ways = problem.descent(), directions(problem.membership)
    parameters, slopes = views(descent.flat, problem.sizes), views(descent.slopes, problem.sizes)

    def steps() -> float:
        losses = []
        for number, batch in enumerate(problem.batches, start=1):
            losses.append(numpy_slopes(ways, problem.graph.points, parameters, batch, slopes))
            descent.means[:] = MEAN_DECAY * descent.means + (1 - MEAN_DECAY) * descent.slopes
            descent.squares[:] = SQUARE_DECAY * descent.squares + (1 - SQUARE_DECAY) * descent.slopes**2
            pace = DEFAULTS.rate * np.sqrt(1 - SQUARE_DECAY**number) / (1 - MEAN_DECAY**number)
            change = pace * descent.means / (np.sqrt(descent.squares) + TINY)
            descent.flat[:] -= change + DEFAULTS.rate * DEFAULTS.shrinkage * descent.flat
            descent.slopes[:] = 0
        return float(np.mean(losses))

    def epoch() -> float:
        with limits(1):
            return steps()

    return epoch


def compile_and_tell(seed: int) -> None:
    """Print the seconds of a first epoch, less those of a second one."""
    epoch = _ours(_Problem(seed))
    first, second = (_taken(epoch)[0] for _ in range(2))
    sys.stdout.write(f"{first - second:.2f}")


def _compiling_s(seed: int) -> float:
    """Seconds of compiling, of a process that finds nothing compiled."""
    told = f"from benchmarks.learning.attention import compile_and_tell; compile_and_tell({seed})"
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        ran = subprocess.run(
            [sys.executable, "-c", told], env=environment, check=True, capture_output=True, text=True
        )
    return float(ran.stdout)


def _jax(problem: _Problem) -> Epoch | None:
    """None where JAX is not installed."""
    try:
        jax: Any = importlib.import_module("jax")
    except ModuleNotFoundError:
        return None
    np_ = jax.numpy
    ways = jax.tree.map(np_.asarray, directions(problem.membership))
    slopes_of = jax.value_and_grad(jax_loss(jax, ways, np_.asarray(problem.graph.points)))

    def moved(state: Any, batch: Any, number: Any) -> tuple[Any, Any]:
        parameters, means, squares = state
        loss, slopes = slopes_of(parameters, batch)
        means = jax.tree.map(lambda m, s: MEAN_DECAY * m + (1 - MEAN_DECAY) * s, means, slopes)
        squares = jax.tree.map(lambda q, s: SQUARE_DECAY * q + (1 - SQUARE_DECAY) * s * s, squares, slopes)
        pace = DEFAULTS.rate * np_.sqrt(1 - SQUARE_DECAY**number) / (1 - MEAN_DECAY**number)
        less = DEFAULTS.rate * DEFAULTS.shrinkage
        changed = jax.tree.map(
            lambda p, m, q: p - pace * m / (np_.sqrt(q) + TINY) - less * p, parameters, means, squares
        )
        return (changed, means, squares), loss

    step = jax.jit(moved, donate_argnums=0)
    batches = [jax.tree.map(np_.asarray, batch) for batch in problem.batches]
    begun = Parameters(*map(np_.array, views(problem.flat, problem.sizes)))
    held = [(begun, *(jax.tree.map(np_.zeros_like, begun) for _ in range(2)))]

    def epoch() -> float:
        losses = []
        for number, batch in enumerate(batches, start=1):
            held[0], loss = step(held[0], batch, np.float32(number))
            losses.append(loss)
        return float(np.mean([float(loss) for loss in losses]))

    return epoch


def _epochs(plan: Plan) -> tuple[list[Figure], dict[str, Any]]:
    problem = _Problem(plan.seed_of(0))
    plan.say("compiling")
    made = {
        "numba": _ours(problem),
        "numpy": _numpy(problem, one_thread=False),
        ONE_THREAD: _numpy(problem, one_thread=True),
        "jax": _jax(problem),
    }
    ways: dict[str, Epoch] = {name: epoch for name, epoch in made.items() if epoch is not None}
    first = {name: _taken(epoch) for name, epoch in ways.items()}
    told = [loss for _, loss in first.values()]
    if not np.allclose(told, told[0], rtol=1e-3):
        raise AssertionError(f"the models differ: losses of the first epoch are {told}")
    taken = _in_turns(plan, ways)
    facts: dict[str, Any] = {
        "numba": numba.__version__,
        "levels": int(problem.membership.levels.max()),
        "sizes": {"nodes": problem.sizes.nodes, "prefixes_a_step": PREFIXES, "steps": STEPS},
        "compiling_s": _compiling_s(plan.seed_of(0)),
        "first_epoch_s": {name: round(seconds, 2) for name, (seconds, _) in first.items()},
        "epoch_ms": {name: round(1e3 * percentile(each, 50), 2) for name, each in taken.items()},
        "first_losses": {name: round(loss, 5) for name, (_, loss) in first.items()},
    }
    bounds = {"numpy": Bound("at least", FLOOR_NUMPY), "jax": Bound("at least", FLOOR_JAX, AIM_JAX)}
    # Beside NumPy as it is faster, round by round.
    taken["numpy"] = list(map(min, zip(taken["numpy"], taken.pop(ONE_THREAD, taken["numpy"]), strict=True)))
    rates = {name: tuple(1 / seconds for seconds in each) for name, each in taken.items()}
    figures = [
        Figure(f"training epoch, beside {name}", "epochs/s", rates["numba"], rates[name], bounds[name])
        for name in rates
        if name != "numba"
    ]
    return figures, facts


def _in_turns(plan: Plan, ways: Mapping[str, Epoch]) -> dict[str, list[float]]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(plan.rounds):
        plan.say(f"epochs, round {number + 1}")
        for name in list(ways)[number % len(ways) :] + list(ways)[: number % len(ways)]:
            taken[name].append(_taken(ways[name])[0])
    return taken


def _taken(epoch: Epoch) -> tuple[float, float]:
    began = time.perf_counter()
    loss = epoch()
    return time.perf_counter() - began, loss


def _replay(plan: Plan, facts: dict[str, Any]) -> Figure:
    """Epochs until the validation has the same MRR, drawn uniformly and by priorities."""
    told: dict[bool, list[float]] = {False: [], True: []}
    for number in range(plan.rounds):
        traces, points, membership = _rare_traces(plan.seed_of(number))
        wanted = 0.0
        for prioritised in (False, True):
            settings = replace(
                DEFAULTS, prioritised=prioritised, width=32, text=4, traces_at_once=REPLAYED_AT_ONCE
            )
            features = np.zeros((len(traces.items), 0), dtype=np.float32)
            no_texts = np.zeros((0, points.shape[1]), dtype=np.float32)
            learner = Learner(traces, points, no_texts, plan.seed_of(number), membership, settings, features)
            if not prioritised:
                mrr = learner.trained().mrr
                wanted = WANTED_SHARE * max(mrr)
            else:
                mrr = learner.trained(wanted).mrr
            reached = np.flatnonzero(np.asarray(mrr) >= wanted)
            told[prioritised].append(float(reached[0]) + 1 if len(reached) else float("inf"))
    facts["replay_epochs"] = {"uniform": told[False], "prioritised": told[True]}
    finite = [each if np.isfinite(each) else float(DEFAULTS.epochs_most) for each in told[True]]
    return Figure("epochs to the same MRR, PER beside uniform", "epochs", tuple(finite), tuple(told[False]))


def _rare_traces(seed: int) -> tuple[TraceSet, Any, Membership]:
    """Traces of 40 domains, some a hundred times as frequent as others: the rare ones surprise."""
    draws, domains, tools = np.random.default_rng(seed), 40, 4
    shares = 1 / np.arange(1, domains + 1)
    of = draws.choice(domains, 1_500, p=shares / shares.sum())
    items = np.empty((len(of), 3), dtype=np.int32)
    items[:, :2] = 1 + of[:, None] * tools + draws.integers(0, tools, (len(of), 2))
    items[:, 2] = 1 + domains * tools + of
    count, nodes = len(of), 1 + domains * (tools + 2)
    contained = {
        1 + domains * (tools + 1) + each: range(1 + each * tools, 1 + (each + 1) * tools)
        for each in range(domains)
    }
    ones = np.ones(count, dtype=np.float32)
    traces = TraceSet(
        items.ravel(),
        np.ones(3 * count, dtype=np.float32),
        np.arange(count + 1) * 3,
        ones,
        ones,
        np.arange(count),
        np.zeros(count, dtype=np.int64),
        np.full(3 * count, -1),
        np.full(count, -1),
    )
    return traces, np.zeros((nodes, 4), dtype=np.float32), Membership.of(nodes, contained)


def _scoring_ms(count: int, seed: int) -> dict[str, float]:
    """Milliseconds of scoring so many candidates for one prefix, of 300 prefixes one after another."""
    draws = np.random.default_rng(seed)
    sizes = Sizes(count, DEFAULTS.text, DEFAULTS.width, DEFAULTS.heads, DEFAULTS.recent, 8)
    vectors = draws.normal(size=(count, sizes.width)).astype(np.float32)
    points = draws.normal(size=(count, sizes.text)).astype(np.float32)
    scorer = Scorer(views(drawn(sizes, seed), sizes), vectors, points)
    found, taken = np.zeros((1, count), dtype=np.float32), []
    for _ in range(SCORED_OFTEN):
        asked = Asked(
            draws.normal(size=(1, sizes.text)).astype(np.float32),
            draws.integers(0, count, (1, sizes.recent)).astype(np.int32),
            draws.normal(size=(1, sizes.features)).astype(np.float32),
        )
        began = time.perf_counter()
        all_scores(scorer, asked, found)
        taken.append(1e3 * (time.perf_counter() - began))
    return {f"p{share}": round(percentile(taken[1:], share), 4) for share in (50, 99)}


if __name__ == "__main__":
    typer.run(main)
