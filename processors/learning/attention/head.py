"""The score of a candidate for what is asked: the same functions in training and in serving.

What is asked (text, latest items, features) becomes a vector; each head compares its part of it with that
part of the candidate's, and a gate, a softmax of what is asked, says how much each head counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pml.processors.learning.attention.parameters import Floats, Parameters
from pml.processors.learning.attention.passing import softmax, times, times_slopes
from pml.processors.learning.compiled import compiled_reordered
from pml.processors.learning.vocabulary import Ids

# No candidate at this place.
NOBODY = -1
# Adam moves every parameter by about as much; the closeness of texts must come further than the others.
CLOSENESS_PACE = np.float32(10)


class Asked(NamedTuple):
    """Of each prefix: `texts` float32 [prefixes, text], `recent` int32 [prefixes, recent], the latest first,
    and `features` float32 [prefixes, features].
    """

    texts: Floats
    recent: Ids
    features: Floats


class Scorer(NamedTuple):
    """What a score is made from: `parameters`, and of each node `vectors` float32 [nodes, width] and `points`
    float32 [nodes, text] of its description.
    """

    parameters: Parameters
    vectors: Floats
    points: Floats


class Encoded(NamedTuple):
    """One prefix: its `text`, `recent`, `features`; the `history` [width] that was read, `vector` [width],
    `gates` [heads] with the sum 1, and `weighed` [width], the vector with each part weighed by its gate.
    """

    text: Floats
    recent: Ids
    features: Floats
    history: Floats
    vector: Floats
    gates: Floats
    weighed: Floats


class Slopes(NamedTuple):
    """Of the loss: those of `parameters`, and of each node's vector, float32 [nodes, width]."""

    parameters: Parameters
    vectors: Floats


@compiled_reordered
def encode(scorer: Scorer, asked: Asked, row: int) -> Encoded:
    """Make a vector of what one prefix asks."""
    parameters = scorer.parameters
    width, heads = parameters.gate.shape
    text, recent, features = asked.texts[row], asked.recent[row], asked.features[row]
    history, weighed = np.zeros(width, dtype=np.float32), np.zeros(width, dtype=np.float32)
    for place in range(len(recent)):
        for j in range(width):
            history[j] += parameters.recency[place, j] * scorer.vectors[recent[place], j]
    vector, gates = parameters.asked_bias.copy(), np.zeros(heads, dtype=np.float32)
    times(text, parameters.asked_text, vector)
    times(history, parameters.asked_recent, vector)
    times(features, parameters.asked_features, vector)
    times(vector, parameters.gate, gates)
    softmax(gates)
    part = width // heads
    scale = np.float32(heads / np.sqrt(part))
    for j in range(width):
        weighed[j] = vector[j] * gates[j // part] * scale
    return Encoded(text, recent, features, history, vector, gates, weighed)


@compiled_reordered
def score(scorer: Scorer, encoded: Encoded, item: int) -> np.float32:
    """How well an item fits what is asked."""
    total, near = scorer.parameters.item_bias[item], np.float32(0)
    for j in range(len(encoded.weighed)):
        total += encoded.weighed[j] * scorer.vectors[item, j]
    for j in range(len(encoded.text)):
        near += encoded.text[j] * scorer.points[item, j]
    return np.float32(total + CLOSENESS_PACE * scorer.parameters.closeness[0] * near)


@compiled_reordered
def all_scores(scorer: Scorer, asked: Asked, found: Floats) -> None:
    """Write the score of the first m nodes for every prefix to `found`, float32 [prefixes, m]."""
    for row in range(len(asked.texts)):
        encoded = encode(scorer, asked, row)
        for item in range(found.shape[1]):
            found[row, item] = score(scorer, encoded, item)


@compiled_reordered
def candidate_shares(scorer: Scorer, encoded: Encoded, items: Ids) -> Floats:
    """float32 [candidates]: softmax of the scores of int32 `items`, 0 of `NOBODY`."""
    shares = np.empty(len(items), dtype=np.float32)
    for place in range(len(items)):
        item = items[place]
        shares[place] = score(scorer, encoded, item) if item != NOBODY else -np.inf
    softmax(shares)
    return shares


@compiled_reordered
def score_slopes(scorer: Scorer, encoded: Encoded, items: Ids, slopes: Floats, found: Slopes) -> None:
    """Add what slopes [candidates] of the scores mean to those of parameters and vectors."""
    parameters, vectors = scorer.parameters, scorer.vectors
    width = len(encoded.vector)
    weighed_slopes = np.zeros(width, dtype=np.float32)
    near = np.float32(0)
    for place in range(len(items)):
        item, slope = items[place], slopes[place]
        if item == NOBODY:
            continue
        found.parameters.item_bias[item] += slope
        for j in range(width):
            weighed_slopes[j] += slope * vectors[item, j]
            found.vectors[item, j] += slope * encoded.weighed[j]
        for j in range(len(encoded.text)):
            near += slope * encoded.text[j] * scorer.points[item, j]
    found.parameters.closeness[0] += CLOSENESS_PACE * near
    asked_slopes = np.zeros(width, dtype=np.float32)
    _gate_slopes(parameters, encoded, weighed_slopes, asked_slopes, found.parameters)
    history_slopes = np.zeros(width, dtype=np.float32)
    unused_text = np.zeros(len(encoded.text), dtype=np.float32)
    unused_features = np.zeros(len(encoded.features), dtype=np.float32)
    times_slopes(encoded.text, parameters.asked_text, asked_slopes, unused_text, found.parameters.asked_text)
    times_slopes(
        encoded.features,
        parameters.asked_features,
        asked_slopes,
        unused_features,
        found.parameters.asked_features,
    )
    times_slopes(
        encoded.history, parameters.asked_recent, asked_slopes, history_slopes, found.parameters.asked_recent
    )
    for j in range(width):
        found.parameters.asked_bias[j] += asked_slopes[j]
    for place in range(len(encoded.recent)):
        item = encoded.recent[place]
        for j in range(width):
            found.parameters.recency[place, j] += history_slopes[j] * vectors[item, j]
            found.vectors[item, j] += history_slopes[j] * parameters.recency[place, j]


@compiled_reordered
def _gate_slopes(
    parameters: Parameters, encoded: Encoded, weighed_slopes: Floats, asked_slopes: Floats, found: Parameters
) -> None:
    """Add the slopes of the asked vector [width] and the gate's, from those of the weighed vector."""
    width, heads = len(encoded.vector), len(encoded.gates)
    part = width // heads
    scale = np.float32(heads / np.sqrt(part))
    gate_slopes = np.zeros(heads, dtype=np.float32)
    for j in range(width):
        head = j // part
        asked_slopes[j] += weighed_slopes[j] * encoded.gates[head] * scale
        gate_slopes[head] += weighed_slopes[j] * encoded.vector[j] * scale
    mean = np.float32(0)
    for head in range(heads):
        mean += encoded.gates[head] * gate_slopes[head]
    for head in range(heads):
        gate_slopes[head] = encoded.gates[head] * (gate_slopes[head] - mean)
    times_slopes(encoded.vector, parameters.gate, gate_slopes, asked_slopes, found.gate)
