"""Whether what recurs helps: the latest sessions asked of who knows the earlier ones, duplicates among them.

Sessions recur in time, so only there it shows: between folds near-duplicates are kept apart (docs/adr/0017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.choosing import GROUPS_LEAST
from pml.processors.learning.intervals import paired_interval
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Asking, Scored, gain, rounded
from pml.processors.learning.learners import LEARNERS
from pml.processors.learning.served_quality import answered, errors, served_quality
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import TEST, TRAINING, by_time
from pml.processors.memory.embedding import Embedding

LATEST_SHARE = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class RecallGain:
    """What serves with what recurs, and without, on the same questions, and at the same ends of sessions.

    `clusters` int64 [questions + ends]: the group of each; `answered` bool: those that something recurred
    answers.
    """

    recalling: Scored
    alone: Scored
    clusters: NDArray[np.int64]
    answered: NDArray[np.bool_]

    def harms(self, seed: int) -> bool:
        """Whether it is surely worse, by what comes first or by how sure it is: then nothing is recalled.

        It counts, as baselines do, so it need not be surely better (DESIGN §7). Of a few groups nobody is
        sure (`GROUPS_LEAST`).
        """
        if len(np.unique(self.clusters[self.answered])) < GROUPS_LEAST:
            return False
        one, other = self.recalling.quality.hit_1, self.alone.quality.hit_1
        first = paired_interval(one, other, self.clusters[: len(one)], seed, 2)
        error = paired_interval(errors(self.recalling), errors(self.alone), self.clusters, seed, 2)
        return first[1] < 0 or error[0] > 0

    def report(self, seed: int) -> dict[str, Any]:
        """For a manifest; hit@1 is of the questions, Brier of the ends, too."""
        one, other = self.recalling.quality, self.alone.quality
        error, without = errors(self.recalling), errors(self.alone)
        return {
            "questions": len(one.hit_1),
            "ends": len(self.clusters) - len(one.hit_1),
            "answered": int(self.answered.sum()),
            "groups": len(np.unique(self.clusters[self.answered])),
            "gain": {
                **gain(one, other, self.clusters[: len(one.hit_1)], seed),
                "brier": round(float(error.mean() - without.mean()), 4),
                "brier_interval": rounded(paired_interval(error, without, self.clusters, seed)),
            },
        }


def recall_gain(
    sessions: Sessions, embedding: Embedding, seed: int, learner: str, calibration: Isotonic
) -> RecallGain | None:
    """Learn of the earlier sessions, ask about the latest fifth.

    Args:
        learner: what serves.
        calibration: of that, learned by folds; of the latest as well, so it rather speaks against recalling.

    Returns:
        None where the latest ask nothing (what went on just now is no fair question), or nothing that
        recurred answers them.
    """
    alone = _each_alone(sessions)
    sides = by_time(alone.traces.groups, alone.traces.times_ms, LATEST_SHARE)
    earlier, latest = np.flatnonzero(sides == TRAINING), np.flatnonzero(sides == TEST)
    asked = alone.traces.selected(latest).questions()
    if len(asked) == 0 or not (alone.traces.lengths[earlier] > 1).any():
        return None
    asking = Asking(alone, earlier, latest, embedding, seed)
    recalled = asking.recalled()
    if not any(found for each in recalled for found in each):
        return None
    judged = asking.judged({learner: LEARNERS[learner]}, recalled=recalled)
    known = {0: calibration}
    recalling, without = (served_quality(judged, learner, known, recalls=each) for each in (True, False))
    rows = np.concatenate((judged.clusters, judged.ended_clusters))
    return RecallGain(recalling, without, sessions.traces.groups[rows], answered(judged))


def _each_alone(sessions: Sessions) -> Sessions:
    """As if none were a near-duplicate of another: each is its own group, by its row."""
    traces = replace(sessions.traces, groups=np.arange(len(sessions.traces)))
    found = replace(sessions, traces=traces)
    first = {name: group for name, group in found.first_groups().items() if name in sessions.learned}
    return replace(found, learned=first)
