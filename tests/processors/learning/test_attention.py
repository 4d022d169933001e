"""It learns what membership decides and counting cannot know; one predictor in training and in serving."""

from __future__ import annotations

import io
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.attention import samples, training
from pml.processors.learning.attention.fitting import fit_attention, fit_head
from pml.processors.learning.attention.head import NOBODY
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.attention.samples import Samples
from pml.processors.learning.attention.training import Learner, Settings, Training, learned_from, train
from pml.processors.learning.candidates import candidates
from pml.processors.learning.evaluation import quality
from pml.processors.learning.markov import Markov
from pml.processors.learning.prioritised_replay import PrioritisedReplay
from pml.processors.learning.traces import NO_TEXT, Prefixes, TraceSet
from pml.processors.learning.vocabulary import UNKNOWN
from tests.processors.learning.small_traces import LISTS, SIZE, prefixes_of, trace_set

DOMAINS, CAPABILITIES, TOOLS, SEEN = 8, 3, 5, 3
SMALL = Settings(width=16, heads=2, text=4, negatives=32, epochs_most=15, rate=1e-2)
# So few traces: more steps an epoch.
OFTEN = replace(SMALL, traces_at_once=4)
NO_POINTS = np.zeros((0, 4), dtype=np.float32)


@cache
def planted() -> tuple[Membership, TraceSet, TraceSet]:
    """Two tools of one domain's capabilities, then the domain's last tool, which no capability contains.

    Of each capability two tools are in no training trace: that they belong to it is all that is known.
    """
    draws = np.random.default_rng(1)
    tools = np.arange(1, 1 + DOMAINS * CAPABILITIES * TOOLS).reshape(DOMAINS, CAPABILITIES, TOOLS)
    last = np.arange(DOMAINS) + tools.size + 1
    capabilities = np.arange(DOMAINS * CAPABILITIES).reshape(DOMAINS, CAPABILITIES) + last[-1] + 1
    domains = np.arange(DOMAINS) + capabilities.max() + 1
    contained = dict(zip(capabilities.ravel().tolist(), tools.reshape(-1, TOOLS).tolist(), strict=True))
    contained |= dict(zip(domains.tolist(), capabilities.tolist(), strict=True))
    known = tools[:, :, :SEEN].reshape(DOMAINS, -1)
    seen = [
        [*draws.choice(known[each], 2).tolist(), int(last[each])]
        for each in np.repeat(np.arange(DOMAINS), 20)
    ]
    new = [
        [*tools[each, capability, SEEN:].tolist(), int(last[each])]
        for each in range(DOMAINS)
        for capability in range(CAPABILITIES)
    ]
    return Membership.of(int(domains[-1]) + 1, contained), without_texts(seen), without_texts(new)


def without_texts(lists: list[list[int]], outcomes: list[float] | None = None) -> TraceSet:
    return replace(trace_set(lists, outcomes=outcomes), texts=np.full(sum(map(len, lists)), NO_TEXT))


@cache
def trained(passing: bool = True, prioritised: bool = False) -> Training:
    membership, seen, _ = planted()
    points = np.zeros((membership.nodes, 4), dtype=np.float32)
    settings = replace(SMALL, prioritised=prioritised)
    return train(seen, points, NO_POINTS, 1, membership=membership if passing else None, settings=settings)


def test_where_what_surprises_is_replayed_more_often_an_epoch_says_what_did() -> None:
    membership, seen, _ = planted()
    points = np.zeros((membership.nodes, 4), dtype=np.float32)
    nothing = np.zeros((len(seen.items), 0), dtype=np.float32)
    settings = replace(SMALL, prioritised=True)
    learner = Learner(seen, points, NO_POINTS, 1, membership, settings, nothing)
    assert isinstance(learner.replay, PrioritisedReplay)
    before = learner.replay.priorities
    learner.epoch(0)
    assert (learner.replay.priorities != before).any()


def last_calls() -> tuple[Prefixes, np.ndarray]:
    new = planted()[2]
    places = new.offsets[1:] - 1
    return new.prefixes(places), new.items[places]


