"""What serves is judged as it serves: as sure as it was right, with what recurs beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from pml.processors.learning.choosing import GROUPS_LEAST, calibrate
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import Asking, Judged, ask, judge
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.learners import BASELINES, LEARNERS
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import END, Recall
from pml.processors.learning.recall_gain import RecallGain, recall_gain
from pml.processors.learning.scene import Past
from pml.processors.learning.served_quality import answered, errors, served_quality
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import TraceSet
from pml.processors.learning.training import judged_and_chosen, selected
from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_sessions import DESCRIPTIONS, NAMES

EMBEDDING = HashedNgrams()


# What was visible, and what was called: only the whole beginning with its text tells what follows, or that
# nothing does.
KINDS = (
    (0, (1, 2, 3, 1)),
    (0, (2, 2, 4)),
    (0, (3, 3, 3, 2)),
    (1, (1, 2, 4)),
    (1, (3, 3)),
    (-1, (4, 2, 1, 3)),
)


def sessions_of(kinds: Sequence[tuple[int, Sequence[int]]], groups: Sequence[int]) -> Sessions:
    """One after another, with what was visible and called."""
    lengths = [len(called) for _, called in kinds]
    texts = np.repeat([text for text, _ in kinds], lengths)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    texts[offsets[:-1]] = -1
    traces = TraceSet(
        items=np.array([item for _, called in kinds for item in called], dtype=np.int32),
        success=np.ones(sum(lengths), dtype=np.float32),
        offsets=offsets,
        outcomes=np.ones(len(kinds), dtype=np.float32),
        weights=np.ones(len(kinds), dtype=np.float32),
        groups=np.array(groups, dtype=np.int64),
        times_ms=np.arange(len(kinds)),
        texts=texts,
        end_texts=np.array([text for text, _ in kinds], dtype=np.int64),
    )
    return Sessions(Vocabulary.of(NAMES), traces, [f"do {number}" for number in range(200)], DESCRIPTIONS)


def recurring(count: int) -> Sessions:
    """Every kind again and again, each time as another group, or nothing could be judged by folds."""
    return sessions_of([KINDS[number % len(KINDS)] for number in range(count)], range(count))


def model_of(sessions: Sessions, learner: str) -> NextModel:
    judged = judge(sessions, EMBEDDING, 1, learners={learner: LEARNERS[learner]})
    calibration = calibrate(judged, learner).calibration
    return fitted(sessions, EMBEDDING, 1, learner, calibration=calibration, recall=Recall.fit(sessions))


@pytest.mark.parametrize("going_on", [12, 48])
def test_where_a_session_may_go_on_nobody_is_asked_how_it_ends(going_on: int) -> None:
    """Not what ranks, and not what recurs; also where not one is over."""
    sessions = recurring(48)
    settled = np.ones(len(sessions.traces.items), dtype=np.bool_)
    settled[sessions.traces.offsets[1:][48 - going_on :] - 1] = False
    told = replace(sessions, traces=replace(sessions.traces, settled=settled))
    names = ("markov_1", "ranker", "boosted")
    judged = judge(told, EMBEDDING, 1, learners={name: LEARNERS[name] for name in names})
    assert sorted(judged.ended_clusters.tolist()) == list(range(48 - going_on))
    for way in judged.ways.values():
        assert len(way.ended) == len(way.ended_items) == len(judged.ended_recalled) == 48 - going_on
    every = judge(sessions, EMBEDDING, 1, learners=BASELINES)
    assert len(judged) == len(every)
    some = np.linspace(0.1, 1.0, 10)
    with_ends, without = (calibrate(each, "markov_1").calibration(some) for each in (every, judged))
    assert without.mean() > with_ends.mean()


RECURRING = recurring(48)
EARLIER, LATER = np.arange(36), np.arange(36, 48)


@cache
def model_and_answers(learner: str) -> tuple[NextModel, Judged]:
    """What learned from the earlier sessions, and what is judged of the later ones."""
    asking = Asking(RECURRING, EARLIER, LATER, EMBEDDING, 1)
    judged = asking.judged({learner: LEARNERS[learner]}, recalled=asking.recalled())
    return model_of(selected(RECURRING, EARLIER), learner), judged


@pytest.mark.parametrize("learner", ["markov_1", "boosted"])
@pytest.mark.parametrize("recalls", [True, False])
def test_what_is_judged_is_what_serving_says(learner: str, recalls: bool) -> None:
    """Also after the last element, when nobody knows yet that the session is over."""
    sessions, (model, judged) = RECURRING, model_and_answers(learner)
    assert model.calibration is not None
    if not recalls:
        model = replace(model, recall=None)
    assert answered(judged).all()
    found = served_quality(judged, learner, {0: model.calibration}, recalls=recalls)
    questions, ends = (
        iter(zip(found.items, found.scores, strict=True)),
        zip(found.ended_items, found.ended, strict=True),
    )
    row = 0
    for trace, (ended_items, ended) in zip(LATER.tolist(), ends, strict=True):
        text, numbers = KINDS[trace % len(KINDS)]
        called = [sessions.vocabulary.name(number) or "" for number in numbers]
        for place in range(1, len(called) + 1):
            said = model.candidates(called[:place], "" if text < 0 else sessions.texts[text])
            items, scores = next(questions) if place < len(called) else (ended_items, ended)
            names = [sessions.vocabulary.name(item) for item in items[items != UNKNOWN].tolist()]
            assert [each.name for each in said] == names
            assert [each.confidence for each in said] == pytest.approx(scores[items != UNKNOWN].tolist())
            if place < len(called):
                assert found.right[row, 0] == (said[0].name == called[place])
                row += 1
    assert row == len(judged)


def test_a_fold_is_as_sure_as_others_were_right() -> None:
    verdict = judged_and_chosen(recurring(60), EMBEDDING, 1, learners=BASELINES)
    judged, name = verdict.judged, verdict.choice.serves
    unseen, way = verdict.calibrated.unseen, judged.ways[name]
    found = served_quality(judged, name, unseen, recalls=False)
    assert set(unseen) == set(range(5))
    for held in range(5):
        rows, ends = judged.fold == held, judged.ended_fold == held
        others = np.concatenate((way.scores[~rows], way.ended[~ends]))
        right = np.concatenate((way.right[~rows], np.zeros(way.ended[~ends].shape, dtype=np.bool_)))
        known = Isotonic.fit(others[others > 0], right[others > 0])
        for scores, sure in ((way.scores[rows], found.scores[rows]), (way.ended[ends], found.ended[ends])):
            np.testing.assert_allclose(sure, np.where(scores > 0, known(scores), 0.0))
    told = verdict.served(1)
    whole = served_quality(judged, name, unseen, recalls=True)
    assert told["brier"]["mean"] == round(float(whole.quality.brier.mean()), 4)
    assert told["hit_1"]["mean"] == round(float(whole.quality.hit_1.mean()), 4)
    assert told["recalled"] == sum(bool(each) for each in judged.recalled) > 0


def test_without_asking_nothing_is_recalled() -> None:
    learners = {"popularity": LEARNERS["popularity"]}
    judged = ask(recurring(48), np.arange(36), np.arange(36, 48), EMBEDDING, seed=1, learners=learners)
    assert (len(judged.recalled), len(judged.ended_recalled)) == (0, 0)
    plain = served_quality(judged, "popularity", {}, recalls=True)
    assert plain.scores.tolist() == judged.ways["popularity"].scores.tolist()


def test_what_recurs_is_worth_what_it_adds_to_the_latest_sessions() -> None:
    verdict = judged_and_chosen(recurring(150), EMBEDDING, 1, learners=BASELINES)
    found = verdict.recalled
    assert found is not None
    assert found.answered.all()
    assert found.recalling.quality.means()["hit_1"] == 1
    assert found.alone.quality.means()["hit_1"] < 1
    assert not found.harms(1)
    assert verdict.recalls
    report = found.report(1)
    assert report["gain"]["hit_1"] == round(1 - found.alone.quality.means()["hit_1"], 4)
    assert (
        report["gain"]["brier"] == round(float((errors(found.recalling) - errors(found.alone)).mean()), 4) < 0
    )
    assert (report["ends"], report["answered"]) == (30, len(found.clusters))
    # The other way round it would be left out.
    assert RecallGain(found.alone, found.recalling, found.clusters, found.answered).harms(1)
    assert not RecallGain(found.alone, found.alone, found.clusters, found.answered).harms(1)


def test_where_nobody_knows_what_came_earlier_or_nothing_recurs_nothing_is_said() -> None:
    calibration = model_of(recurring(60), "markov_1").calibration
    assert calibration is not None
    sessions = recurring(60)
    at_once = replace(sessions, traces=replace(sessions.traces, times_ms=np.full(60, 7)))
    assert recall_gain(at_once, EMBEDDING, 1, "markov_1", calibration) is None
    assert recall_gain(sessions, EMBEDDING, 1, "markov_1", calibration) is not None
    new = sessions_of([(number, KINDS[number % 6][1]) for number in range(60)], range(60))
    assert recall_gain(new, EMBEDDING, 1, "markov_1", calibration) is None


@pytest.mark.parametrize("single", [39, 118])
def test_where_the_latest_sessions_have_ends_but_no_fair_question_nothing_is_said(single: int) -> None:
    """The only one of them that went on did so just now; of few answered groups nothing is tested."""
    minute_ms = 60_000

    def known(number: int, *names: str) -> KnownSession:
        ends = tuple(number * minute_ms + 1_000 * place for place in range(len(names)))
        made = tuple(Past(name, {"number": number}, None) for name in names)
        return KnownSession(made, ("",) * len(names), ends[-1], (f"s{number}", 0), "", ends)

    two = [known(number, "s:list", "s:read") for number in range(60)]
    one = [known(number, "s:list") for number in range(60, 60 + single)]
    sessions = as_sequences([*two, *one, known(60 + single, "s:list", "s:read")], {})
    latest = sessions.traces.selected(np.arange(60, 61 + single))
    assert latest.lengths.max() == 2
    assert len(latest.ended) > 0 == len(latest.questions())
    verdict = judged_and_chosen(sessions, EMBEDDING, 1, learners=BASELINES)
    assert (verdict.recalled, verdict.recalls) == (None, True)


def test_nothing_is_fitted_where_nothing_recurs(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted_in_vain(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Asking, "judged", fitted_in_vain)
    new = sessions_of([(number, KINDS[number % 6][1]) for number in range(60)], range(60))
    calibration = Isotonic.fit(np.array([0.5]), np.array([True]))
    assert recall_gain(new, EMBEDDING, 1, "boosted", calibration) is None
    with pytest.raises(AssertionError):
        recall_gain(recurring(60), EMBEDDING, 1, "boosted", calibration)


def changed(late_groups: int) -> Sessions:
    """Of 160 sessions all went on alike; the latest 40 begin so, too, and go on otherwise."""
    kinds = [(0, (1, 2))] * 160 + [(0, (1, 3))] * 40
    return sessions_of(kinds, [0] * 160 + [1 + number % late_groups for number in range(40)])


@pytest.mark.parametrize(("groups", "harms"), [(1, False), (GROUPS_LEAST - 1, False), (GROUPS_LEAST, True)])
def test_what_used_to_recur_and_no_longer_does_is_not_recalled(groups: int, harms: bool) -> None:
    calibration = Isotonic.fit(np.array([0.1, 0.9]), np.array([False, True]))
    found = recall_gain(changed(groups), EMBEDDING, 1, "popularity", calibration)
    assert found is not None
    assert found.report(1)["groups"] == groups
    assert errors(found.recalling).mean() > errors(found.alone).mean()
    assert found.harms(1) is harms


def test_what_is_first_less_often_harms_though_it_is_no_less_sure() -> None:
    found = recall_gain(
        recurring(150), EMBEDDING, 1, "popularity", Isotonic.fit(np.array([0.5]), np.array([True]))
    )
    assert found is not None
    never = replace(found.alone.quality, hit_1=np.zeros_like(found.alone.quality.hit_1))
    one = replace(found.alone, quality=replace(never, hit_1=np.ones_like(never.hit_1)))
    assert RecallGain(replace(found.alone, quality=never), one, found.clusters, found.answered).harms(1)
    assert not RecallGain(one, replace(found.alone, quality=never), found.clusters, found.answered).harms(1)


def test_knowing_that_sessions_end_is_worth_something() -> None:
    """Half of the sessions have one request and mostly end after their first call, the others go on."""
    kinds = [
        (0, (1, 2) if number % 20 < 6 else (1,)) if number % 2 else (1 + number // 2, (1, 2))
        for number in range(390)
    ]
    sessions = sessions_of(kinds, range(390))
    calibration = model_of(sessions, "markov_1").calibration
    assert calibration is not None
    found = recall_gain(sessions, EMBEDDING, 1, "markov_1", calibration)
    assert found is not None
    questions = found.recalling.quality.brier.mean() - found.alone.quality.brier.mean()
    assert questions > 0 > found.report(1)["gain"]["brier"]
    assert not found.harms(1)


def test_what_only_others_call_is_no_beginning_that_anybody_knows() -> None:
    """Runs without a name are left out of a session's history, by who learns and by who asks."""
    nameless = sessions_of([(-1, (1, 0, 2)), (-1, (1, 3, 4))] * 20, range(40))
    training, asked_about = np.arange(0, 40, 2), np.arange(1, 40, 2)
    asking = Asking(replace(nameless, listed=()), training, asked_about, EMBEDDING, 1)
    questions, ends = asking.recalled()
    after_first, after_second = questions[::2], questions[1::2]
    assert all(after_first)
    assert not any([*after_second, *ends])
    recall = Recall.fit(nameless)
    assert recall is not None
    first, second, third, fourth = (nameless.vocabulary.name(number) or "" for number in range(1, 5))
    # After the run without a name it is asked with the same history as before that.
    likely = recall.after([first], "")
    assert {2, 3} <= likely.keys()
    assert recall.after([first, third], "").keys() == {4}
    assert (
        recall.after([first, second], "").keys() == recall.after([first, third, fourth], "").keys() == {END}
    )
    assert recall.after([first, ""], "") == {}
