"""Every learner of the table, and what it needs to be fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pml.processors.learning.candidates import Predictor
from pml.processors.learning.cosine import Cosine
from pml.processors.learning.discounting import Discounting
from pml.processors.learning.markov import Markov
from pml.processors.learning.nearest_intents import NearestIntents
from pml.processors.learning.popularity import Popularity
from pml.processors.learning.ranker import Ranker, Reading
from pml.processors.learning.requests import Requests
from pml.processors.learning.success_prior import SuccessPrior
from pml.processors.learning.traces import TraceSet, Vectors


@dataclass(frozen=True, slots=True)
class Given:
    """Training traces, points of the vocabulary's descriptions, all visible texts, and the seed."""

    traces: TraceSet
    points: Vectors
    requests: Requests
    seed: int

    @property
    def size(self) -> int:
        """That of the vocabulary."""
        return len(self.points)

    @property
    def texts(self) -> Vectors:
        """Points of the visible texts."""
        return self.requests.points


Fit = Callable[[Given], Predictor]

COUNTING: Mapping[str, Fit] = {
    "popularity": lambda given: Popularity.fit(given.traces, given.size),
    "success prior": lambda given: SuccessPrior.fit(given.traces, given.size),
    "Markov 1": lambda given: Markov.fit(given.traces, given.size, 1),
    "Markov 2": lambda given: Markov.fit(given.traces, given.size, 2),
    "discounting": lambda given: Discounting.fit(given.traces, given.size),
}
TEXT: Mapping[str, Fit] = {
    "cosine": lambda given: Cosine.fit(given.traces, given.points, given.texts),
    "nearest intents": lambda given: NearestIntents.fit(given.traces, given.size, given.texts),
}
RANKER: Mapping[str, Fit] = {
    "ranker": lambda given: Reading(
        Ranker.fit(given.traces, given.points, given.requests, given.seed), given.requests
    ),
}
LEARNERS: Mapping[str, Fit] = {**COUNTING, **TEXT, **RANKER}
