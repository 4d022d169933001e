"""What recurs word for word is recalled, as sure as it was right where others had gone the same way."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.choosing import calibrate
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.judging import judge
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.learners import LEARNERS
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.recall import CASES_LEAST, END, Recall, agreed
from pml.processors.learning.scene import Past
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.prediction import HISTORY_MOST

Told = tuple[str, tuple[str, ...]]

NAMES = ("s:a", "s:b", "s:c")
TOLD = st.tuples(
    st.sampled_from(["", "do it", "undo"]), st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)
)
# Ten workflows without any order that could be learned of the others.
FLOWS: list[Told] = [
    (f"run {number}", tuple(f"s:{letter}" for letter in word))
    for number, word in enumerate(
        ["bagd", "cfae", "dhbc", "eacf", "fdgh", "ghab", "hbcd", "adhe", "bfeg", "cgfa"]
    )
]


def known(told: list[Told]) -> list[KnownSession]:
    return [
        KnownSession(
            tuple(Past(name, {}, None) for name in names),
            ("", *[text] * (len(names) - 1)),
            number,
            (f"c{number}", 0),
            text,
        )
        for number, (text, names) in enumerate(told)
    ]


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(TOLD, min_size=12, max_size=30))
def test_it_says_what_the_other_sessions_there_did(drawn: list[tuple[str, list[str]]]) -> None:
    told = [(text, tuple(names)) for text, names in drawn]
    sessions = as_sequences(known(told), {})
    beginnings = [
        ((text, names[:place]), names[place] if place < len(names) else "")
        for text, names in told
        for place in range(1, len(names) + 1)
    ]
    scores, right, hits = [], [], []
    for one, (beginning, came) in enumerate(beginnings):
        others = Counter(
            other for two, (same, other) in enumerate(beginnings) if two != one and same == beginning
        )
        for name, count in others.items():
            scores.append(count / (others.total() + 1))
            right.append(name == came)
        if others:
            hits.append(max(sorted(others), key=lambda name: others[name]) == came)
    found = Recall.fit(sessions)
    assert (found is None) == (len(scores) < CASES_LEAST)
    if found is None:
        return
    assert (found.asked, found.right) == (len(hits), sum(hits))
    curve = Isotonic.fit(np.array(scores), np.array(right))
    assert found.curve.to_arrays()["scores"].tolist() == curve.scores.tolist()
    assert found.curve.to_arrays()["probabilities"].tolist() == curve.probabilities.tolist()
    for beginning, _ in beginnings:
        text, names = beginning
        there = Counter(came for same, came in beginnings if same == beginning)
        likely = {
            "" if item == END else sessions.vocabulary.name(item): said
            for item, said in found.after(names, text).items()
        }
        expected = {
            name: float(curve(np.array([count / (there.total() + 1)]))[0])
            for name, count in there.items()
            if there.total() > 1
        }
        assert likely == pytest.approx(expected)


def test_a_beginning_that_went_on_in_a_thousand_ways_is_counted_in_little_room() -> None:
    ways = [("", ("s:a", f"s:way_{number % 1_000}")) for number in range(2_000)]
    sessions = as_sequences(known(ways), {})
    tracemalloc.start()
    try:
        found = Recall.fit(sessions)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert found.asked == 4_000
    assert most < 10_000_000


def served(told: list[Told], learner: str, *, recalls: bool = True) -> NextModel:
    """As `pml train` makes it."""
    sessions, embedding = as_sequences(known(told), {}), HashedNgrams()
    judged = judge(sessions, embedding, 1, learners={learner: LEARNERS[learner]})
    calibration = calibrate(judged, learner).calibration
    recall = Recall.fit(sessions) if recalls else None
    return fitted(sessions, embedding, 1, learner, calibration=calibration, recall=recall)


@pytest.mark.parametrize("learner", ["popularity", "nearest"])
def test_workflows_that_recur_are_foreseen_surely_by_whatever_serves(learner: str) -> None:
    model, forgetful = served(FLOWS * 20, learner), served(FLOWS * 20, learner, recalls=False)
    for text, names in FLOWS:
        for place in range(1, len(names)):
            first = model.candidates(names[:place], text)[0]
            assert first.name == names[place]
            assert first.confidence > 0.95
            assert forgetful.candidates(names[:place], text)[0].confidence < 0.5
        assert all(each.confidence < 0.2 for each in model.candidates(names, text)), "it ended so each time"


def test_what_never_recurs_changes_nothing() -> None:
    told: list[Told] = [(f"plan {number}", FLOWS[number % 10][1]) for number in range(60)]
    assert Recall.fit(as_sequences(known(told), {})) is None
    mixed = served(FLOWS * 5 + told, "markov_1")
    forgetful = replace(mixed, recall=None)
    assert mixed.candidates(["s:b"], "plan 3") == forgetful.candidates(["s:b"], "plan 3")


def test_a_model_read_again_recalls_the_same() -> None:
    model = served(FLOWS * 4, "markov_1")
    again = NextModel.from_arrays(model.to_arrays(), HashedNgrams())
    for text, names in FLOWS:
        assert again.candidates(names[:2], text) == model.candidates(names[:2], text)
    for name, wrong in (("recall.starts", np.array([0, 1])), ("recall.items", np.array([10**6] * 30))):
        with pytest.raises(ValueError, match="train it again"):
            NextModel.from_arrays(model.to_arrays() | {name: wrong}, HashedNgrams())


def test_a_learner_leaves_room_for_what_is_recalled() -> None:
    said = {"a": 0.6, "b": 0.3}
    assert agreed(said, {"c": 0.9}) == [("c", 0.9), ("a", pytest.approx(0.1)), ("b", pytest.approx(0.1))]
    assert agreed(said, {}, 0.8) == [("a", pytest.approx(0.2)), ("b", pytest.approx(0.2))]
    assert agreed(said, {"b": 0.2}) == [("a", 0.6), ("b", 0.3)]
    assert agreed(said, {"a": 0.7, "b": 0.1}) == [("a", 0.7), ("b", 0.3)]


def test_one_session_that_goes_round_in_circles_is_no_habit() -> None:
    """What is remembered of a long session is no beginning, and its own repetitions are not others'."""
    circles = [("go round", ("s:a",) * 40), *[(f"plan {number}", ("s:b", "s:c")) for number in range(5)]]
    assert Recall.fit(as_sequences(known(circles), {})) is None
    found = Recall.fit(as_sequences(known([*circles, *FLOWS * 3, circles[0]]), {}))
    assert found is not None
    assert found.after(("s:a",) * 5, "go round")
    assert found.after(("s:a",) * HISTORY_MOST, "go round") == {}


