"""`python -m benchmarks.discovery.matching`: how far to believe a match's confidence, and its weights."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import orjson
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.datasets import VARIABLE, datasets_place
from benchmarks.discovery.tenants import INTENTS_LEARNED, Tenant, asked_of, tenants
from benchmarks.discovery.tenants import NAMES as SETS
from benchmarks.figures import Bound, Figure
from benchmarks.machine import OthersWatch
from benchmarks.plan import Plan, planned
from benchmarks.report import WIDTH, Result
from pml.processors.discovery.match_fitting import Meant, fit_matching
from pml.processors.discovery.matching import MatchWeights, confidences
from pml.processors.memory.embedding import Embedding
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding

NAME = "matching"
SEED = 1
# Tenants of each size are drawn so often.
TURNS = 2
THRESHOLD = 0.70
BINS = 10
# How many intents each capability knows: its first alone, and as many as are kept.
WAYS = {"the first intent": 1, "all intents": INTENTS_LEARNED}
FIRST, ALL = WAYS

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Judged:
    """Of each intent of a set: the best confidence, whether that capability was meant, whether any was."""

    confidence: Column
    right: Column
    fits: Column

    @property
    def run(self) -> NDArray[np.bool_]:
        """Which would have run."""
        return self.confidence >= THRESHOLD


def main(
    seed: Annotated[int, typer.Option(min=0, help="What tenants are drawn with.")] = SEED,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of the tables.")] = False,
) -> None:
    """Learn a match's weights; tell how good they are on each set when learned from the others alone."""
    folder = datasets_place()
    if folder is None:
        raise SystemExit(f"{VARIABLE} names no folder: the data sets are needed")
    others = OthersWatch()
    with planned(NAME, 1, seed) as plan:
        facts = measured(played(plan, folder, WordLlamaEmbedding()))
        mean = facts["ways"][ALL]["mean"]
        brier = Figure("Brier", "score", (mean["brier"],), (mean["base"],), Bound("at most", 1))
        result = Result.of(NAME, [brier], plan, others, facts)
    result.write()
    if json:
        sys.stdout.buffer.write(orjson.dumps(result.as_dict()) + b"\n")
        return
    show(facts, Console(width=None if sys.stdout.isatty() else WIDTH))


def played(plan: Plan, folder: Path, embedding: Embedding) -> dict[str, dict[str, list[Meant]]]:
    """What the tenants of each set were asked, the same questions in each way."""
    found: dict[str, dict[str, list[Meant]]] = {way: {} for way in WAYS}
    for name in SETS:
        plan.say(name)
        drawn: list[Tenant] = []
        for turn in range(TURNS):
            drawn += tenants(folder, name, plan.seed + turn)
        for way, most in WAYS.items():
            found[way][name] = [meant for tenant in drawn for meant in asked_of(tenant, embedding, most)]
    return found


def measured(ways: Mapping[str, Mapping[str, Sequence[Meant]]]) -> dict[str, Any]:
    """Of each way figures of each set by weights of the others, reliability, and the weights of all together.

    Capabilities of one intent and of several are matched with the same weights, learned from both.
    """
    held: dict[str, dict[str, Judged]] = {way: {} for way in ways}
    for name in SETS:
        weights = fit_matching([sets[other] for sets in ways.values() for other in sets if other != name])
        for way, sets in ways.items():
            held[way][name] = _judged(sets[name], weights)
    found = {way: _told_of(judged) for way, judged in held.items()}
    precision = found[FIRST]["mean"]["precision"]
    for way, judged in held.items():
        found[way]["mean"]["recall_as_precise"] = _recall_at(list(judged.values()), precision)
    return {
        "ways": found,
        "weights": asdict(fit_matching([meant for sets in ways.values() for meant in sets.values()])),
    }


def _told_of(held: Mapping[str, Judged]) -> dict[str, Any]:
    return {
        "sets": [{"name": name, **_figures([judged])} for name, judged in held.items()],
        "mean": _figures(list(held.values())),
        "reliability": _reliability(list(held.values())),
    }


