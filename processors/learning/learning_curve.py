"""How much better learners become with more sessions: whether it pays to wait for more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.judging import FOLDS, Learners, Told, ask
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import folds
from pml.processors.memory.embedding import Embedding

SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """hit@1 of each learner (`hits`, by name) after so many `sessions`, on the same `questions`."""

    sessions: tuple[int, ...]
    hits: Mapping[str, tuple[float, ...]]
    questions: int


def learning_curve(
    sessions: Sessions,
    embedding: Embedding,
    seed: int,
    *,
    learners: Learners,
    told: Told = lambda name: None,
    shares: Sequence[float] = SHARES,
) -> LearningCurve:
    """Fit on growing parts of four fifths of the groups, each with all of the one before; ask about the rest.

    Args:
        sessions: to learn from and to ask about.
        embedding: makes the points of texts.
        seed: of parts and learners.
        learners: by name.
        told: called with each learner's name when it has answered for one part.
        shares: ascending, of those groups.

    Raises:
        ValueError: there are fewer than two groups.
    """
    groups = sessions.traces.groups
    fold = folds(groups, min(FOLDS, len(np.unique(groups))), seed)
    held_out, others = np.flatnonzero(fold == 0), np.flatnonzero(fold != 0)
    names = np.random.default_rng(seed).permutation(np.unique(groups[others]))
    parts = [_part(groups, others, names, share) for share in shares]
    judged = [
        ask(sessions, part, held_out, embedding, seed=seed, learners=learners, told=told) for part in parts
    ]
    hits = {
        name: tuple(round(each.ways[name].quality.means()["hit_1"], 4) for each in judged)
        for name in learners
    }
    return LearningCurve(tuple(len(part) for part in parts), hits, len(judged[-1]))


def _part(
    groups: NDArray[np.int64], others: NDArray[np.int64], names: NDArray[np.int64], share: float
) -> NDArray[np.int64]:
    chosen = names[: max(1, round(share * len(names)))]
    return others[np.isin(groups[others], chosen)]
