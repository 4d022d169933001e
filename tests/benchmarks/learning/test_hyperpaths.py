"""What the benchmark of hyperpaths draws is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.learning.hyperpaths import KINDS, drawn_edits, drawn_hyperedges, mixed_edits
from pml.processors.learning.hypergraph import Hypergraph


def drawn() -> tuple[np.random.Generator, Hypergraph]:
    draws = np.random.default_rng(1)
    return draws, Hypergraph(50, drawn_hyperedges(draws, 50, 200))


def test_hyperedges_are_the_same_under_the_same_seed() -> None:
    again = [drawn_hyperedges(np.random.default_rng(1), 50, 200) for _ in range(2)]
    assert again[0] == again[1]
    assert all(1 <= len(edge.inputs) <= 3 and edge.weight > 0 for edge in again[0])


@pytest.mark.parametrize("kind", KINDS)
def test_edits_of_a_kind_are_of_that_kind(kind: str) -> None:
    draws, graph = drawn()
    edits = drawn_edits(draws, graph, kind, 20)
    assert len(edits) == 20
    assert len(edits.removed) == (20 if kind == "removal" else 0)
    assert len(edits.added) == (20 if kind == "insertion" else 0)
    for number, weight in edits.weights.items():
        assert (weight > graph.weights[number]) == (kind == "weight rises")


def test_mixed_edits_are_of_all_kinds() -> None:
    draws, graph = drawn()
    edits = mixed_edits(draws, graph, 100)
    rising = sum(weight > graph.weights[number] for number, weight in edits.weights.items())
    assert (len(edits.removed), len(edits.added), len(edits.weights)) == (10, 10, 80)
    assert rising == 35
    assert len(mixed_edits(draws, graph, 1)) == 1