def _recall_at(judged: Sequence[Judged], precision: float | None) -> float | None:
    """The most that is found from any threshold from which no less of it is right."""
    weight = _weights(judged)
    confidence, right, fits = (
        np.concatenate([getattr(each, name) for each in judged]) for name in ("confidence", "right", "fits")
    )
    order = np.argsort(-confidence, kind="stable")
    found, run = np.cumsum((weight * right)[order]), np.cumsum(weight[order])
    enough = found / run >= (precision or 1.0) - 1e-9
    return _share(float(found[enough].max(initial=0.0)), float(weight @ fits))


def _judged(asked: Sequence[Meant], weights: MatchWeights) -> Judged:
    found = [confidences(meant.evidence, weights) for meant in asked]
    best = [int(shares.argmax()) for shares in found]
    return Judged(
        np.array([shares[at] for shares, at in zip(found, best, strict=True)]),
        np.array([meant.right[at] for meant, at in zip(asked, best, strict=True)], dtype=np.float64),
        np.array([meant.right.any() for meant in asked], dtype=np.float64),
    )


def _figures(judged: Sequence[Judged]) -> dict[str, float | int | None]:
    """Each set counts the same. `base`: the Brier score of who always says the share that is right."""
    weight = _weights(judged)
    confidence, right, fits, run = (
        np.concatenate([getattr(each, name) for each in judged])
        for name in ("confidence", "right", "fits", "run")
    )
    share = float(weight @ right)
    return {
        "asked": len(weight),
        "fits": float(weight @ fits),
        "best_right": share,
        "brier": float(weight @ (confidence - right) ** 2),
        "base": share * (1 - share),
        "run": int(run.sum()),
        "precision": _share(weight @ (right * run), weight @ run),
        "recall": _share(weight @ (right * run), weight @ fits),
    }


def _reliability(judged: Sequence[Judged]) -> list[dict[str, float | int]]:
    weight = _weights(judged)
    confidence = np.concatenate([each.confidence for each in judged])
    right = np.concatenate([each.right for each in judged])
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    found = []
    for number in range(BINS):
        inside = place == number
        if inside.any():
            of = weight[inside] / weight[inside].sum()
            found.append(
                {
                    "from": number / BINS,
                    "asked": int(inside.sum()),
                    "confidence": float(of @ confidence[inside]),
                    "right": float(of @ right[inside]),
                }
            )
    return found


def _weights(judged: Sequence[Judged]) -> Column:
    found = np.concatenate([np.full(len(each.right), 1 / len(each.right)) for each in judged])
    return found / len(judged)


def _share(part: float, whole: float) -> float | None:
    return float(part / whole) if whole else None


def show(facts: Mapping[str, Any], console: Console) -> None:
    """The tables of one run."""
    for way, found in facts["ways"].items():
        _show_way(way, found, console)
    weights = ", ".join(f"{name}={value:.2f}" for name, value in facts["weights"].items())
    console.print(f"weights of all sets: {weights}", highlight=False)


def _show_way(way: str, facts: Mapping[str, Any], console: Console) -> None:
    columns = ("asked", "fits", "best_right", "brier", "base", "run", "precision", "recall")
    title = f"which capability is meant, known by {way}, run from {THRESHOLD:g}"
    table = Table(title=title, box=box.SIMPLE, pad_edge=False)
    table.add_column("set, by weights of the others")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in (*facts["sets"], {"name": "mean of the sets", **facts["mean"]}):
        table.add_row(row["name"], *(_told(row[column]) for column in columns))
    console.print(table)
    bins = Table(title="reliability", box=box.SIMPLE, pad_edge=False)
    for column in ("from", "asked", "confidence", "right"):
        bins.add_column(column, justify="right")
    for row in facts["reliability"]:
        bins.add_row(*(_told(row[column]) for column in ("from", "asked", "confidence", "right")))
    console.print(bins)
    console.print(f"recall where as precise as with {FIRST}: {_told(facts['mean']['recall_as_precise'])}")


def _told(value: float | int | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


if __name__ == "__main__":
    typer.run(main)
