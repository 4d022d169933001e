"""From sessions to the model that serves: judged, chosen, calibrated, fitted, and examined once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.choosing import Calibrated, Choice, calibrate, choose
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Asking, Judged, Learners, Told, gain, judge, measured
from pml.processors.learning.learners import LEARNERS, USUAL
from pml.processors.learning.recall_gain import RecallGain, recall_gain
from pml.processors.learning.reliability import brier
from pml.processors.learning.served_quality import answered, served_quality
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import TEST, TRAINING, by_hash, by_time
from pml.processors.memory.embedding import Embedding

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows of sessions, int64; groups lie on one side. `test_hash` names the test side by what is in it."""

    training: Places
    test: Places
    test_hash: str


def split(sessions: Sessions, test_share: float, seed: int, *, latest: bool = False) -> Split:
    """Keep a share of the groups for the end; `latest`: of the sessions, those that ended last.

    Of the latest, near-duplicates of earlier ones are on neither side.

    Raises:
        ValueError: `test_share` is not in [0, 1).
    """
    traces = sessions.traces
    if latest and test_share > 0:
        sides = by_time(traces.groups, traces.times_ms, test_share)
    else:
        sides = by_hash(traces.groups, test_share, seed)
    test = np.flatnonzero(sides == TEST)
    told = np.sort(traces.groups[test]).astype("<i8").tobytes()
    digest = blake2b(told, digest_size=16).hexdigest()
    return Split(np.flatnonzero(sides == TRAINING), test, digest)


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What learners reached on sessions they had not seen, which one serves, and its calibration.

    `recalled`: what recurs gives what serves, None where nothing tells; `recalls`: it is said beside that.
    """

    judged: Judged
    choice: Choice
    calibrated: Calibrated
    recalled: RecallGain | None
    recalls: bool

    def served(self, seed: int) -> dict[str, Any]:
        """The same of what serves as a whole, and how much more often it is right than the best baseline."""
        return _served(self, self.judged, self.calibrated.unseen, seed)

    def rows(self, seed: int) -> dict[str, Any]:
        """hit@1, hit@3, MRR and Brier of every learner, by name, each with its interval."""
        return {
            name: measured(found.quality, self.judged.clusters, seed)
            for name, found in self.judged.ways.items()
        }


def judged_and_chosen(
    sessions: Sessions,
    embedding: Embedding,
    seed: int,
    told: Told = lambda name: None,
    *,
    learners: Learners = USUAL,
    wanted: str | None = None,
) -> Verdict:
    """Judge learners by folds over these sessions, choose, and calibrate what serves.

    Args:
        learners: by name, `wanted` among them.
        wanted: the learner that serves, however good it is; None: the best.

    Raises:
        Unjudgeable: see there.
    """
    judged = judge(sessions, embedding, seed, learners=learners, told=told)
    choice = choose(judged, seed)
    if wanted is not None:
        choice = replace(choice, serves=wanted, reason=f"{wanted} was asked for")
    calibrated = calibrate(judged, choice.serves)
    recalled = recall_gain(sessions, embedding, seed, choice.serves, calibrated.calibration)
    recalls = recalled is None or not recalled.harms(seed)
    return Verdict(judged, choice, calibrated, recalled, recalls)


def selected(sessions: Sessions, rows: Places) -> Sessions:
    """Some of them, with what is known from them."""
    known = sessions.known_from(rows)
    calls = None if known.calls is None else known.calls.of_traces(rows)
    return replace(known, traces=known.traces.selected(rows), calls=calls)


def examined(
    sessions: Sessions, parts: Split, verdict: Verdict, embedding: Embedding, seed: int
) -> Mapping[str, Any] | None:
    """Ask what serves, and the best baseline, about the test side; None where that asks nothing."""
    choice = verdict.choice
    names = dict.fromkeys((choice.serves, choice.baseline))
    asking = Asking(sessions, parts.training, parts.test, embedding, seed)
    found = asking.judged({name: LEARNERS[name] for name in names}, recalled=asking.recalled())
    if len(found) == 0:
        return None
    serves, baseline = found.ways[choice.serves], found.ways[choice.baseline]
    return {
        "questions": len(found),
        "learners": {name: measured(each.quality, found.clusters, seed) for name, each in found.ways.items()},
        "gain": gain(serves.quality, baseline.quality, found.clusters, seed),
        "served": _served(verdict, found, {0: verdict.calibrated.calibration}, seed),
    }


def _served(
    verdict: Verdict, found: Judged, calibrations: Mapping[int, Isotonic], seed: int
) -> dict[str, Any]:
    """What these questions are answered by what serves: as sure as it was right, with what recurs."""
    choice, recalls = verdict.choice, verdict.recalls
    whole = served_quality(found, choice.serves, calibrations, recalls=recalls)
    said = np.concatenate((whole.scores[:, 0], whole.ended[:, 0]))
    right = np.concatenate((whole.right[:, 0], np.zeros(len(whole.ended), dtype=np.bool_)))
    return {
        **measured(whole.quality, found.clusters, seed),
        "gain": gain(whole.quality, found.ways[choice.baseline].quality, found.clusters, seed),
        "confidence_brier": round(brier(said, right), 4),
        "recalled": int(answered(found)[: len(found)].sum()) if recalls else 0,
    }
