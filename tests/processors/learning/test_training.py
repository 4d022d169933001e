"""What serves is the best baseline unless something learned is surely better; nobody is asked what it saw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pml.processors.learning.choosing import GROUPS_LEAST, Choice, calibrate, choose
from pml.processors.learning.judging import Scored, Unjudgeable, ask, judge, passing_gain
from pml.processors.learning.learners import BASELINES, LEARNERS, USUAL
from pml.processors.learning.learning_curve import learning_curve
from pml.processors.learning.splits import leaks
from pml.processors.learning.training import Verdict, examined, judged_and_chosen, selected, split
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_sessions import drawn_sessions

EMBEDDING = HashedNgrams()
COUNTABLE = drawn_sessions(30, 1, by_request=False, items=4)
READABLE = drawn_sessions(30, 1, by_request=True, items=4)


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    """Of all learners, where counting is right."""
    return judged_and_chosen(COUNTABLE, EMBEDDING, 1)


def test_the_best_baseline_serves_where_nothing_learned_is_surely_better(verdict: Verdict) -> None:
    assert (verdict.choice.serves, verdict.choice.baseline) == ("markov_1", "markov_1")
    assert "markov_1 is the best baseline" in verdict.choice.reason
    assert "not surely better" in verdict.choice.reason
    rows = verdict.rows(1)
    assert set(rows) == set(USUAL)
    assert rows["markov_1"]["hit_1"] == {"mean": 1, "interval": (1, 1)}


def test_what_was_learned_serves_where_its_whole_interval_is_above_the_baseline() -> None:
    judged = judge(
        READABLE,
        EMBEDDING,
        1,
        learners={name: LEARNERS[name] for name in ("popularity", "markov_1", "ranker")},
    )
    choice = choose(judged, 1)
    assert choice.serves == "ranker"
    assert choice.gains["ranker"]["interval"][0] > 0
    assert f"right more often than {choice.baseline}" in choice.reason

    few = choose(replace(judged, clusters=judged.clusters % (GROUPS_LEAST - 1)), 1)
    assert few.serves == few.baseline == choice.baseline
    assert f"until {GROUPS_LEAST} groups of sessions were asked about: these are 19" in few.reason
    assert few.gains["ranker"]["interval"][0] > 0
    enough = choose(replace(judged, clusters=judged.clusters % GROUPS_LEAST), 1)
    assert enough.serves == "ranker"


def test_the_more_was_learned_the_surer_each_has_to_be() -> None:
    names = ("popularity", "markov_1", "nearest")
    judged = judge(READABLE, EMBEDDING, 1, learners={name: LEARNERS[name] for name in names})
    alone = choose(judged, 1)
    others = {f"nearest_{number}": judged.ways["nearest"] for number in range(9)}
    among = choose(replace(judged, ways={**judged.ways, **others}), 1)
    (low, high), (lower, higher) = (each.gains["nearest"]["interval"] for each in (alone, among))
    assert lower < low < high < higher
    assert "10 that were learned together" in among.reason
    assert "together" not in alone.reason


def test_the_attention_model_serves_by_the_same_rule() -> None:
    names = ("popularity", "markov_1", "attention", "attention_head")
    judged = judge(READABLE, EMBEDDING, 1, learners={name: LEARNERS[name] for name in names})
    choice = choose(judged, 1)
    assert set(choice.gains) == {"attention", "attention_head"}
    assert choice.serves in choice.gains
    assert choice.gains[choice.serves]["interval"][0] > 0
    found = passing_gain(judged, 1)
    assert found is not None
    hits = [judged.ways[name].quality.means()["hit_1"] for name in ("attention", "attention_head")]
    assert found["hit_1"] == pytest.approx(hits[0] - hits[1], abs=1e-4)
    assert passing_gain(replace(judged, ways={"popularity": judged.ways["popularity"]}), 1) is None


def test_messages_that_do_not_surely_pay_are_not_sent_where_the_head_serves_without_them() -> None:
    names = ("popularity", "markov_1", "attention_head")
    judged = judge(READABLE, EMBEDDING, 1, learners={name: LEARNERS[name] for name in names})
    head = judged.ways["attention_head"]

    def chosen(passing: Scored, alone: Scored) -> Choice:
        ways = {"attention": passing, "attention_head": alone}
        return choose(replace(judged, ways={"popularity": judged.ways["popularity"], **ways}), 1)

    alike = chosen(head, head)
    assert alike.gains["attention"]["interval"][0] > 0
    assert alike.serves == "attention_head"
    assert "attention may not serve" in alike.reason
    less = np.where(np.arange(len(judged)) % 3 == 0, 0.0, head.quality.hit_1)
    worse = replace(head, quality=replace(head.quality, hit_1=less))
    paying = chosen(head, worse)
    assert paying.gains["attention_head"]["interval"][0] > 0
    assert (paying.serves, "may not serve" in paying.reason) == ("attention", False)
    # Nothing else is surely better than the baseline: then it need not be better than what does not serve.
    nothing = replace(head, quality=replace(head.quality, hit_1=judged.ways["popularity"].quality.hit_1))
    assert chosen(head, nothing).serves == "attention"


def test_every_item_but_the_first_of_a_session_is_asked_for_once() -> None:
    told: list[str] = []
    learners = {"popularity": BASELINES["popularity"]}
    judged = judge(COUNTABLE, EMBEDDING, 1, learners=learners, told=told.append)
    assert len(judged) == 30 * 3
    assert sorted(judged.clusters.tolist()) == sorted(list(range(30)) * 3)
    assert told == ["popularity"] * 5
    assert len(leaks(judged.clusters, judged.fold)) == 0


def test_nobody_is_asked_what_it_saw() -> None:
    """A fold's answers are those of a learner that never got the sessions of that fold."""
    learners = {"markov_2": BASELINES["markov_2"]}
    judged = judge(READABLE, EMBEDDING, 1, learners=learners)
    for held in range(5):
        rows = np.unique(judged.clusters[judged.fold == held])
        others = np.setdiff1d(np.arange(30), rows)
        again = ask(READABLE, others, rows, EMBEDDING, seed=1, learners=learners)
        alone = selected(READABLE, others).traces
        assert set(alone.groups.tolist()).isdisjoint(rows.tolist())
        assert again.ways["markov_2"].scores.tolist() == (
            judged.ways["markov_2"].scores[judged.fold == held].tolist()
        )


