"""`pml train`: sessions are judged, the better learner is kept as a model with all that is known of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pml.processors.learning.argument_success import ArgumentSuccess
from pml.processors.learning.call_success import fit_calls, judge_calls
from pml.processors.learning.choosing import Choice
from pml.processors.learning.judging import FOLDS, Learners, Unjudgeable, passing_gain
from pml.processors.learning.known_sessions import KnownSession, learned_sources
from pml.processors.learning.learners import ATTENTIVE, BASELINES, LEARNERS, REPLAYED, USUAL
from pml.processors.learning.learning_curve import SHARES, LearningCurve, learning_curve
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import Recall
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.training import (
    Split,
    Verdict,
    examined,
    judged_and_chosen,
    selected,
    split,
)
from pml.processors.memory.embedding import Embedding
from pml.schemas.errors import PMLError
from pml.schemas.times import to_rfc3339
from pml.streams.learning import artefacts
from pml.streams.learning.openings import count_opening
from pml.streams.learning.phases import Phases
from pml.streams.learning.sources import Source

TEST_SHARE = 0.2


class NothingToLearn(PMLError):
    """There are too few sessions, or none of them goes on after its first run."""

    code = "NOTHING_TO_LEARN"


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """What was made and what this training says of it; the folder keeps what the first one said.

    `held_out` are id and epoch of the sessions that nothing was learned of.
    """

    model: NextModel
    manifest: Mapping[str, Any]
    held_out: Set[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants of a training: `test_share` of the groups is kept for the end, or of the `latest`.

    `learner` serves, however good it is; None: the best. `with_attention` compares the attention model, too,
    with those `usual`, by name.
    """

    seed: int = 0
    test_share: float = TEST_SHARE
    with_curve: bool = False
    learner: str | None = None
    with_attention: bool = False
    latest: bool = False
    usual: Learners = field(default_factory=lambda: USUAL)

    @property
    def learners(self) -> Learners:
        """Those that are compared, by name."""
        more = ATTENTIVE if self.with_attention else {}
        named = {} if self.learner is None else {self.learner: LEARNERS[self.learner]}
        return {**self.usual, **more, **named}

    @property
    def asks_attention(self) -> bool:
        """Whether somebody is among them who may read what runs were called with (`with_looks`)."""
        return not {*ATTENTIVE, *REPLAYED}.isdisjoint(self.learners)


