"""`python -m benchmarks.discovery`: how well intents find their tools, beside plain baselines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.discovery.measure import FUSED, OURS, measured
from benchmarks.discovery.speed import SIZES, crossover, latency
from benchmarks.discovery.table import show
from benchmarks.figures import Bound, Figure
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import WIDTH, Result
from pml.processors.memory.embedding import Embedding
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

NAME = "discovery"
SEED = 1
# Of each set, at most; metatool_toole alone has more.
CASES, QUICK_CASES = 3_000, 100


def main(
    seed: Annotated[int, typer.Option(min=0, help="What cases, folds and resamples are drawn with.")] = SEED,
    quick: Annotated[bool, typer.Option("--quick", help="Few intents of each set: to develop with.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the tables.")] = False,
) -> None:
    """Measure discovery on the data sets that PML_DATASETS names.

    Exit code 0 whatever the figures are. A quick run keeps nothing.

    Examples: python -m benchmarks.discovery · python -m benchmarks.discovery --quick
    """
    folder = datasets_place()
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others = OthersWatch()
    with planned(NAME, 1, seed) as plan:
        facts = _facts(plan, folder, WordLlamaEmbedding(), quick)
        result = Result.of(NAME, _figures(facts), plan, others, facts)
    if not quick:
        result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    show(facts, console)
    console.print(
        f"seed {seed}, commit {result.commit}, others took {result.others_share:.0%}", highlight=False
    )


def _facts(plan: Plan, folder: Path, embedding: Embedding, quick: bool) -> dict[str, Any]:
    facts = measured(plan, folder, embedding, QUICK_CASES if quick else CASES)
    plan.say("times")
    facts["latency"] = latency(folder, embedding, plan.seed)
    facts["crossover"] = crossover(folder, embedding, plan.seed, SIZES[:1] if quick else SIZES)
    return facts


def _figures(facts: dict[str, Any]) -> list[Figure]:
    """NDCG at 10 of PML and of the fused baseline; the mean must not be below it."""
    named = [
        (row["name"], {way: means["ndcg_10"] for way, means in row["ways"].items()}) for row in facts["sets"]
    ]
    rows = [*named, ("mean", facts["mean"]["ndcg_10"])]
    return [
        Figure(
            name, "NDCG@10", (ways[OURS],), (ways[FUSED],), Bound("at least", 1) if name == "mean" else None
        )
        for name, ways in rows
    ]


if __name__ == "__main__":
    typer.run(main)
