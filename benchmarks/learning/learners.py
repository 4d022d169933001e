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
from pml.processors.learning.success_prior import SuccessPrior
from pml.processors.learning.traces import TraceSet, Vectors


@dataclass(frozen=True, slots=True)
class Given:
    """Training traces; points of the vocabulary's descriptions and of all visible texts."""

    traces: TraceSet
    points: Vectors
    texts: Vectors

    @property
    def size(self) -> int:
        """That of the vocabulary."""
        return len(self.points)


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
LEARNERS: Mapping[str, Fit] = {**COUNTING, **TEXT}
