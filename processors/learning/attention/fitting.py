"""The attention model as a learner beside the others: hyperedges are the structures that traces called, and
what capabilities contain."""

from __future__ import annotations

import numpy as np

from pml.processors.learning.attention.membership import Contained, Membership
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.attention.training import learned_from, train
from pml.processors.learning.traces import TraceSet, Vectors


def fit_attention(
    traces: TraceSet, points: Vectors, texts: Vectors, seed: int, contained: Contained
) -> Attention:
    """Learn with messages along the distinct structures of the traces that are learned from, and along what
    capabilities contain.

    What only validating traces called together is no hyperedge: else validation, which says when to stop,
    would be asked what the hypergraph tells.

    Args:
        traces: what to learn from; their `texts` name rows of `texts`.
        points: float32 [size, dimensions], the description of each item of the vocabulary.
        texts: float32 [rows, dimensions], what was visible.
        seed: of everything that is drawn.
        contained: of capabilities, by their numbers, those of what they call.

    Raises:
        ValueError: there is no trace.
    """
    learned = traces.selected(np.flatnonzero(learned_from(traces, seed)))
    membership = Membership.of_structures(learned, len(points), contained)
    return train(traces, points, texts, seed, membership=membership).model


def fit_head(traces: TraceSet, points: Vectors, texts: Vectors, seed: int) -> Attention:
    """The same without messages: what they are worth is the difference. Arguments are those of
    `fit_attention`."""
    return train(traces, points, texts, seed).model
