"""What serves is judged as it serves: as sure as it was right, with what recurs beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pml.processors.learning.choosing import calibrate
from pml.processors.learning.judging import Asking, ask, judge
from pml.processors.learning.learners import BASELINES, LEARNERS
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import Recall
from pml.processors.learning.recall_gain import RecallGain, recall_gain
from pml.processors.learning.served_quality import answered, served_quality
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.training import judged_and_chosen, selected
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_sessions import drawn_sessions

EMBEDDING = HashedNgrams()
NOISE = drawn_sessions(80, 3, by_request=False, items=4)


def recurring(count: int, *, times_ms: list[int] | None = None) -> Sessions:
    """Sessions of four kinds, one after another; what follows a beginning only the whole beginning tells."""
    kinds = np.array([[1, 2, 3, 1], [2, 2, 4, 4], [3, 3, 3, 2], [4, 2, 1, 3]], dtype=np.int32)
    traces = replace(
        NOISE.traces.selected(np.arange(count)),
        items=kinds[np.arange(count) % 4].ravel(),
        texts=np.full(4 * count, -1),
        end_texts=np.full(count, -1),
        groups=np.arange(count) % 4,
        times_ms=np.array(times_ms if times_ms is not None else range(count), dtype=np.int64),
    )
    return replace(NOISE, traces=traces)


def model_of(sessions: Sessions, learner: str) -> NextModel:
    judged = judge(sessions, EMBEDDING, 1, learners={learner: LEARNERS[learner]})
    calibration = calibrate(judged, learner).calibration
    return fitted(sessions, EMBEDDING, 1, learner, calibration=calibration, recall=Recall.fit(sessions))


@pytest.mark.parametrize("learner", ["markov_1", "boosted"])
@pytest.mark.parametrize("recalls", [True, False])
def test_what_is_judged_is_what_serving_says(learner: str, recalls: bool) -> None:
    sessions = recurring(40)
    earlier, later = np.arange(30), np.arange(30, 40)
    model = model_of(selected(sessions, earlier), learner)
    assert model.calibration is not None
    if not recalls:
        model = replace(model, recall=None)
    asking = Asking(replace(sessions, learned={}), earlier, later, EMBEDDING, 1)
    judged = asking.judged({learner: LEARNERS[learner]}, recalls=True)
    assert answered(judged).all()
    found = served_quality(judged, learner, {0: model.calibration}, recalls=recalls)
    names = sessions.vocabulary
    row = 0
    for trace in later.tolist():
        called = [names.name(item) or "" for item in sessions.traces.items[4 * trace : 4 * trace + 4]]
        for place in range(1, 4):
            said = model.candidates(called[:place], "")
            known = [
                (names.name(item), sure)
                for item, sure in zip(found.items[row], found.scores[row], strict=True)
            ]
            assert [each.name for each in said] == [name for name, _ in known if name is not None]
            assert [each.confidence for each in said] == pytest.approx([sure for name, sure in known if name])
            assert found.right[row, 0] == (said[0].name == called[place])
            row += 1
    assert row == len(judged)


def test_without_asking_nothing_is_recalled() -> None:
    sessions = recurring(40)
    judged = ask(
        sessions,
        np.arange(30),
        np.arange(30, 40),
        EMBEDDING,
        seed=1,
        learners={"popularity": LEARNERS["popularity"]},
    )
    assert len(judged.recalled) == 0
    plain = served_quality(judged, "popularity", {}, recalls=True)
    assert plain.scores.tolist() == judged.ways["popularity"].scores.tolist()


def test_what_recurs_is_worth_what_it_adds_to_the_latest_sessions() -> None:
    verdict = judged_and_chosen(recurring(80), EMBEDDING, 1, learners=BASELINES)
    found = verdict.recalled
    assert found is not None
    assert (found.answered, len(found.clusters)) == (48, 48)
    assert found.recalling.means()["hit_1"] == 1
    assert found.alone.means()["hit_1"] < 1
    assert not found.harms(1)
    assert verdict.recalls(1)
    report = found.report(1)
    assert report["gain"]["hit_1"] == round(1 - found.alone.means()["hit_1"], 4)
    assert report["gain"]["brier"] < 0
    # Folds keep what is alike apart, so there nothing recurs.
    assert verdict.served(1)["recalled"] == 0


def test_where_nobody_knows_what_came_earlier_nothing_is_said_of_recalling() -> None:
    calibration = model_of(recurring(40), "markov_1").calibration
    assert calibration is not None
    at_once = recurring(40, times_ms=[7] * 40)
    assert recall_gain(at_once, EMBEDDING, 1, "markov_1", calibration) is None
    assert recall_gain(recurring(40), EMBEDDING, 1, "markov_1", calibration) is not None


def test_what_used_to_recur_and_no_longer_does_is_not_recalled() -> None:
    """Forty sessions went on alike; the latest, of twenty groups, begin so too and go on otherwise."""
    count, late = 200, 40
    items = np.tile(np.array([1, 2], dtype=np.int32), (count, 1))
    items[count - late :, 1] = 3
    base = drawn_sessions(count, 1, by_request=False, items=2)
    traces = replace(
        base.traces,
        items=items.ravel(),
        groups=np.concatenate((np.zeros(count - late, dtype=np.int64), 1 + np.arange(late) % 20)),
    )
    calibration = model_of(recurring(40), "popularity").calibration
    assert calibration is not None
    found = recall_gain(replace(base, traces=traces), EMBEDDING, 1, "popularity", calibration)
    assert found is not None
    assert found.answered == late
    assert found.recalling.brier.mean() > found.alone.brier.mean()
    assert found.harms(1)


def test_what_is_no_worse_harms_nobody() -> None:
    calibration = model_of(recurring(80), "markov_1").calibration
    assert calibration is not None
    found = recall_gain(recurring(80), EMBEDDING, 1, "markov_1", calibration)
    assert found is not None
    assert not found.harms(1)
    assert not RecallGain(found.alone, found.alone, found.clusters, 1).harms(1)
    assert RecallGain(found.alone, found.recalling, found.clusters, found.answered).harms(1)
