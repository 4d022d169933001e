"""Which traces a learner sees next, and how much each counts."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.prioritised_replay import PrioritisedReplay, Replay, UniformReplay

PRIORITIES = [1.0, 0.5, 0.01, 0.2, 0.9]


def chances() -> list[float]:
    powers = [priority**0.6 for priority in PRIORITIES]
    return [power / sum(powers) for power in powers]


def test_items_are_drawn_as_often_as_their_priorities_to_the_power_of_alpha_say() -> None:
    items = PrioritisedReplay(PRIORITIES).sample(100_000, seed=1, progress=0).items
    assert np.bincount(items) / len(items) == pytest.approx(chances(), abs=1e-4)


@pytest.mark.parametrize(("progress", "beta"), [(0.0, 0.4), (0.5, 0.7), (1.0, 1.0)])
def test_weights_undo_the_bias_more_and_more(progress: float, beta: float) -> None:
    batch = PrioritisedReplay(PRIORITIES).sample(2_000, seed=1, progress=progress)
    plain = [(5 * chances()[item]) ** -beta for item in batch.items]
    assert batch.weights == pytest.approx(np.array(plain) / max(plain))
    assert batch.weights.max() == 1


def test_at_the_end_a_weighted_mean_is_the_mean_over_all_items() -> None:
    losses = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    batch = PrioritisedReplay(PRIORITIES).sample(100_000, seed=1, progress=1)
    assert np.average(losses[batch.items], weights=batch.weights) == pytest.approx(losses.mean(), rel=0.01)


def test_new_priorities_count_from_then_on() -> None:
    replay = PrioritisedReplay(PRIORITIES)
    replay.update([0, 2, 2], [0.01, 0.3, 1.0])
    assert replay.priorities.tolist() == [0.01, 0.5, 1.0, 0.2, 0.9]
    fresh = PrioritisedReplay(replay.priorities).sample(50, seed=7, progress=0.3)
    batch = replay.sample(50, seed=7, progress=0.3)
    assert np.array_equal(batch.items, fresh.items)
    assert np.array_equal(batch.weights, fresh.weights)


def test_alpha_zero_gives_every_item_the_same_chance_and_weight() -> None:
    batch = PrioritisedReplay(PRIORITIES, alpha=0).sample(1_000, seed=1, progress=0.5)
    assert np.bincount(batch.items).tolist() == [200] * 5
    assert set(batch.weights) == {1.0}


def test_uniform_draws_take_no_notice_of_priorities() -> None:
    replay = UniformReplay(5)
    before = replay.sample(20_000, seed=1, progress=0)
    replay.update([0], [0.01])
    after = replay.sample(20_000, seed=1, progress=1)
    assert np.array_equal(before.items, after.items)
    assert np.bincount(after.items) / 20_000 == pytest.approx([0.2] * 5, abs=0.02)
    assert set(after.weights) == {1.0}


@pytest.mark.parametrize("replay", [PrioritisedReplay(PRIORITIES), UniformReplay(5)])
def test_a_seed_decides_the_draw_and_nothing_else_does(replay: Replay) -> None:
    np.random.seed(0)
    first = replay.sample(50, seed=[3, 1], progress=0)
    np.random.seed(1)
    assert np.array_equal(first.items, replay.sample(50, seed=[3, 1], progress=0).items)
    assert not np.array_equal(first.items, replay.sample(50, seed=[3, 2], progress=0).items)


@pytest.mark.parametrize("replay", [PrioritisedReplay(PRIORITIES), UniformReplay(5)])
def test_wrong_arguments_are_refused_by_both_alike(replay: Replay) -> None:
    with pytest.raises(ValueError, match="at least one"):
        replay.sample(0, seed=1, progress=0)
    with pytest.raises(ValueError, match="progress"):
        replay.sample(1, seed=1, progress=1.5)
    for items, given in ([5], [0.5]), ([0, 1], [0.5]), ([0], [0.0]):
        with pytest.raises(ValueError, match=r"is needed|are numbered|in \(0, 1\]"):
            replay.update(items, given)


def test_an_alpha_outside_of_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="alpha"):
        PrioritisedReplay(PRIORITIES, alpha=1.5)
