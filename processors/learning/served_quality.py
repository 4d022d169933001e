"""How good is what serves: a learner's candidates, as sure as it was right, with what recurs beside them.

The table of learners has each of them alone, as it scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Judged, Scored, scored
from pml.processors.learning.recall import with_recalled


def served_quality(
    judged: Judged, learner: str, calibrations: Mapping[int, Isotonic], *, recalls: bool
) -> Scored:
    """What the same questions are answered by what serves.

    Args:
        judged: what the learner said, and what was recalled.
        learner: which one serves.
        calibrations: for each fold one that was learned of others; without one scores are taken as they are.
        recalls: whether what recurs is beside it.
    """
    way = judged.ways[learner]
    named = _as_sure(Candidates(way.items, way.scores), judged.fold, calibrations)
    ended = _as_sure(Candidates(way.ended_items, way.ended), judged.ended_fold, calibrations)
    if recalls:
        named = with_recalled(named, judged.recalled)
        ended = with_recalled(ended, judged.ended_recalled)
    return scored(named, judged.targets, ended)


def errors(found: Scored) -> NDArray[np.float64]:
    """float64 [questions + ends]: the Brier score of each; at an end nothing that is named comes."""
    return np.concatenate((found.quality.brier, np.sum(found.ended**2, axis=1)))


def answered(judged: Judged) -> NDArray[np.bool_]:
    """bool [questions + ends]: of which something that recurred says what comes, or that nothing does."""
    return np.array([*map(bool, judged.recalled), *map(bool, judged.ended_recalled)], dtype=np.bool_)


def _as_sure(named: Candidates, fold: NDArray[np.int64], calibrations: Mapping[int, Isotonic]) -> Candidates:
    """By the calibration of the fold of each; where it has none they stay as they are."""
    found = named.probabilities.copy()
    for held, calibration in calibrations.items():
        rows = fold == held
        found[rows] = calibration.of(Candidates(named.items[rows], found[rows])).probabilities
    return Candidates(named.items, found)