def test_who_may_go_on_is_no_example_of_an_end() -> None:
    """Thirty are at work and have called the first, as twenty did who then called the second."""
    minute_ms = 60_000
    went = known([("tidy up", ("s:list", "s:read"))] * 20)
    began = known([("tidy up", ("s:list",))] * 15)
    told = [
        *(ended(one, minute, minute + minute_ms) for minute, one in enumerate(went)),
        *(ended(one, 60 * minute_ms + number) for number, one in enumerate(began)),
    ]
    likely = recalled_after_first(told)
    assert END not in likely
    assert max(likely.values()) > 0.9
    # An hour later they did nothing more.
    later = ended(went[0], 120 * minute_ms, 121 * minute_ms)
    assert recalled_after_first([*told, later])[END] == pytest.approx(15 / 35, abs=0.03)


def ended(session: KnownSession, *ends_ms: int) -> KnownSession:
    return replace(session, ended_ms=ends_ms[-1], ends_ms=ends_ms)


def recalled_after_first(told: Sequence[KnownSession]) -> Mapping[int, float]:
    found = Recall.fit(as_sequences(told, {}))
    assert found is not None
    return found.after(("s:list",), "tidy up")


def test_what_a_request_was_when_a_session_ended_says_that_it_may_end() -> None:
    """Of those with this request most are over after their first call: what goes on is no longer likely."""
    told: list[Told] = [("tidy up", ("s:list",))] * 98 + [("tidy up", ("s:list", "s:read"))] * 22
    found = Recall.fit(as_sequences(known(told), {}))
    assert found is not None
    likely = found.after(("s:list",), "tidy up")
    assert likely[END] == pytest.approx(98 / 120, abs=0.02)
    assert max(said for item, said in likely.items() if item != END) == pytest.approx(22 / 120, abs=0.02)
