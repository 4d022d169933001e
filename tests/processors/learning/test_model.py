"""What serves answers as the learner it was made of, before and after it was written."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.candidates import candidates
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.learners import LEARNERS, Given, asked
from pml.processors.learning.model import Candidate, NextModel, fitted
from pml.processors.learning.requests import read_requests
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_sessions import DESCRIPTIONS, NAMES, drawn_sessions

EMBEDDING = HashedNgrams()
SESSIONS = drawn_sessions(12, 1, by_request=True)
HISTORIES = ((), ("files:read",), ("mail:send", "nobody:knows", "files:read"), ("nobody:knows",))
REQUESTS = ("", "please draw a chart", "read the file, then send it as a mail")


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_model_read_again_says_the_same(learner: str) -> None:
    model = fitted(SESSIONS, EMBEDDING, 1, learner)
    again = NextModel.from_arrays(model.to_arrays(), EMBEDDING)
    assert again.learner == learner
    for history in HISTORIES:
        for request in REQUESTS:
            found = model.candidates(history, request, 3)
            assert again.candidates(history, request, 3) == found
            assert len(found) <= 3
            assert {each.name for each in found} <= set(NAMES)
            assert [each.confidence for each in found] == sorted(
                (each.confidence for each in found), reverse=True
            )
            assert all(0 < each.confidence <= 1 for each in found)


@pytest.mark.parametrize("learner", LEARNERS)
def test_it_serves_what_was_judged(learner: str) -> None:
    """One question in words is the same as its row among the prefixes that a learner is judged by."""
    descriptions = SESSIONS.described()
    requests = read_requests(SESSIONS.texts, descriptions, EMBEDDING)
    learnt = LEARNERS[learner].fit(Given(SESSIONS.traces, EMBEDDING.embed(descriptions), requests, 1))
    traces, rows = SESSIONS.traces, np.array([1, 7, 23])
    judged = candidates(asked(learnt, requests), traces.prefixes(rows, requests.points))
    model = fitted(SESSIONS, EMBEDDING, 1, learner)
    for number, row in enumerate(rows.tolist()):
        start = int(traces.offsets[traces.owners[row]])
        history = [NAMES_BY_NUMBER[item] for item in traces.items[start:row].tolist()]
        found = model.candidates(history, SESSIONS.texts[int(traces.texts[row])])
        expected = {
            NAMES_BY_NUMBER[item]: share
            for item, share in zip(
                judged.items[number].tolist(), judged.probabilities[number].tolist(), strict=True
            )
            if item
        }
        assert {each.name: each.confidence for each in found} == pytest.approx(expected, abs=1e-5)


NAMES_BY_NUMBER = dict(enumerate(sorted(NAMES), start=1))


def test_confidence_is_what_calibration_makes_of_a_score() -> None:
    half = Isotonic(np.array([0.0, 1.0]), np.array([0.0, 0.5]))
    plain = fitted(SESSIONS, EMBEDDING, 1, "markov_1")
    calibrated = NextModel.from_arrays(
        fitted(SESSIONS, EMBEDDING, 1, "markov_1", calibration=half).to_arrays(), EMBEDDING
    )
    expected = [Candidate(each.name, each.confidence / 2) for each in plain.candidates(["files:read"], "")]
    assert list(calibrated.candidates(["files:read"], "")) == expected


def test_the_request_decides_where_it_names_what_comes() -> None:
    model = fitted(drawn_sessions(40, 2, by_request=True), EMBEDDING, 1, "ranker")
    for name, told in DESCRIPTIONS.items():
        assert model.candidates(["files:read"], f"please {told}", 1)[0].name == name


def test_what_does_not_fit_is_refused() -> None:
    arrays = fitted(SESSIONS, EMBEDDING, 1, "markov_1").to_arrays()
    other = HashedNgrams()
    other.name = "another"
    with pytest.raises(ValueError, match="hashed-ngrams-1, this is another"):
        NextModel.from_arrays(arrays, other)
    with pytest.raises(ValueError, match="no array"):
        NextModel.from_arrays({name: arrays[name] for name in arrays if name != "name_bytes"}, EMBEDDING)
    with pytest.raises(ValueError, match="format"):
        NextModel.from_arrays(arrays | {"format": np.array([2])}, EMBEDDING)
    with pytest.raises(ValueError, match="no fitting array keys_0"):
        NextModel.from_arrays({name: arrays[name] for name in arrays if name != "learnt.keys_0"}, EMBEDDING)


def test_what_only_others_called_has_no_number() -> None:
    sessions = drawn_sessions(2, 3, by_request=False, items=2)
    known = sessions.known_from(np.array([0]))
    called = {sessions.vocabulary.name(int(item)) for item in sessions.traces.items[:2]}
    assert set(known.vocabulary.names) == called
    names = [known.vocabulary.name(int(item)) for item in known.traces.items]
    before = [sessions.vocabulary.name(int(item)) for item in sessions.traces.items]
    assert names == [name if name in called else None for name in before]
