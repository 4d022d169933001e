"""Every learner of the next item by name: how it is fitted, asked, and read again from arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from pml.processors.learning.attention.fitting import fit_attention, fit_head
from pml.processors.learning.attention.membership import Contained
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.attention.training import DEFAULTS
from pml.processors.learning.candidates import Learned, Predictor
from pml.processors.learning.cosine import Cosine
from pml.processors.learning.discounting import Discounting
from pml.processors.learning.markov import Markov
from pml.processors.learning.nearest_intents import NearestIntents
from pml.processors.learning.popularity import Popularity
from pml.processors.learning.ranker import Basis, Ranker, Reading
from pml.processors.learning.requests import Requests
from pml.processors.learning.success_prior import SuccessPrior
from pml.processors.learning.traces import TraceSet, Vectors


@dataclass(frozen=True, eq=False)
class Given:
    """Training traces, points of the vocabulary's descriptions, all visible texts, the seed, and what
    capabilities contain, by number."""

    traces: TraceSet
    points: Vectors
    requests: Requests
    seed: int
    contained: Contained = field(default_factory=dict)

    @property
    def size(self) -> int:
        """That of the vocabulary."""
        return len(self.points)

    @cached_property
    def basis(self) -> Basis:
        """What rankers start from, made once for all of them."""
        return Basis.fit(self.traces, self.points, self.requests, self.seed)


Learnt = Learned | Ranker


@dataclass(frozen=True, slots=True)
class Learner:
    """How one is fitted, and made again of the arrays that it told.

    `restored` raises ValueError where an array is missing or does not fit: train the model again.
    """

    fit: Callable[[Given], Learnt]
    restored: Callable[[Mapping[str, NDArray[Any]]], Learnt]


# They count, or compare texts, and weigh nothing that was learned: what a learned part has to beat. Of two
# that are equally good the first serves, so the simpler ones come first.
BASELINES: Mapping[str, Learner] = {
    "popularity": Learner(lambda given: Popularity.fit(given.traces, given.size), Popularity.from_arrays),
    "success_prior": Learner(
        lambda given: SuccessPrior.fit(given.traces, given.size), SuccessPrior.from_arrays
    ),
    "markov_1": Learner(lambda given: Markov.fit(given.traces, given.size, 1), Markov.from_arrays),
    "markov_2": Learner(lambda given: Markov.fit(given.traces, given.size, 2), Markov.from_arrays),
    "discounting": Learner(lambda given: Discounting.fit(given.traces, given.size), Discounting.from_arrays),
    "cosine": Learner(
        lambda given: Cosine.fit(given.traces, given.points, given.requests.points, given.seed),
        Cosine.from_arrays,
    ),
}
LEARNED: Mapping[str, Learner] = {
    "nearest": Learner(
        lambda given: NearestIntents.fit(given.traces, given.size, given.requests.points),
        NearestIntents.from_arrays,
    ),
    "ranker": Learner(lambda given: given.basis.linear(), Ranker.from_arrays),
    "boosted": Learner(lambda given: given.basis.boosted(given.seed), Ranker.from_arrays),
}
# Only where somebody asks for them: they cost about as much as all others together (benchmarks/README.md).
ATTENTIVE: Mapping[str, Learner] = {
    "attention": Learner(
        lambda given: fit_attention(
            given.traces, given.points, given.requests.points, given.seed, given.contained
        ),
        Attention.from_arrays,
    ),
    "attention_head": Learner(
        lambda given: fit_head(given.traces, given.points, given.requests.points, given.seed),
        Attention.from_arrays,
    ),
}
# The first of these, trained with prioritised replay (spike §9): only where it is named. It learns the same,
# and with one more to compare each other has to be better by more.
REPLAYED: Mapping[str, Learner] = {
    "attention_prioritised": Learner(
        lambda given: fit_attention(
            given.traces,
            given.points,
            given.requests.points,
            given.seed,
            given.contained,
            settings=replace(DEFAULTS, prioritised=True),
        ),
        Attention.from_arrays,
    ),
}
# Those that are compared unless more is asked for, and all that there are.
USUAL: Mapping[str, Learner] = {**BASELINES, **LEARNED}
LEARNERS: Mapping[str, Learner] = {**USUAL, **ATTENTIVE, **REPLAYED}


def asked(learnt: Learnt, requests: Requests) -> Predictor:
    """What was learned, with the texts that the prefixes name."""
    return Reading(learnt, requests) if isinstance(learnt, Ranker) else learnt
