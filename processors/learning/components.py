"""What a ranker's features are counted with: predictors of their own, learned of the same traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.attention.fitting import fit_head
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.candidates import Learned, fitting
from pml.processors.learning.discounting import Discounting
from pml.processors.learning.item_habits import ItemHabits
from pml.processors.learning.later_items import LaterItems
from pml.processors.learning.like_traces import LikeTraces
from pml.processors.learning.markov import Markov
from pml.processors.learning.nearest_intents import NearestIntents
from pml.processors.learning.popularity import Popularity
from pml.processors.learning.requests import Requests
from pml.processors.learning.traces import TraceSet, Vectors
from pml.processors.learning.word_meanings import WordMeanings

COUNTED = ("popularity", "markov_1", "markov_2", "discounting", "nearest")
# What says how likely each item is next: what counts, and the attention model without messages.
LIKELY = (*COUNTED, "head")
# What says more of items than how likely they are next.
DESCRIBING = ("later", "like", "habits", "meanings")


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """What was learned of training traces, and `points` float32 [size, dimensions] of the descriptions.

    `head` scores what is asked against each item; None where nothing was called.
    """

    popularity: Popularity
    markov_1: Markov
    markov_2: Markov
    discounting: Discounting
    nearest: NearestIntents
    head: Attention | None
    later: LaterItems
    like: LikeTraces
    habits: ItemHabits
    meanings: WordMeanings
    points: Vectors

    @classmethod
    def fit(cls, traces: TraceSet, points: Vectors, requests: Requests, seed: int) -> Components:
        """Learn all of them; the traces' `texts` name rows of `requests`, the seed is the head's."""
        size, texts = len(points), requests.points
        # Rankers do not read what calls look like: it did not surely pay them (docs/guide/training.md).
        plain = replace(traces, looks=None)
        return cls(
            Popularity.fit(traces, size),
            Markov.fit(traces, size, 1),
            Markov.fit(traces, size, 2),
            Discounting.fit(traces, size),
            NearestIntents.fit(traces, size, texts),
            fit_head(plain, points, texts, seed) if len(traces.items) else None,
            LaterItems.fit(traces, size),
            LikeTraces.fit(traces, size, texts),
            ItemHabits.fit(traces, size, texts),
            WordMeanings.fit(traces, size, requests),
            points,
        )

    @property
    def parts(self) -> Mapping[str, Learned]:
        """Each of `LIKELY` that was learned, in that order."""
        found = {name: getattr(self, name) for name in LIKELY}
        return {name: part for name, part in found.items() if part is not None}

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """`points`, and the arrays of each part as `discounting.size`."""
        told: dict[str, NDArray[Any]] = {"points": self.points}
        for name, part in (*self.parts.items(), *((name, getattr(self, name)) for name in DESCRIBING)):
            told |= {f"{name}.{own}": array for own, array in part.to_arrays().items()}
        return told

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Components:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        own = {
            name: {
                each.removeprefix(f"{name}."): arrays[each] for each in arrays if each.startswith(f"{name}.")
            }
            for name in (*LIKELY, *DESCRIBING)
        }
        return cls(
            Popularity.from_arrays(own["popularity"]),
            Markov.from_arrays(own["markov_1"]),
            Markov.from_arrays(own["markov_2"]),
            Discounting.from_arrays(own["discounting"]),
            NearestIntents.from_arrays(own["nearest"]),
            Attention.from_arrays(own["head"]) if own["head"] else None,
            LaterItems.from_arrays(own["later"]),
            LikeTraces.from_arrays(own["like"]),
            ItemHabits.from_arrays(own["habits"]),
            WordMeanings.from_arrays(own["meanings"]),
            fitting(arrays, "points", np.float32, 2),
        )