def train(source: Source, embedding: Embedding, folder: Path, wish: Wish, phases: Phases) -> Trained:
    """Judge every learner, fit the one that serves, look at the test side once, keep the model.

    Raises:
        NothingToLearn: see there.
        ConfigurationError: the folder cannot be written.
    """
    parts = split(source.sessions, wish.test_share, wish.seed, latest=wish.latest)
    training = selected(source.sessions, parts.training)
    held_out = {source.names[row] for row in parts.test.tolist()}
    values = learned_values(source, parts)
    verdict = judge_all(training, embedding, wish, phases)
    choice = verdict.choice
    curve = _curve(training, embedding, wish, choice, phases) if wish.with_curve else None
    with phases.phase("arguments"):
        arguments = learned_sources(values, source.schemas) if values else None
        recall = Recall.fit(training)
        success, calls = _call_success(training, wish.seed)
    with phases.phase("fitting"):
        calibration = verdict.calibrated.calibration
        model = fitted(
            training,
            embedding,
            wish.seed,
            choice.serves,
            calibration=calibration,
            arguments=arguments,
            success=success,
            recall=recall if verdict.recalls else None,
        )
    with phases.phase("testing"):
        examination = _Examination(source.sessions, parts, verdict, embedding, wish)
        test = examination.held(folder)
    manifest = {
        "created_at": to_rfc3339(time.time_ns() // 1_000_000),
        "code_version": version("procedural-memory-layer"),
        "seed": wish.seed,
        "data": {
            **source.about,
            "trained_on": len(parts.training),
            "questions": len(verdict.judged),
            "with_values": len(values),
        },
        "embedding": embedding.name,
        **told(verdict, wish.seed),
        "reads_looks": model.reads_looks,
        "call_success": calls,
        "recalled": _recalled(recall, verdict, wish.seed),
        "test": test,
        "learning_curve": None if curve is None else asdict(curve),
        "phases_s": phases.as_dict(),
    }
    return Trained(model, {**manifest, "model_id": artefacts.write(folder, model, manifest)}, held_out)


def learned_values(source: Source, parts: Split) -> list[KnownSession]:
    """Those of all sessions but the ones that are kept for the end or left out."""
    others = {*source.names} - {source.names[row] for row in parts.training.tolist()}
    return [session for session in source.values if session.name not in others]


def _call_success(sessions: Sessions, seed: int) -> tuple[ArgumentSuccess | None, Mapping[str, Any] | None]:
    """A model of how calls end, where the look of their arguments surely says something; and what it says."""
    calls = sessions.calls
    judged = None if calls is None else judge_calls(calls, sessions.traces.groups, seed)
    if calls is None or judged is None:
        return None, None
    report = judged.report(seed)
    return (fit_calls(calls) if report["used"] else None), report


def _recalled(recall: Recall | None, verdict: Verdict, seed: int) -> dict[str, Any] | None:
    """How often what recurs is right, whether it is said, and what it gives in the latest sessions."""
    if recall is None:
        return None
    latest = None if verdict.recalled is None else verdict.recalled.report(seed)
    return {"questions": recall.asked, "right": recall.right, "used": verdict.recalls, "latest": latest}


def judge_all(sessions: Sessions, embedding: Embedding, wish: Wish, phases: Phases) -> Verdict:
    """Every learner that is wished for beside every other, by folds over these sessions.

    Raises:
        NothingToLearn: there are too few of them.
    """
    learners, seed = wish.learners, wish.seed
    with phases.phase("judging", FOLDS * len(learners)):
        try:
            return judged_and_chosen(
                sessions, embedding, seed, phases.step, learners=learners, wanted=wish.learner
            )
        except Unjudgeable as error:
            raise NothingToLearn(
                f"{len(sessions.traces)} sessions are not enough to learn from ({error}); at least two that "
                "are no near-duplicates of each other and have two runs each are needed, and "
                "a run that is sent without a session has one to itself",
                sessions=len(sessions.traces),
            ) from None


def told(verdict: Verdict, seed: int) -> dict[str, Any]:
    """What was found out about the learners, for a manifest."""
    choice = verdict.choice
    return {
        "serves": choice.serves,
        "baseline": choice.baseline,
        "reason": choice.reason,
        "gains": choice.gains,
        "message_passing": passing_gain(verdict.judged, seed),
        "validation": verdict.rows(seed),
        "served": verdict.served(seed),
        "calibration": verdict.calibrated.report,
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Examination:
    """The test side, and who is asked."""

    sessions: Sessions
    parts: Split
    verdict: Verdict
    embedding: Embedding
    wish: Wish

    def held(self, folder: Path) -> dict[str, Any]:
        """What the test side says; counted before anybody looks."""
        parts, seed = self.parts, self.wish.seed
        about = {"hash": parts.test_hash, "share": self.wish.test_share, "sessions": len(parts.test)}
        about["split"] = "time" if self.wish.latest else "groups"
        if not (self.sessions.traces.lengths[parts.test] > 1).any():
            return {**about, "openings": 0}
        openings = count_opening(folder, parts.test_hash)
        found = examined(self.sessions, parts, self.verdict, self.embedding, seed)
        return {**about, "openings": openings, **(found or {})}


def _curve(
    sessions: Sessions, embedding: Embedding, wish: Wish, choice: Choice, phases: Phases
) -> LearningCurve:
    """Of the best baseline, and of all that was learned."""
    others = {name for name in BASELINES if name != choice.baseline}
    learners = {name: learner for name, learner in wish.learners.items() if name not in others}
    with phases.phase("learning curve", len(SHARES) * len(learners)):
        return learning_curve(sessions, embedding, wish.seed, learners=learners, told=phases.step)
