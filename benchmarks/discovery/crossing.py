"""PML's own index over the folds of a data set: each case with only other folds as its past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery.graph import learned_links
from benchmarks.discovery.measures import DEPTH
from benchmarks.discovery.sets import FOLDS, DataSet
from pml.processors.discovery.fitting import Asked
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.nearness import Numbers
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.question import Question
from pml.processors.discovery.ranking import DEFAULT, SIGNALS, TEXT_SIGNALS, Signals, Weights, evidence
from pml.processors.discovery.tool_graph import page_ranks

# Kept of each case, the best by the weights that PML ships; what lies below never comes among the first ten.
KEPT = 150
# Learned from, of each case and of each set: the loss hardly changes with more.
LEARNED_CANDIDATES = 50
LEARNED_CASES = 200
HISTORY = slice(len(TEXT_SIGNALS), len(SIGNALS))


@dataclass(frozen=True, slots=True)
class Seen:
    """The signals of a case's candidates, and which of them are right."""

    numbers: Numbers
    signals: Signals
    right: NDArray[np.bool_]
    priors: NDArray[np.float64]

    def ranked(self, weights: Weights, text_only: bool = False) -> list[int]:
        """The first ten, the best first; the text alone knows no standing."""
        signals = self.signals[:, : HISTORY.start] if text_only else self.signals
        scores = evidence(signals, weights) + (0 if text_only else self.priors)
        order = np.argsort(-scores, kind="stable")[:DEPTH]
        return [int(number) for number in self.numbers[order]]


def crossed(
    index: DiscoveryIndex, data: DataSet, asked: Sequence[Question], fold: NDArray[np.int64]
) -> list[Seen]:
    """Each case as the index sees it that remembers the cases of the other folds, with their tool graph."""
    found: dict[int, Seen] = {}
    for held in range(FOLDS):
        past = [case for case, of in zip(data.cases, fold, strict=True) if of != held]
        index.remember([Past(case.intent, case.tools) for case in past])
        links = learned_links(case.tools for case in past)
        index.link(links)
        index.rate({name: Standing(page_rank=rank) for name, rank in page_ranks(links).items()})
        for place in np.flatnonzero(fold == held).tolist():
            found[place] = _seen(index, asked[place], data.cases[place].right)
    return [found[place] for place in range(len(data.cases))]


def learnable(cases: Sequence[Seen]) -> list[Asked]:
    """What weights are learned from: cases with something right among their candidates."""
    asked = (Asked(seen.signals[:LEARNED_CANDIDATES], seen.right[:LEARNED_CANDIDATES]) for seen in cases)
    return [each for each in asked if each.right.any()][:LEARNED_CASES]


def _seen(index: DiscoveryIndex, asked: Question, right: frozenset[int]) -> Seen:
    snapshot = index.snapshot()
    numbers, signals = snapshot.signals(asked, DEFAULT)
    best = np.argsort(-evidence(signals, DEFAULT), kind="stable")[:KEPT]
    kept = numbers[best]
    known = np.isin(kept, sorted(right))
    return Seen(kept, signals[best].astype(np.float32), known, snapshot.priors[kept])
