"""All data sets, all ways to rank: figures, intervals, and the weights that were learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery.baselines import cosines, fused, tf_idf
from benchmarks.discovery.crossing import Seen, crossed, learnable
from benchmarks.discovery.measures import Quality, quality, ranked
from benchmarks.discovery.sets import FOLDS, NAMES, DataSet, folds, groups, load
from benchmarks.plan import Plan
from pml.processors.discovery.fitting import fit
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.question import question
from pml.processors.discovery.ranking import Weights
from pml.processors.learning.intervals import interval, resampled_means
from pml.processors.memory.embedding import Embedding

FUSED, SHORT = "fused", "fused, short"
BASELINES = ("TF-IDF", "embedding", FUSED, SHORT)
OURS, TEXT_ONLY, UNSEEN = "PML", "PML, no past", "PML, weights of other sets"


@dataclass(frozen=True, slots=True)
class Played:
    """One data set with what does not depend on weights."""

    data: DataSet
    groups: NDArray[np.int64]
    folds: NDArray[np.int64]
    seen: Sequence[Seen]
    ways: Mapping[str, Quality]

    @property
    def right(self) -> list[frozenset[int]]:
        """What is right, case by case."""
        return [case.right for case in self.data.cases]


def measured(plan: Plan, folder: Path, embedding: Embedding, most: int) -> dict[str, Any]:
    """Rows of the table, the differences with their intervals, and the weights of all cases together."""
    played = []
    for name in NAMES:
        plan.say(name)
        played.append(_played(load(folder, name, most, plan.seed), embedding, plan.seed))
    plan.say("learning")
    ways = [dict(one.ways) | own for one, own in zip(played, _own(played), strict=True)]
    return {
        "sets": [_row(one, found, plan.seed) for one, found in zip(played, ways, strict=True)],
        "mean": _mean_row(played, ways, plan.seed),
        "weights": asdict(fit([learnable(one.seen) for one in played])),
    }


def _played(data: DataSet, embedding: Embedding, seed: int) -> Played:
    intents = [case.intent for case in data.cases]
    points = embedding.embed(intents)
    of = groups(data.cases, points)
    fold = folds(of, seed)
    index = DiscoveryIndex(embedding)
    index.put(data.documents)
    seen = crossed(index, data, [question(intent, embedding) for intent in intents], fold)
    return Played(data, of, fold, seen, _baselines(data, intents, embedding))


def _baselines(data: DataSet, intents: Sequence[str], embedding: Embedding) -> dict[str, Quality]:
    """On the text that PML compares, and fused on names and descriptions alone."""
    points, right = embedding.embed(intents), [case.right for case in data.cases]
    whole = [document.text for document in data.documents]
    lexical, near = tf_idf(whole, intents), cosines(embedding.embed(whole), points)
    short = [_short(document.name, document.text) for document in data.documents]
    brief = fused(tf_idf(short, intents), cosines(embedding.embed(short), points))
    ways = zip(BASELINES, (lexical, near, fused(lexical, near), brief), strict=True)
    return {name: quality(ranked(scores), right) for name, scores in ways}


def _own(played: Sequence[Played]) -> list[dict[str, Quality]]:
    """PML's rankings of each set: weights of other folds, without the past, weights of other sets."""
    of_folds = [_learned(played, held) for held in range(FOLDS)]
    found = []
    for one in played:
        others = fit([learnable(other.seen) for other in played if other is not one])
        weights = [of_folds[held] for held in one.folds]
        found.append(
            {
                OURS: _ranked_by(one, weights),
                TEXT_ONLY: _ranked_by(one, weights, text_only=True),
                UNSEEN: _ranked_by(one, [others] * len(one.seen)),
            }
        )
    return found


def _learned(played: Sequence[Played], held: int) -> Weights:
    rows = [[seen for seen, of in zip(one.seen, one.folds, strict=True) if of != held] for one in played]
    return fit([learnable(cases) for cases in rows])


def _ranked_by(one: Played, weights: Sequence[Weights], text_only: bool = False) -> Quality:
    found = [seen.ranked(each, text_only) for seen, each in zip(one.seen, weights, strict=True)]
    return quality(found, one.right)


def _row(one: Played, ways: Mapping[str, Quality], seed: int) -> dict[str, Any]:
    return {
        "name": one.data.name,
        "documents": len(one.data.documents),
        "cases": len(one.data.cases),
        "groups": len(np.unique(one.groups)),
        "ways": {name: found.means() for name, found in ways.items()},
        "differences": {
            name: _difference([_resampled(one, ways, name, FUSED, seed)]) for name in (OURS, TEXT_ONLY)
        },
    }


def _resampled(
    one: Played, ways: Mapping[str, Quality], name: str, against: str, seed: int
) -> NDArray[np.float64]:
    return resampled_means(ways[name].ndcg - ways[against].ndcg, one.groups, seed)


def _mean_row(played: Sequence[Played], ways: Sequence[Mapping[str, Quality]], seed: int) -> dict[str, Any]:
    """Each set counts the same."""
    pairs = list(zip(played, ways, strict=True))
    return {
        "ndcg_10": {
            name: round(float(np.mean([each[name].ndcg.mean() for each in ways])), 4) for name in ways[0]
        },
        "differences": {
            f"{name} − {against}": _difference(
                [_resampled(one, each, name, against, seed) for one, each in pairs]
            )
            for name in (OURS, TEXT_ONLY, UNSEEN)
            for against in (FUSED, SHORT)
        },
    }


def _difference(resampled: Sequence[NDArray[np.float64]]) -> dict[str, Any]:
    means = np.mean(resampled, axis=0)
    return {
        "mean": round(float(means.mean()), 4),
        "interval": tuple(round(end, 4) for end in interval(means)),
    }


def _short(name: str, text: str) -> str:
    """A text up to the end of its description: name, and what follows it."""
    return ". ".join(text.split(". ")[: 2 + name.count(". ")])
