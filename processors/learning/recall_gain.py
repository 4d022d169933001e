"""Whether what recurs helps: the latest sessions asked of who knows the earlier ones, duplicates among them.

Sessions recur in time, so only there it shows: between folds near-duplicates are kept apart (docs/adr/0017).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.evaluation import Quality
from pml.processors.learning.intervals import paired_interval
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Asking, gain, measured, rounded
from pml.processors.learning.learners import LEARNERS
from pml.processors.learning.served_quality import answered, served_quality
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import TEST, TRAINING, by_time
from pml.processors.memory.embedding import Embedding

LATEST_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class RecallGain:
    """What serves with what recurs, and without, on the same questions.

    `clusters` int64 is the group of each question; `answered` how many of them something recurred answers.
    """

    recalling: Quality
    alone: Quality
    clusters: NDArray[np.int64]
    answered: int

    def harms(self, seed: int) -> bool:
        """Whether it is surely worse, by what comes first or by how sure it is: then nothing is recalled.

        It counts, as baselines do, so it need not be surely better (DESIGN §7).
        """
        first = paired_interval(self.recalling.hit_1, self.alone.hit_1, self.clusters, seed, 2)
        error = paired_interval(self.recalling.brier, self.alone.brier, self.clusters, seed, 2)
        return first[1] < 0 or error[0] > 0

    def report(self, seed: int) -> dict[str, Any]:
        """For a manifest."""
        error = paired_interval(self.recalling.brier, self.alone.brier, self.clusters, seed)
        return {
            "questions": len(self.clusters),
            "answered": self.answered,
            "recalling": measured(self.recalling, self.clusters, seed),
            "alone": measured(self.alone, self.clusters, seed),
            "gain": {
                **gain(self.recalling, self.alone, self.clusters, seed),
                "brier": round(float(self.recalling.brier.mean() - self.alone.brier.mean()), 4),
                "brier_interval": rounded(error),
            },
        }


def recall_gain(
    sessions: Sessions, embedding: Embedding, seed: int, learner: str, calibration: Isotonic
) -> RecallGain | None:
    """Learn of the earlier sessions, ask about the latest fifth.

    Args:
        learner: what serves.
        calibration: of that, learned by folds; both sides have the same.

    Returns:
        None where the latest ask nothing, or nothing that recurred answers them.
    """
    alone = _each_alone(sessions)
    sides = by_time(alone.traces.groups, alone.traces.times_ms, LATEST_SHARE)
    earlier, latest = np.flatnonzero(sides == TRAINING), np.flatnonzero(sides == TEST)
    if not (sessions.traces.lengths[earlier] > 1).any() or not (sessions.traces.lengths[latest] > 1).any():
        return None
    asking = Asking(alone, earlier, latest, embedding, seed)
    judged = asking.judged({learner: LEARNERS[learner]}, recalls=True)
    told = int(answered(judged).sum())
    if not told:
        return None
    known: Mapping[int, Isotonic] = {0: calibration}
    recalling, without = (served_quality(judged, learner, known, recalls=each) for each in (True, False))
    groups = sessions.traces.groups[judged.clusters]
    return RecallGain(recalling.quality, without.quality, groups, told)


def _each_alone(sessions: Sessions) -> Sessions:
    """As if none were a near-duplicate of another: each is its own group, by its row."""
    traces = replace(sessions.traces, groups=np.arange(len(sessions.traces)))
    found = replace(sessions, traces=traces)
    first = {name: group for name, group in found.first_groups().items() if name in sessions.learned}
    return replace(found, learned=first)
