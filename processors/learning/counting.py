"""What is counted of runs where no model serves: the best baseline, and what recurs (DESIGN §7).

Nothing is learned that would have to earn its place. How sure it is, is held against sessions that it had not
seen, as of every learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.learners import BASELINES
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import Recall
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.training import judged_and_chosen
from pml.processors.memory.embedding import Embedding, Vectors

# What counts where no baseline can be judged: there is one session, or all are alike.
FIRST: Final = "discounting"
SEED: Final = 0


def counted(sessions: Sessions, embedding: Embedding, arguments: ArgumentSources | None = None) -> NextModel:
    """A model of these sessions by whichever baseline was right most often, as sure as it was right.

    Args:
        sessions: at least one of them goes on after its first element, and none is empty.
        embedding: makes the points of texts.
        arguments: what was learned of values in the same sessions.
    """
    remembered = _Remembered(embedding)
    verdict = None
    if len(np.unique(sessions.traces.groups)) > 1:
        verdict = judged_and_chosen(sessions, remembered, SEED, learners=BASELINES)
    found = fitted(
        sessions,
        remembered,
        SEED,
        FIRST if verdict is None else verdict.choice.serves,
        calibration=None if verdict is None else verdict.calibrated.calibration,
        arguments=arguments,
        recall=Recall.fit(sessions) if verdict is None or verdict.recalls else None,
    )
    return replace(found, embedding=embedding)


class _Remembered:
    """An embedding whose points are kept while one count lasts: each fold asks for the same texts."""

    def __init__(self, embedding: Embedding) -> None:
        self._embedding = embedding
        self._points: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        return self._embedding.name

    @property
    def dimensions(self) -> int:
        return self._embedding.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._points]
        if new:
            self._points.update(zip(new, self._embedding.embed(new), strict=True))
        points = [self._points[text] for text in texts]
        return np.array(points, dtype=np.float32).reshape(len(points), self.dimensions)
