"""SHGAT: tools and capabilities scored for what is asked, after messages along what contains what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.attention.descent import Graph, scorer_of
from pml.processors.learning.attention.head import Asked, Scorer, all_scores
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.parameters import Floats, Sizes, views
from pml.processors.learning.attention.samples import read
from pml.processors.learning.candidates import Probabilities, fitting
from pml.processors.learning.traces import Prefixes, Vectors
from pml.processors.learning.vocabulary import UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """A trained model: a `Learned` predictor. `training.train` makes one.

    `size` of the vocabulary; `basis` float32 [dimensions, text] reads points of texts; `points` float32
    [nodes, text] are those of the descriptions; `own` float32 [nodes] is 0 where nothing was learned of a
    node itself; `flat` float32 are the parameters.
    """

    size: int
    sizes: Sizes
    basis: Floats
    points: Floats
    membership: Membership
    own: Floats
    flat: Floats
    scorer: Scorer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parameters = views(self.flat, self.sizes)
        graph = Graph(self.points, self.membership.upward(), self.membership.downward())
        object.__setattr__(self, "scorer", scorer_of(parameters, graph, self.own))

    def scores(self, asked: Asked) -> Floats:
        """float32 [prefixes, size]: of each item, how well it fits."""
        found = np.zeros((len(asked.texts), self.size), dtype=np.float32)
        all_scores(self.scorer, asked, found)
        return found

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]: softmax of the scores; 0 of `UNKNOWN`.

        Raises:
            ValueError: the prefixes have other features than those it was trained with.
        """
        asked = read(prefixes, self.basis, self.sizes.recent, self.sizes.features)
        found = self.scores(asked).astype(np.float64)
        found[:, UNKNOWN] = -np.inf
        odds = np.exp(found - np.maximum(found.max(axis=1, keepdims=True, initial=-np.inf), -1e30))
        return np.asarray(odds / np.maximum(odds.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`size` [1], `sizes` [6], `basis`, `points`, `own`, `parameters`, and those of the membership."""
        return {
            "size": np.array([self.size]),
            "sizes": np.array(astuple(self.sizes)),
            "basis": self.basis,
            "points": self.points,
            "own": self.own,
            "parameters": self.flat,
        } | self.membership.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        sizes = fitting(arrays, "sizes", np.int64, 1)
        if len(sizes) != len(Sizes.__dataclass_fields__):
            raise ValueError("the model has other sizes than this version knows: train it again")
        return cls(
            int(fitting(arrays, "size", np.int64, 1)[0]),
            Sizes(*sizes.tolist()),
            fitting(arrays, "basis", np.float32, 2),
            fitting(arrays, "points", np.float32, 2),
            Membership.from_arrays(arrays),
            fitting(arrays, "own", np.float32, 1),
            fitting(arrays, "parameters", np.float32, 1),
        )


def basis_of(points: Vectors, texts: Vectors, most: int) -> Floats:
    """float32 [dimensions, ≤ most]: directions in which descriptions and texts lie, the widest first.

    What is left out of products is the least that any so many directions can leave out (Eckart & Young).
    """
    both = np.concatenate((points, texts)).astype(np.float64)
    spread = both.T @ both
    _, directions = np.linalg.eigh(spread)
    return np.ascontiguousarray(directions[:, ::-1][:, :most], dtype=np.float32)


def points_of(points: Floats, membership: Membership) -> Floats:
    """float32 [nodes, text]: descriptions, and for hyperedges without one the mean of their members'."""
    found = np.zeros((membership.nodes, points.shape[1]), dtype=np.float32)
    found[: len(points)] = points
    messages = membership.upward()
    for node in messages.order:
        members = messages.senders[messages.offsets[node] : messages.offsets[node + 1]]
        if len(members) and not found[node].any():
            found[node] = found[members].mean(axis=0)
    return found
