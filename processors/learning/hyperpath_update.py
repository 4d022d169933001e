"""Shortest hyperpaths after edits: only what the edits touch is searched again (DESIGN §7, DR-DSP's place).

After Ausiello et al. (dynamic hypergraphs) and Gao et al. (arXiv 1202.0082).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pml.processors.learning.hypergraph import Edits, Numbers
from pml.processors.learning.hyperpath_search import Changed, repair
from pml.processors.learning.hyperpaths import HyperpathTree

# Edits at once, as a share of all hyperedges, above which searching from scratch is as fast: measured on
# 10,000 vertices and 30,000 hyperedges by `python -m benchmarks.learning.hyperpaths`.
CROSSOVER = 0.05


@dataclass(frozen=True, slots=True)
class Updated:
    """How it was done: from scratch or not; if not, how many vertices had to be given a hyperpath anew."""

    recomputed: bool
    vertices: int


def update(tree: HyperpathTree, edits: Edits, crossover: float = CROSSOVER) -> Updated:
    """Edit the tree's graph, and make the tree what `shortest_hyperpaths` would find, distance by distance.

    Of hyperpaths of equal cost it may keep another one. Weights may rise and fall, hyperedges come and go,
    all in one call.

    Args:
        tree: changed in place, as is its graph.
        edits: count together; an impossible one leaves everything as it was.
        crossover: the share of the hyperedges above which all is searched from scratch.

    Raises:
        ValueError: as `Hypergraph.apply`, or the graph was edited without this tree.
    """
    tree.check_current()
    graph, added = tree.graph, len(tree.graph)
    changed = np.array([*edits.weights, *edits.removed], dtype=np.int64)
    graph.check(edits)
    before = graph.weights[changed]
    graph.apply(edits)
    if len(edits) > crossover * added:
        tree.recompute()
        return Updated(recomputed=True, vertices=0)
    after = graph.weights[changed]
    raised, new = changed[after > before], np.arange(added, len(graph))
    lowered: Numbers = np.concatenate([changed[after < before], new])
    lost = repair(*tree.searched(), tree.cost, Changed(raised, lowered, added))
    tree.mark_current()
    return Updated(recomputed=False, vertices=lost)
