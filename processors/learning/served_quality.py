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
from pml.processors.learning.recall import END, agreed
from pml.processors.learning.vocabulary import UNKNOWN


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
    confidences = _confidences(way, judged.fold, calibrations)
    items = way.items.copy()
    if recalls:
        for row, found in enumerate(judged.recalled):
            if found:
                _join(items[row], confidences[row], found)
    return scored(Candidates(items, confidences), judged.targets)


def answered(judged: Judged) -> NDArray[np.bool_]:
    """bool [questions]: to which something that recurred says what comes next, or that nothing does."""
    return np.array([bool(found) for found in judged.recalled], dtype=np.bool_)


def _confidences(
    way: Scored, fold: NDArray[np.int64], calibrations: Mapping[int, Isotonic]
) -> NDArray[np.float64]:
    found = way.scores.copy()
    for held, calibration in calibrations.items():
        found[fold == held] = calibration(way.scores[fold == held])
    return np.where(way.items == UNKNOWN, 0.0, np.clip(found, 0.0, 1.0))


def _join(items: NDArray[np.int32], confidences: NDArray[np.float64], found: Mapping[int, float]) -> None:
    """Write into the row of a question what is said of it with what recurs."""
    named = items != UNKNOWN
    said = list(zip(items[named].tolist(), confidences[named].tolist(), strict=True))
    recalled = {item: likely for item, likely in found.items() if item not in (END, UNKNOWN)}
    both = agreed(said, recalled, found.get(END, 0.0))[: len(items)]
    items[: len(both)], confidences[: len(both)] = zip(*both, strict=True) if both else ((), ())