def test_membership_decides_where_markov_has_nothing_to_count() -> None:
    membership, seen, _ = planted()
    prefixes, targets = last_calls()
    hits = {
        "attention": quality(candidates(trained().model, prefixes), targets).means()["hit_1"],
        "head alone": quality(candidates(trained(passing=False).model, prefixes), targets).means()["hit_1"],
        "markov": quality(candidates(Markov.fit(seen, membership.nodes, 2), prefixes), targets).means()[
            "hit_1"
        ],
    }
    assert membership.levels.max() == 2
    assert hits["attention"] >= 0.9
    assert hits["markov"] <= 0.5
    assert hits["head alone"] <= 0.5


def test_prioritised_replay_learns_it_as_well() -> None:
    prefixes, targets = last_calls()
    model = trained(prioritised=True).model
    assert quality(candidates(model, prefixes), targets).means()["hit_1"] >= 0.9


def test_a_seed_decides_everything() -> None:
    membership, seen, _ = planted()
    points = np.zeros((membership.nodes, 4), dtype=np.float32)
    short = replace(SMALL, epochs_most=2)
    first, again, other = (
        train(seen, points, NO_POINTS, seed, membership=membership, settings=short) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.model.flat, again.model.flat)
    assert first.losses == again.losses
    assert first.mrr == again.mrr
    assert first.losses != other.losses


def test_the_best_epoch_is_kept_and_training_stops_after_it() -> None:
    membership, seen, _ = planted()
    points = np.zeros((membership.nodes, 4), dtype=np.float32)
    learner = Learner(
        seen,
        points,
        NO_POINTS,
        1,
        membership,
        replace(SMALL, epochs_most=15, patience=2),
        np.zeros((len(seen.items), 0), dtype=np.float32),
    )
    found = learner.trained()
    assert len(found.mrr) == min(15, len(found.mrr) - int(np.argmax(found.mrr[::-1])) + 2)
    assert learner.validation() == max(found.mrr)


