"""Which learner serves: the best baseline, unless something learned is surely better (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Judged, Scored, Unjudgeable, gain, passing_gain
from pml.processors.learning.learners import ATTENTIVE, BASELINES
from pml.processors.learning.reliability import brier, reliability

# Groups of sessions that are asked about before something learned may serve: of few the bootstrap is too sure
# of itself, and of two that went well it cannot be in doubt at all (Cameron, Gelbach & Miller 2008).
GROUPS_LEAST = 20

Column = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """`serves` and the best `baseline`, by name; `gains`: of each that was learned over that baseline."""

    serves: str
    baseline: str
    gains: Mapping[str, Mapping[str, Any]]
    reason: str


def choose(judged: Judged, seed: int) -> Choice:
    """The best baseline, or what was learned and is right more often, its whole interval above 0.

    The intervals of all that was learned hold together in 95 %. The best is by hit@1, then by hit@3; of
    equal ones the simpler one. Message passing gives way to the same model without it, unless it
    is surely better.

    Raises:
        ValueError: there are no questions, or no baseline was judged.
    """
    ways = judged.ways
    baseline = max((name for name in BASELINES if name in ways), key=lambda name: _standing(ways[name]))
    best = ways[baseline].quality
    learned = [name for name in ways if name not in BASELINES]
    gains = {name: gain(ways[name].quality, best, judged.clusters, seed, len(learned)) for name in learned}
    serves, reason = baseline, f"{baseline} is the best baseline"
    groups = len(np.unique(judged.clusters))
    if gains and groups < GROUPS_LEAST:
        reason += (
            f", and nothing learned serves until {GROUPS_LEAST} groups of sessions were asked about: "
            f"these are {groups}"
        )
    elif better := [name for name, found in gains.items() if found["interval"][0] > 0]:
        paying, remark = _paying(better, judged, seed)
        serves = max(paying, key=lambda name: _standing(ways[name]))
        reason = f"{serves} is right more often than {baseline}, the best baseline: {_told(gains, serves)}"
        reason += remark
    elif gains:
        closest = max(gains, key=lambda name: _standing(ways[name]))
        reason += f", and {closest} is not surely better: {_told(gains, closest)}"
    return Choice(serves, baseline, gains, reason)


def _paying(better: list[str], judged: Judged, seed: int) -> tuple[list[str], str]:
    """Those that may serve: messages along the hypergraph only where they surely give something; and why not.

    Where they do not pay, the same model without them serves (DESIGN §7).
    """
    passing, head = ATTENTIVE
    given = passing_gain(judged, seed)
    if given is None or given["interval"][0] > 0 or not {passing, head} <= set(better):
        return better, ""
    remark = f"; {passing} may not serve: over {head}, the same without messages, it is not surely better"
    return [name for name in better if name != passing], remark


@dataclass(frozen=True, slots=True, eq=False)
class Calibrated:
    """A calibration, and what it does on questions that it had not seen, as JSON-serialisable values.

    `unseen`: for each fold what was learned of the others; none where these say nothing.
    """

    calibration: Isotonic
    report: Mapping[str, Any]
    unseen: Mapping[int, Isotonic]


def calibrate(judged: Judged, learner: str) -> Calibrated:
    """Learn how often candidates with a score are right; judged on the first candidates, fold by fold.

    The ends of sessions are questions too, to which no candidate is right: in a session that may be over,
    what is likeliest next is less likely. What is said of one fold was learned of the others.

    Args:
        judged: what learners said of questions that they had not seen.
        learner: which of them.

    Raises:
        Unjudgeable: nothing was named in any question.
    """
    found, fold = _with_ends(judged.ways[learner]), np.concatenate((judged.fold, judged.ended_fold))
    first, right = found.scores[:, 0], found.right[:, 0]
    if not np.any(found.scores > 0):
        raise Unjudgeable("nothing was named in any question")
    held = np.unique(fold).tolist()
    unseen = {each: _fitted(found, fold != each) for each in held if np.any(found.scores[fold != each] > 0)}
    after = first.copy()
    for each, calibration in unseen.items():
        after[fold == each] = calibration(first[fold == each])
    everything = _fitted(found, np.ones(len(fold), dtype=np.bool_))
    named = first > 0
    report = {"before": _report(first[named], right[named]), "after": _report(after[named], right[named])}
    return Calibrated(everything, report, unseen)


def _with_ends(found: Scored) -> Scored:
    scores = np.concatenate((found.scores, found.ended))
    right = np.concatenate((found.right, np.zeros(found.ended.shape, dtype=np.bool_)))
    return replace(found, scores=scores, right=right)


def _fitted(found: Scored, questions: NDArray[np.bool_]) -> Isotonic:
    scores, right = found.scores[questions], found.right[questions]
    named = scores > 0
    return Isotonic.fit(scores[named], right[named])


def _report(confidences: Column, right: NDArray[np.bool_]) -> dict[str, Any]:
    said = np.clip(confidences, 0.0, 1.0)
    curve = reliability(said, right)
    return {
        "brier": round(brier(said, right), 4),
        "expected_error": round(curve.expected_error, 4),
        "curve": {
            "counts": curve.counts.tolist(),
            "confidences": np.round(curve.confidences, 4).tolist(),
            "rates": np.round(curve.rates, 4).tolist(),
        },
    }


def _standing(found: Scored) -> tuple[float, float]:
    means = found.quality.means()
    return means["hit_1"], means["hit_3"]


def _told(gains: Mapping[str, Mapping[str, Any]], name: str) -> str:
    low, high = gains[name]["interval"]
    of_several = f", 95 % for the {len(gains)} that were learned together" if len(gains) > 1 else ""
    return f"{gains[name]['hit_1']:+.3f} [{low:+.3f}, {high:+.3f}] in hit@1{of_several}"
