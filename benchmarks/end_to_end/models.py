"""The models that are compared: the best baseline and the ranker, fitted as `pml train` does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.end_to_end.foreseen import Asked, Recorded
from pml.processors.learning.argument_sources import ArgumentSources
from pml.processors.learning.choosing import calibrate
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import Recall
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.training import judged_and_chosen, selected
from pml.processors.memory.embedding import Embedding

# How it is called in the table, and which learner that is.
RANKER, LEARNER = "ranker", "boosted"

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The best baseline by name, and what would serve after `pml train`."""

    baseline: str
    serves: str


def models_of(
    sessions: Sessions, rows: Rows, embedding: Embedding, seed: int
) -> tuple[Chosen, dict[str, NextModel]]:
    """The best baseline and the ranker, each calibrated and fitted as `pml train` does it.

    Raises:
        ValueError: there are too few sessions.
    """
    training = selected(sessions, rows)
    verdict = judged_and_chosen(training, embedding, seed)
    chosen = Chosen(verdict.choice.baseline, verdict.choice.serves)
    recall = Recall.fit(training) if verdict.recalls else None
    models = {}
    for name, learner in ((chosen.baseline, chosen.baseline), (RANKER, LEARNER)):
        calibration = calibrate(verdict.judged, learner).calibration
        models[name] = fitted(training, embedding, seed, learner, calibration=calibration, recall=recall)
    return chosen, models


def asked_of(recorded: Recorded, rows: Rows) -> Asked:
    """Who names arguments, having learned of these sessions."""
    data, learned = recorded.data, rows.tolist()
    sessions, texts = [data.sessions[row] for row in learned], [data.requests[row] for row in learned]
    return Asked(recorded, ArgumentSources.fit(sessions, texts, data.schemas))
