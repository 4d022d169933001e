"""What is compiled says what the plain model says, and its slopes are those of finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.attention.descent import Batch, Descent, Graph, adam, scorer_of, step_slopes
from pml.processors.learning.attention.head import NOBODY, Asked, all_scores
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.parameters import Parameters, Sizes, count, drawn, shapes, views
from tests.processors.learning import plain_attention

NODES, HELD = 9, 4
SIZES = Sizes(nodes=NODES, text=3, width=4, heads=2, recent=2, features=2)
# Of float64 differences: their error is some millionths.
NEAR = 1e-5


def problem(seed: int, contained: dict[int, list[int]]) -> tuple[Membership, Graph, Batch]:
    draws = np.random.default_rng(seed)
    membership = Membership.of(NODES, contained)
    graph = Graph(
        draws.normal(0, 0.5, (NODES, 3)).astype(np.float32), membership.upward(), membership.downward()
    )
    asked = Asked(
        draws.normal(0, 0.5, (HELD, 3)).astype(np.float32),
        draws.integers(0, NODES, (HELD, 2)).astype(np.int32),
        draws.normal(size=(HELD, 2)).astype(np.float32),
    )
    candidates = draws.permuted(np.tile(np.arange(NODES), (HELD, 1)), axis=1)[:, :5].astype(np.int32)
    candidates[1, 3] = NOBODY
    candidates[3, 0] = NOBODY
    weights = draws.uniform(0.5, 1, HELD).astype(np.float32)
    return (
        membership,
        graph,
        Batch(asked, candidates, weights, draws.integers(0, 2, NODES).astype(np.float32)),
    )


def parameters_of(seed: int) -> np.ndarray:
    """None of them 0, so that every path counts, and no share so small that it is cut."""
    flat = drawn(SIZES, seed) + np.random.default_rng(seed).normal(0, 0.3, count(SIZES)).astype(np.float32)
    views(flat, SIZES).closeness[:] = 0.1
    return flat


@st.composite
def memberships(draw: st.DrawFn) -> dict[int, list[int]]:
    """Hyperedges 5 to 8 over anything below them: up to four levels."""
    return {
        owner: draw(st.lists(st.integers(1, owner - 1), max_size=4, unique=True)) for owner in range(5, NODES)
    }


@given(st.integers(0, 1_000), memberships())
@settings(max_examples=12, deadline=None, derandomize=True)
def test_vectors_scores_and_loss_are_those_of_the_plain_model(
    seed: int, contained: dict[int, list[int]]
) -> None:
    membership, graph, batch = problem(seed, contained)
    flat = parameters_of(seed)
    parameters, plain = views(flat, SIZES), Parameters(*(each.astype(float) for each in views(flat, SIZES)))
    nodes = plain_attention.vectors(plain, graph.points, batch.own, membership)
    scorer = scorer_of(parameters, graph, batch.own)
    np.testing.assert_allclose(scorer.vectors, nodes, rtol=1e-3, atol=1e-4)
    found = np.zeros((HELD, NODES), dtype=np.float32)
    all_scores(scorer, batch.asked, found)
    for row in range(HELD):
        told = plain_attention.scores(
            plain, graph.points, nodes, batch.asked, row=row, items=list(range(NODES))
        )
        np.testing.assert_allclose(found[row], told, rtol=1e-3, atol=1e-3)
    loss, chances = step_slopes(parameters, graph, batch, views(np.zeros_like(flat), SIZES))
    assert loss == pytest.approx(plain_attention.loss(plain, graph.points, membership, batch), rel=1e-3)
    told = [found[0, item] for item in batch.candidates[0]]
    assert chances[0] == pytest.approx(np.exp(told[0]) / np.sum(np.exp(told)), rel=1e-3)
    assert chances[3] == 0


@pytest.mark.parametrize("name", list(shapes(SIZES)))
def test_slopes_are_finite_differences_of_the_plain_loss_in_float64(name: str) -> None:
    membership, graph, batch = problem(7, {5: [1, 2], 6: [2, 3, 5], 7: [4], 8: [6, 7, 1]})
    assert membership.levels.max() == 3
    flat = parameters_of(7)
    slopes = np.zeros_like(flat)
    step_slopes(views(flat, SIZES), graph, batch, views(slopes, SIZES))
    found = getattr(views(slopes, SIZES), name)
    plain = Parameters(*(each.astype(float) for each in views(flat, SIZES)))
    changed = getattr(plain, name)
    assert np.any(found != 0)
    for place in np.ndindex(changed.shape):
        was, told = changed[place], []
        for changed[place] in (was + NEAR, was - NEAR):
            told.append(plain_attention.loss(plain, graph.points, membership, batch))
        changed[place] = was
        assert found[place] == pytest.approx((told[0] - told[1]) / (2 * NEAR), rel=2e-3, abs=2e-4)


def test_adam_moves_against_the_slope_and_shrinks() -> None:
    flat, slopes = np.array([1.0, -2.0, 3.0], np.float32), np.array([4.0, -0.5, 0.0], np.float32)
    means, squares = np.zeros(3, np.float32), np.zeros(3, np.float32)
    adam(Descent(flat, slopes, means, squares), 1, 0.1, 0.01)
    np.testing.assert_allclose(flat, [1 - 0.1 - 0.001, -2 + 0.1 + 0.002, 3 - 0.003], rtol=1e-5)
    assert not slopes.any()