def test_an_epoch_is_bounded_however_many_traces_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    membership, seen, _ = planted()
    points, features = np.zeros((membership.nodes, 4), np.float32), np.zeros((len(seen.items), 0), np.float32)
    learner = Learner(seen, points, NO_POINTS, 1, membership, OFTEN, features)
    learner.epoch(0)
    assert learner.steps == -(-len(learner.replay) // 4)
    monkeypatch.setattr(training, "DRAWN_MOST", 8)
    learner.epoch(0.5)
    assert learner.steps == -(-len(learner.replay) // 4) + 2


def test_of_many_traces_of_one_length_validation_asks_for_steps_at_every_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, seen, _ = planted()
    points = np.zeros((int(seen.items.max()) + 1, 4), np.float32)
    features, nothing = np.zeros((len(seen.items), 0), np.float32), Membership.of(len(points), {})
    whole = Learner(seen, points, NO_POINTS, 1, nothing, SMALL, features).validated
    # Two steps of each trace are asked for, so every second is at the same place.
    monkeypatch.setattr(training, "VALIDATED_MOST", len(whole) // 2)
    some = Learner(seen, points, NO_POINTS, 1, nothing, SMALL, features).validated
    assert len(some) == len(whole) // 2
    assert {*some.tolist()} < {*whole.tolist()}
    assert {*(some % 3).tolist()} == {1, 2}


def test_of_a_long_trace_steps_are_learned_at_every_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second step is of one item; a batch has room for half of them, and another draws others."""
    monkeypatch.setattr(samples, "STEPS_MOST", 20)
    traces = without_texts([[1, 2] * 20, [3, 4]])
    found = Samples(traces, NO_POINTS, np.zeros((42, 0), np.float32), 2, 4, 1, SIZE)
    places, owners = found.steps_of(np.array([1, 0]), [1, 1])
    assert (places[:2].tolist(), owners.tolist()) == ([40, 41], [0] * 2 + [1] * 20)
    assert np.bincount(traces.items[places[2:]]).min(initial=20, where=[False, True, True]) >= 4
    assert places.tolist() == found.steps_of(np.array([1, 0]), [1, 1])[0].tolist()
    assert places.tolist() != found.steps_of(np.array([1, 0]), [1, 2])[0].tolist()


def test_hyperedges_are_structures_of_what_is_learned_from_alone() -> None:
    _, seen, _ = planted()
    size = int(seen.items.max()) + 1
    points = np.zeros((size, 4), dtype=np.float32)
    learned = learned_from(seen, 1)
    assert 0 < np.sum(~learned) < len(seen) / 4
    found = fit_attention(seen, points, NO_POINTS, 1, {})
    contained = {
        frozenset(found.membership.members[found.membership.owners == owner].tolist()) - set(range(size, 999))
        for owner in np.unique(found.membership.owners)
    }
    structures = [
        {frozenset(each) for each in seen.selected(np.flatnonzero(rows)).items.reshape(-1, 3).tolist()}
        for rows in (learned, ~learned)
    ]
    assert contained == structures[0]
    assert structures[1] - structures[0]
    told = fit_attention(seen, points, NO_POINTS, 1, {5: [1, 2]}).membership
    assert told.members[told.owners == 5].tolist() == [1, 2], "what the catalog says that a capability calls"
    assert told.nodes == found.membership.nodes
    assert len(fit_head(seen, points, NO_POINTS, 1).membership.owners) == 0


def test_texts_that_no_trace_names_say_nothing() -> None:
    seen = replace(planted()[1], texts=np.zeros(len(planted()[1].items), dtype=np.int64))
    points = np.zeros((planted()[0].nodes, 4), dtype=np.float32)
    short = replace(SMALL, epochs_most=1, text=1)
    texts = np.eye(4, dtype=np.float32)[:1]
    more = np.concatenate((texts, 100 * np.eye(4, dtype=np.float32)[1:]))
    alone, beside = (train(seen, points, each, 1, settings=short).model for each in (texts, more))
    np.testing.assert_array_equal(alone.basis, beside.basis)
    np.testing.assert_array_equal(alone.flat, beside.flat)


def test_the_arrays_of_a_model_are_all_of_it() -> None:
    prefixes, _ = last_calls()
    stored = io.BytesIO()
    np.savez(stored, **trained().model.to_arrays())
    stored.seek(0)
    with np.load(stored, allow_pickle=False) as arrays:
        again = Attention.from_arrays(dict(arrays))
    np.testing.assert_array_equal(again.probabilities(prefixes), trained().model.probabilities(prefixes))
    with pytest.raises(ValueError, match="train it again"):
        Attention.from_arrays({})


def test_probabilities_are_shares_of_what_is_known() -> None:
    model = trained().model
    found = model.probabilities(prefixes_of([], [1], [1, 2, 3, 4, 5, 6], [UNKNOWN]))
    assert found.shape == (4, model.size)
    assert np.all(found[:, UNKNOWN] == 0)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert model.probabilities(prefixes_of()).shape == (0, model.size)


def test_what_failed_is_a_negative_and_what_worked_is_not() -> None:
    """After 1 both come as often: 2 ends well, 3 does not."""
    traces = without_texts([[1, 2], [1, 3]] * 30, [1.0, 0.0] * 30)
    points = np.zeros((5, 4), dtype=np.float32)
    found = train(traces, points, NO_POINTS, 1, settings=OFTEN).model.probabilities(prefixes_of([1]))[0]
    assert found[2] > 0.8
    assert found[3] < 0.1


def test_a_run_that_failed_is_a_negative_wherever_in_its_session_it_stands() -> None:
    """After 1 both come as often: 2 fails, though most of its session goes well."""
    traces = replace(
        without_texts([[1, 2, 4], [1, 3, 4]] * 30, [2 / 3, 1.0] * 30),
        success=np.array([1, 0, 1, 1, 1, 1] * 30, dtype=np.float32),
    )
    points = np.zeros((5, 4), dtype=np.float32)
    model = train(traces, points, NO_POINTS, 1, settings=OFTEN).model
    after_one, after_two = model.probabilities(prefixes_of([1], [1, 2]))
    assert after_one[3] > 0.8
    assert after_one[2] < 0.1
    assert after_two[4] > 0.8


@given(LISTS, st.data())
def test_failures_of_a_batch_are_what_failed_after_the_same_item(
    lists: list[list[int]], data: st.DataObject
) -> None:
    count, failures = sum(map(len, lists)), 3
    went = data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count))
    traces = trace_set(lists, texts=[NO_TEXT] * len(lists), success=went)
    samples = Samples(traces, NO_POINTS, np.zeros((count, 0), np.float32), 2, 4, failures, SIZE)
    batch = samples.batch(np.arange(count), np.ones(count), np.ones(SIZE, dtype=np.float32), [1])
    latest = [before for items in lists for before in [UNKNOWN, *items][: len(items)]]
    assert batch.weights.tolist() == went
    for place, named in enumerate(batch.candidates[:, -failures:].tolist()):
        failed = {
            item
            for before, item, good in zip(latest, traces.items.tolist(), went, strict=True)
            if before == latest[place] and not good and item != UNKNOWN
        }
        assert set(named) <= {*failed, NOBODY}


@given(st.integers(0, 100), st.integers(1, 9))
def test_an_item_is_a_negative_as_often_as_it_fails_there(failed: int, seed: int) -> None:
    """After 1 come 2, which fails sometimes, and 3, which never does, a hundred times each."""
    went = [1.0, 0.0] * failed + [1.0, 1.0] * (200 - failed)
    traces = trace_set([[1, 2]] * 100 + [[1, 3]] * 100, texts=[NO_TEXT] * 200, success=went)
    failures, steps = 8, np.arange(201, 400, 2)
    samples = Samples(traces, NO_POINTS, np.zeros((400, 0), np.float32), 2, 4, failures, SIZE)
    batch = samples.batch(steps, np.ones(100), np.ones(SIZE, dtype=np.float32), [seed])
    drawn = batch.candidates[:, -failures:]
    share = failed / 200
    assert {*drawn.ravel().tolist()} <= {2, NOBODY}
    assert np.mean(drawn == 2) == pytest.approx(share, abs=6 * np.sqrt(share * (1 - share) / drawn.size))


def test_a_rare_failure_takes_little_from_what_mostly_succeeds() -> None:
    """After 1 both come as often: 2 failed once in fifty, 3 never."""
    went = [1.0, 0.0, *[1.0] * 198]
    traces = replace(without_texts([[1, 2], [1, 3]] * 50), success=np.array(went, dtype=np.float32))
    points = np.zeros((5, 4), dtype=np.float32)
    settings = replace(OFTEN, failures=32)
    found = train(traces, points, NO_POINTS, 1, settings=settings).model.probabilities(prefixes_of([1]))[0]
    assert found[2] > 0.35


def test_features_of_a_prefix_decide_where_they_differ() -> None:
    """After 1 comes 2 or 3, as the feature says."""
    traces = without_texts([[1, 2], [1, 3]] * 30)
    told = np.zeros((120, 2), dtype=np.float32)
    told[1::4, 0] = told[3::4, 1] = 1
    points = np.zeros((5, 4), dtype=np.float32)
    model = train(traces, points, NO_POINTS, 1, settings=OFTEN, features=told).model
    asked = replace(prefixes_of([1], [1]), features=np.eye(2, dtype=np.float32))
    assert candidates(model, asked, 1).items.ravel().tolist() == [2, 3]
    with pytest.raises(ValueError, match="trained with 2 features"):
        model.probabilities(replace(asked, features=np.eye(3, dtype=np.float32)[:2]))
    plain = train(traces, points, NO_POINTS, 1, settings=OFTEN).model
    without = plain.probabilities(replace(asked, features=None))
    np.testing.assert_array_equal(plain.probabilities(asked), without, "who reads none passes them over")


def test_what_cannot_be_learned_from_is_refused() -> None:
    points = np.zeros((5, 4), dtype=np.float32)
    with pytest.raises(ValueError, match="no trace"):
        train(trace_set([]), points, NO_POINTS, 1)
    with pytest.raises(ValueError, match="as many nodes"):
        train(trace_set([[1]]), points, NO_POINTS, 1, membership=Membership.of(3, {}))
