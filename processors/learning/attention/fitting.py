"""The attention model as a learner beside the others: hyperedges are the structures that traces called, and
what capabilities contain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pml.processors.learning.attention.membership import Contained, Membership
from pml.processors.learning.attention.model import Attention
from pml.processors.learning.attention.training import DEFAULTS, Settings, Training, learned_from, train
from pml.processors.learning.traces import TraceSet, Vectors


def fit_attention(
    traces: TraceSet,
    points: Vectors,
    texts: Vectors,
    seed: int,
    contained: Contained,
    *,
    settings: Settings = DEFAULTS,
) -> Attention:
    """Learn with messages along the distinct structures of the traces that are learned from, and along what
    capabilities contain.

    What only validating traces called together is no hyperedge: else validation, which says when to stop,
    would be asked what the hypergraph tells. Looks are read where that pays (`_what_pays`).

    Args:
        traces: what to learn from; their `texts` name rows of `texts`.
        points: float32 [size, dimensions], the description of each item of the vocabulary.
        texts: float32 [rows, dimensions], what was visible.
        seed: of everything that is drawn.
        contained: of capabilities, by their numbers, those of what they call.
        settings: the model's sizes and the training's.

    Raises:
        ValueError: there is no trace.
    """
    learned = traces.selected(np.flatnonzero(learned_from(traces, seed)))
    membership = Membership.of_structures(learned, len(points), contained)
    return _what_pays(
        traces,
        seed,
        lambda looks: train(
            traces, points, texts, seed, membership=membership, settings=settings, features=looks
        ),
    )


def fit_head(traces: TraceSet, points: Vectors, texts: Vectors, seed: int) -> Attention:
    """The same without messages: what they are worth is the difference. Arguments are those of
    `fit_attention`."""
    return _what_pays(traces, seed, lambda looks: train(traces, points, texts, seed, features=looks))


def _what_pays(traces: TraceSet, seed: int, trained: Callable[[Vectors | None], Training]) -> Attention:
    """The model that reads what the latest item was called with, where validation says that it is better.

    Of two that are equally good the one without; so where there is no validation nothing else is trained.
    """
    without = trained(None)
    looks = traces.prefixes(np.arange(len(traces.items))).features
    if looks is None or not looks.any() or learned_from(traces, seed).all():
        return without.model
    # Of equal ones the first.
    return max((without, trained(looks)), key=lambda each: max(each.mrr)).model
