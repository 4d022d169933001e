"""How good is what serves: a learner's candidates, as sure as it was right, with what recurs beside them.

The table of learners has each of them alone, as it scores.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Judged, Recalled, Scored, scored
from pml.processors.learning.recall import END, agreed
from pml.processors.learning.vocabulary import UNKNOWN, Ids


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
    named = _served(way.items, way.scores, judged.fold, calibrations)
    ended = _served(way.ended_items, way.ended, judged.ended_fold, calibrations)
    if recalls:
        _join(named, judged.recalled)
        _join(ended, judged.ended_recalled)
    return scored(named, judged.targets, ended)


def errors(found: Scored) -> NDArray[np.float64]:
    """float64 [questions + ends]: the Brier score of each; at an end nothing that is named comes."""
    return np.concatenate((found.quality.brier, np.sum(found.ended**2, axis=1)))


def answered(judged: Judged) -> NDArray[np.bool_]:
    """bool [questions + ends]: of which something that recurred says what comes, or that nothing does."""
    every = (*judged.recalled, *judged.ended_recalled)
    return np.array([bool(found.keys() - {UNKNOWN}) for found in every], dtype=np.bool_)


def _served(
    items: Ids,
    scores: NDArray[np.float64],
    fold: NDArray[np.int64],
    calibrations: Mapping[int, Isotonic],
) -> Candidates:
    """Candidates of their own arrays, as sure as they are right."""
    found = scores.copy()
    for held, calibration in calibrations.items():
        found[fold == held] = calibration(scores[fold == held])
    return Candidates(items.copy(), np.where(items == UNKNOWN, 0.0, np.clip(found, 0.0, 1.0)))


def _join(named: Candidates, recalled: Recalled) -> None:
    """Write into them what is said together with what recurs."""
    for row, found in enumerate(recalled):
        if found:
            _join_row(named.items[row], named.probabilities[row], found)


def _join_row(items: Ids, confidences: NDArray[np.float64], found: Mapping[int, float]) -> None:
    known = items != UNKNOWN
    said = list(zip(items[known].tolist(), confidences[known].tolist(), strict=True))
    recalled = {item: likely for item, likely in found.items() if item not in (END, UNKNOWN)}
    both = agreed(said, recalled, found.get(END, 0.0))[: len(items)]
    items[: len(both)], confidences[: len(both)] = zip(*both, strict=True) if both else ((), ())
