"""Gradient-boosted trees (Friedman 2001) over the features of candidates; xgboost grows them.

The loss is that of a softmax over the candidates of a prefix and "none of them", which has 0. What is kept is
plain arrays, and who predicts needs no xgboost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.learning.candidates import fitting
from pml.processors.learning.compiled import compiled
from pml.processors.learning.grouping import Places
from pml.processors.learning.softmax import NONE, shares

Column = NDArray[np.float64]
Singles = NDArray[np.float32]

SETTINGS: Mapping[str, Any] = {
    "tree_method": "hist",
    "max_bin": 64,
    "max_depth": 6,
    "min_child_weight": 1.0,
    "reg_lambda": 5.0,
    "subsample": 0.5,
    "colsample_bytree": 0.4,
    "base_score": 0.0,
    "disable_default_eval_metric": True,
    # One thread adds up in one order: the same data and seed make the same trees.
    "nthread": 1,
    "verbosity": 0,
}


@dataclass(frozen=True, slots=True)
class Growth:
    """So many forests whose mean is taken, each of so many rounds of that learning rate; `settings` are those
    of xgboost that are others than `SETTINGS`."""

    forests: int
    rounds: int
    rate: float
    settings: Mapping[str, Any] = field(default_factory=dict)


ALONE = Growth(forests=1, rounds=200, rate=0.05)
_LEAF = -1
# A candidate whose share is 0 or 1 would have no curvature, and its leaf no bound.
_CURVATURE_LEAST = 1e-6


class _Nodes(NamedTuple):
    """The columns of `BoostedTrees`, as compiled code takes them."""

    roots: Places
    columns: NDArray[np.int32]
    values: Singles
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class BoostedTrees:
    """Nodes of all trees one after another; those of tree i begin at `roots[i]`, int64.

    `columns` int32: the feature that a node asks for, −1 in a leaf; below `values` float32 it goes to
    `lefts`, else to `rights`, int32, numbers of nodes; in a leaf `values` is what the tree says.
    """

    roots: Places
    columns: NDArray[np.int32]
    values: Singles
    lefts: NDArray[np.int32]
    rights: NDArray[np.int32]

    @classmethod
    def fit(
        cls,
        given: NDArray[np.floating[Any]],
        named: NDArray[np.bool_],
        right: Places,
        seed: int,
        growth: Growth = ALONE,
    ) -> BoostedTrees:
        """Grow trees.

        Args:
            given: [prefixes, places, features], of candidates.
            named: bool [prefixes, places]: which places have a candidate.
            right: int64 [prefixes]: the place of what came, or `NONE`.
            seed: draws rows and features for each tree.
            growth: how many trees.
        """
        if not named.any():
            return cls.of([])
        # Imported where it is needed: who only predicts does not wait for it.
        import xgboost

        matrix = xgboost.DMatrix(np.ascontiguousarray(given[named], dtype=np.float32), nthread=1)
        wanted = np.zeros(named.shape)
        told = np.flatnonzero(right != NONE)
        wanted[told, right[told]] = 1

        def slopes(margins: Singles, _: object) -> tuple[Column, Column]:
            sums = np.zeros(named.shape)
            sums[named] = margins
            found = shares(sums, named)
            return (found - wanted)[named], np.maximum((found * (1 - found))[named], _CURVATURE_LEAST)

        grown = []
        for number in range(growth.forests):
            own = {"eta": growth.rate, "seed": seed * growth.forests + number}
            settings = {**SETTINGS, **growth.settings, **own}
            booster = xgboost.train(settings, matrix, growth.rounds, obj=slopes)
            grown += orjson.loads(booster.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
        found = cls.of(grown)
        return replace(
            found,
            values=np.where(found.columns == _LEAF, found.values / np.float32(growth.forests), found.values),
        )

    @classmethod
    def of(cls, grown: list[Mapping[str, Any]]) -> BoostedTrees:
        """The trees of xgboost's own JSON."""
        sizes = [len(tree["left_children"]) for tree in grown]
        roots = np.concatenate(([0], np.cumsum(sizes)))[: len(sizes)].astype(np.int64)
        of = np.repeat(roots, sizes)
        lefts, rights, columns = (
            np.concatenate(
                [np.asarray(tree[name], dtype=np.int64) for tree in grown] or [np.zeros(0, np.int64)]
            )
            for name in ("left_children", "right_children", "split_indices")
        )
        values = np.concatenate([np.asarray(tree["split_conditions"], np.float32) for tree in grown] or [_NO])
        leaf = lefts == _LEAF
        return cls(
            roots,
            np.where(leaf, _LEAF, columns).astype(np.int32),
            values,
            np.where(leaf, _LEAF, lefts + of).astype(np.int32),
            np.where(leaf, _LEAF, rights + of).astype(np.int32),
        )

    def margins(self, given: NDArray[np.floating[Any]]) -> Column:
        """float64 [prefixes, places]: what all trees together say of candidates' features."""
        rows = np.ascontiguousarray(given, dtype=np.float32)
        found = np.zeros(rows.shape[:2])
        nodes = _Nodes(self.roots, self.columns, self.values, self.lefts, self.rights)
        _walked(rows.reshape(-1, rows.shape[2]), nodes, found.reshape(-1))
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Its columns, as `tree_roots`."""
        return {f"tree_{name}": getattr(self, name) for name, _ in _COLUMNS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], features: int) -> BoostedTrees:
        """What `to_arrays` wrote, of so many features.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        found = cls(*(fitting(arrays, f"tree_{name}", dtype, 1) for name, dtype in _COLUMNS))
        count = len(found.columns)
        sound = all(len(each) == count for each in (found.values, found.lefts, found.rights))
        if not sound or _outside(found, features):
            raise ValueError("the trees of the model do not fit: train it again")
        return found


_COLUMNS = (
    ("roots", np.int64),
    ("columns", np.int32),
    ("values", np.float32),
    ("lefts", np.int32),
    ("rights", np.int32),
)
_NO = np.zeros(0, dtype=np.float32)


def _outside(found: BoostedTrees, features: int) -> bool:
    """A node asks for a feature, or leads to a node, that is not there, or back: a walk might never end."""
    nodes = np.arange(len(found.columns))
    inner = found.columns != _LEAF
    ahead = [bool(np.all(each[inner] > nodes[inner])) for each in (found.lefts, found.rights)]
    inside = all(
        bool(np.all(each < len(nodes))) for each in (found.lefts, found.rights, found.roots)
    ) and bool(np.all(found.roots >= 0))
    return not (all(ahead) and inside and bool(np.all((found.columns >= _LEAF) & (found.columns < features))))


@compiled
def _walked(rows: Singles, nodes: _Nodes, found: Column) -> None:
    """Add what the leaf of each tree says, for rows float32 [n, features], to `found` float64 [n]."""
    for row in range(len(rows)):
        for root in nodes.roots:
            node = root
            while nodes.columns[node] >= 0:
                below = rows[row, nodes.columns[node]] < nodes.values[node]
                node = nodes.lefts[node] if below else nodes.rights[node]
            found[row] += nodes.values[node]
