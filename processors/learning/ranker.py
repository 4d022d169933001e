"""The ranker: a bounded union of candidates, scored by their features, and "none of them".

A linear logit scores them, or gradient-boosted trees together with it: both learn from the same cases, and
which one serves is decided on sessions that neither saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.blend import Blend
from pml.processors.learning.boosted_trees import BoostedTrees
from pml.processors.learning.candidates import Probabilities
from pml.processors.learning.components import Components
from pml.processors.learning.evidence import evidence
from pml.processors.learning.features import CONTEXTS, NAMES, contexts, features, union
from pml.processors.learning.linear_scorer import LinearScorer
from pml.processors.learning.ranked_cases import Cases, cross_fitted
from pml.processors.learning.requests import Requests
from pml.processors.learning.softmax import NONE, shares
from pml.processors.learning.traces import Prefixes, TraceSet, Vectors
from pml.processors.learning.vocabulary import UNKNOWN, Ids

_ENDS = "ends."


class Scorer(Protocol):
    """What scores candidates by their features."""

    def margins(self, given: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """float64 [prefixes, places] of features [prefixes, places, `NAMES`]; that of "none" is 0."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All that it knows, for an npz without pickle."""


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """What every scorer starts from: components of all traces, and cases of them."""

    components: Components
    cases: Cases

    @classmethod
    def fit(cls, traces: TraceSet, points: Vectors, requests: Requests, seed: int) -> Basis:
        """Learn components and make cases; the arguments are those of `cross_fitted`."""
        found = cross_fitted(traces, points, requests, seed)
        return cls(Components.fit(traces, points, requests, seed), found)

    def linear(self) -> Ranker:
        """A ranker with a linear logit."""
        cases, (contexts, ended) = self.cases, self._ends()
        scorer = LinearScorer.fit(cases.features, cases.named, cases.right)
        return Ranker(self.components, scorer, LinearScorer.fit(contexts, *ended))

    def boosted(self, seed: int) -> Ranker:
        """A ranker with trees and a line together; the seed draws rows and features for each tree."""
        cases, (contexts, ended) = self.cases, self._ends()
        scorer = Blend.fit(cases.features, cases.named, cases.right, cases.folds, seed)
        return Ranker(self.components, scorer, BoostedTrees.fit(contexts, *ended, seed))

    def _ends(self) -> tuple[NDArray[np.float32], tuple[NDArray[np.bool_], NDArray[np.int64]]]:
        """Each prefix with one candidate, the end: its context, that it is there, and whether it came."""
        contexts = np.concatenate((self.cases.contexts, self.cases.ended))[:, None]
        came = np.full(len(contexts), NONE)
        came[len(self.cases.contexts) :] = 0
        return contexts, (np.ones((len(contexts), 1), dtype=np.bool_), came)


@dataclass(frozen=True, slots=True, eq=False)
class Ranker:
    """Components, what scores the candidates that they name, and what scores the end of a trace."""

    components: Components
    scorer: Scorer
    ends: Scorer

    def candidates(self, prefixes: Prefixes, requests: Requests) -> tuple[Ids, Probabilities]:
        """The candidates of each prefix, int32 [prefixes, places] and float64 likewise, unordered.

        How likely one comes is how likely the trace goes on × how likely it comes then.
        """
        found = evidence(self.components, prefixes, requests)
        items = union(found)
        given = features(found, items).astype(np.float32)
        ending = shares(
            self.ends.margins(contexts(found, items, given)[:, None]), np.ones((len(items), 1), bool)
        )
        return items, shares(self.scorer.margins(given), items != UNKNOWN) * (1 - ending)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Those of the scorers and of the components, and `features` [1], how many there are."""
        told = {"features": np.array([len(NAMES)])}
        told |= {f"{_ENDS}{name}": array for name, array in self.ends.to_arrays().items()}
        return told | self.scorer.to_arrays() | self.components.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Ranker:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit, or features are others: train the model again.
        """
        if "features" not in arrays or arrays["features"].tolist() != [len(NAMES)]:
            raise ValueError("the model knows other features than this version: train it again")
        boosted = "tree_roots" in arrays
        ends = {name.removeprefix(_ENDS): array for name, array in arrays.items() if name.startswith(_ENDS)}
        return cls(
            Components.from_arrays(arrays),
            (Blend if boosted else LinearScorer).from_arrays(arrays, len(NAMES)),
            (BoostedTrees if boosted else LinearScorer).from_arrays(ends, CONTEXTS),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A ranker with the texts that prefixes name: a `Predictor`."""

    ranker: Ranker
    requests: Requests

    @property
    def size(self) -> int:
        """That of its vocabulary."""
        return len(self.ranker.components.points)

    def probabilities(self, prefixes: Prefixes) -> Probabilities:
        """float64 [prefixes, size]; 0 of what is no candidate, and what none of them gets is left out."""
        items, given = self.ranker.candidates(prefixes, self.requests)
        found = np.zeros((len(prefixes), self.size))
        np.put_along_axis(found, items, given, axis=1)
        found[:, UNKNOWN] = 0
        return found