def test_one_group_is_not_enough_and_single_runs_ask_nothing() -> None:
    same = replace(COUNTABLE, traces=replace(COUNTABLE.traces, groups=np.zeros(30, dtype=np.int64)))
    with pytest.raises(Unjudgeable, match="fewer than two"):
        judge(same, EMBEDDING, 1, learners={"popularity": BASELINES["popularity"]})
    with pytest.raises(Unjudgeable, match="nothing to ask"):
        judged_and_chosen(drawn_sessions(4, 1, by_request=False, items=1), EMBEDDING, 1)


def test_calibration_is_judged_on_what_it_was_not_learned_of() -> None:
    judged = judge(READABLE, EMBEDDING, 1, learners={"popularity": BASELINES["popularity"]})
    found, way = calibrate(judged, "popularity"), judged.ways["popularity"]
    said = found.calibration(np.concatenate((way.scores[:, 0], way.ended[:, 0])))
    assert said.mean() == pytest.approx(way.right[:, 0].sum() / len(said), abs=0.1)
    assert set(found.report) == {"before", "after"}
    assert sum(found.report["after"]["curve"]["counts"]) == len(said) == len(judged) + 30
    nothing = replace(way, scores=np.zeros_like(way.scores), ended=np.zeros_like(way.ended))
    with pytest.raises(Unjudgeable, match="nothing was named"):
        calibrate(replace(judged, ways={"popularity": nothing}), "popularity")


def test_the_test_side_is_named_by_what_is_in_it_and_asked_of_what_serves(verdict: Verdict) -> None:
    parts = split(COUNTABLE, 0.3, 1)
    assert len(parts.training) + len(parts.test) == 30
    assert 2 <= len(parts.test) <= 16
    assert split(COUNTABLE, 0.3, 1).test_hash == parts.test_hash != split(COUNTABLE, 0.3, 2).test_hash
    found = examined(COUNTABLE, parts, verdict, EMBEDDING, 1)
    assert found is not None
    assert found["questions"] == 3 * len(parts.test)
    assert found["learners"]["markov_1"]["hit_1"]["mean"] == 1
    assert found["gain"]["hit_1"] == 0
    assert examined(COUNTABLE, split(COUNTABLE, 0.0, 1), verdict, EMBEDDING, 1) is None


def test_the_latest_sessions_may_be_the_test() -> None:
    parts = split(COUNTABLE, 0.3, 1, latest=True)
    times = COUNTABLE.traces.times_ms
    assert len(parts.test) > 0
    assert times[parts.training].max() < times[parts.test].min()
    assert len(split(COUNTABLE, 0.0, 1, latest=True).test) == 0


def test_sessions_that_come_later_move_none() -> None:
    more = drawn_sessions(60, 1, by_request=False, items=4)
    before, after = split(COUNTABLE, 0.3, 1), split(more, 0.3, 1)
    assert [row for row in after.test.tolist() if row < 30] == before.test.tolist()


def test_more_sessions_are_never_asked_about_other_questions() -> None:
    told: list[str] = []
    learners = {name: BASELINES[name] for name in ("popularity", "markov_1")}
    curve = learning_curve(
        COUNTABLE, EMBEDDING, 1, learners=learners, told=told.append, shares=(0.1, 0.5, 1.0)
    )
    assert curve.sessions == (2, 12, 24)
    assert curve.questions == 6 * 3
    assert curve.hits["markov_1"][-1] == 1
    assert list(curve.hits["markov_1"]) == sorted(curve.hits["markov_1"])
    assert len(told) == 6
