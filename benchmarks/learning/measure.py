"""Next-tool prediction: every learner on every set, by folds over groups of near-duplicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.learners import COUNTING, LEARNERS, RANKER, TEXT, Given
from benchmarks.learning.sets import RecordedSet, descriptions_of, recorded
from pml.processors.learning.candidates import candidates
from pml.processors.learning.evaluation import Quality, quality
from pml.processors.learning.intervals import interval, paired_interval, resampled_means
from pml.processors.learning.requests import read_requests
from pml.processors.learning.splits import folds, leaks
from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary
from pml.processors.memory.embedding import Embedding

FOLDS = 5
# hit@1 and hit@3 of the best counting that throw-away code reached (PREDICTION.md), to compare with.
REACHED: Mapping[str, tuple[float, float]] = {
    "n8n": (0.182, 0.336),
    "galaxy_iwc": (0.145, 0.216),
    "seal_tools": (0.007, 0.011),
    "toollinkos": (0.537, 0.663),
    "nestful": (0.320, 0.430),
    "tau": (0.645, 0.860),
    "tau_sessions": (0.505, 0.731),
    "bfcl_multi_turn": (0.523, 0.699),
    "api_bank": (0.374, 0.532),
}


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What all learners reached on one set: a value for each call that was asked for."""

    data: RecordedSet
    ways: Mapping[str, Quality]
    clusters: NDArray[np.int64]
    unseen: NDArray[np.bool_]


def judged(folder: Path, name: str, embedding: Embedding, seed: int, done: Callable[[], None]) -> Judged:
    """Every call but the first of a trace is asked for once, by learners that saw no trace of its group.

    `done` is called after each fold.
    """
    data = recorded(folder, name)
    fold = folds(data.groups, FOLDS, seed)
    if len(leaks(data.groups, fold)):
        raise RuntimeError(f"{name}: near-duplicates lie in several folds")
    rounds = []
    for held in range(FOLDS):
        rounds.append(_one_fold(data, fold, held, embedding, seed))
        done()
    ways = {way: _joined([found[0][way] for found in rounds]) for way in rounds[0][0]}
    clusters, unseen = (np.concatenate([found[part] for found in rounds]) for part in (1, 2))
    return Judged(data, ways, clusters, unseen)


def _one_fold(
    data: RecordedSet, fold: NDArray[np.int64], held: int, embedding: Embedding, seed: int
) -> tuple[dict[str, Quality], NDArray[np.int64], NDArray[np.bool_]]:
    """The quality of each learner on the traces held out, their groups, and which tools were never called."""
    training = np.flatnonzero(fold != held)
    called = {tool for row in training for tool in data.calls[row]}
    vocabulary = Vocabulary.of({document.id for document in data.documents} | called)
    traces = data.traces(vocabulary)
    descriptions = descriptions_of(vocabulary, data.documents)
    requests = read_requests(data.texts, descriptions, embedding)
    given = Given(traces.selected(training), embedding.embed(descriptions), requests, seed)
    held_out = traces.selected(np.flatnonzero(fold == held))
    asked = held_out.positions()
    prefixes, targets = held_out.prefixes(asked, requests.points), held_out.items[asked]
    ways = {name: quality(candidates(fit(given), prefixes), targets) for name, fit in LEARNERS.items()}
    seen = np.isin(targets, given.traces.items) & (targets != UNKNOWN)
    return ways, held_out.groups[held_out.owners[asked]], ~seen


def _joined(found: list[Quality]) -> Quality:
    return Quality(
        *(np.concatenate([getattr(each, column.name) for each in found]) for column in fields(Quality))
    )


def row_of(found: Judged, seed: int) -> dict[str, Any]:
    """A set's rows of the table, as JSON-serialisable values."""
    ways = {name: _told(each, found.clusters, seed) for name, each in found.ways.items()}
    best = max(COUNTING, key=lambda name: (ways[name]["hit_1"]["mean"], ways[name]["hit_3"]["mean"]))
    return {
        "name": found.data.name,
        "traces": len(found.data.calls),
        "groups": len(np.unique(found.data.groups)),
        "asked": len(found.clusters),
        "unseen": round(float(found.unseen.mean()), 4),
        "visible": found.data.visible,
        "ways": ways,
        "best_counting": best,
        "reached_before": dict(zip(("hit_1", "hit_3"), REACHED[found.data.name], strict=True)),
        "gains": {name: _gain(found, name, best, seed) for name in (*TEXT, *RANKER)},
    }


def _told(found: Quality, clusters: NDArray[np.int64], seed: int) -> dict[str, Any]:
    columns = (found.hit_1, found.hit_3, found.reciprocal_rank, found.brier)
    names = found.means()
    return {
        name: {
            "mean": round(names[name], 4),
            "interval": _rounded(interval(resampled_means(column, clusters, seed))),
        }
        for name, column in zip(names, columns, strict=True)
    }


def _gain(found: Judged, name: str, best: str, seed: int) -> dict[str, Any]:
    """How much more often the first candidate of a learner is right than that of the best counting."""
    one, other = found.ways[name].hit_1, found.ways[best].hit_1
    return {
        "hit_1": round(float(one.mean() - other.mean()), 4),
        "interval": _rounded(paired_interval(one, other, found.clusters, seed)),
    }


def _rounded(ends: tuple[float, float]) -> tuple[float, float]:
    return round(ends[0], 4), round(ends[1], 4)
