"""Recall and NDCG of a ranking, and how sure a difference is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DEPTH = 10
_DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quality:
    """Recall at 1, 5, 10 and NDCG at 10 of each case."""

    recall: dict[int, Column]
    ndcg: Column

    def means(self) -> dict[str, float]:
        """The four means, as the table shows them."""
        recall = {f"recall_{depth}": round(float(found.mean()), 4) for depth, found in self.recall.items()}
        return recall | {"ndcg_10": round(float(self.ndcg.mean()), 4)}


def quality(ranked: Sequence[Sequence[int]], right: Sequence[frozenset[int]]) -> Quality:
    """How good rankings are: the first ten documents of each case, the best first."""
    hits = np.zeros((len(ranked), DEPTH))
    for row, found, wanted in zip(hits, ranked, right, strict=True):
        row[: len(found[:DEPTH])] = [number in wanted for number in found[:DEPTH]]
    sizes = np.array([len(wanted) for wanted in right])
    best = np.cumsum(_DISCOUNTS)[np.minimum(sizes, DEPTH) - 1]
    recall = {depth: hits[:, :depth].sum(axis=1) / sizes for depth in (1, 5, DEPTH)}
    return Quality(recall, hits @ _DISCOUNTS / best)


def ranked(scores: NDArray[np.float32]) -> list[list[int]]:
    """The first ten of each row, the best first, of equal ones by number."""
    return [np.argsort(-row, kind="stable")[:DEPTH].tolist() for row in scores]
