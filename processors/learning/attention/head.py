"""The score of a candidate for what is asked: the same functions in training and in serving.

What is asked (text, latest items, features) becomes a vector; each head compares its part of it with that part
of the candidate's, and a gate, a softmax of what is asked, says how much each head counts.
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
# Adam moves every parameter by about as much; the closeness of texts must come further than a matrix's numbers.
CLOSENESS_PACE = np.float32(10)


class Asked(NamedTuple):
    """Of each prefix: `texts` float32 [prefixes, text], `recent` int32 [prefixes, recent], the latest first,
    and `features` float32 [prefixes, features].
    """

    texts: Floats
    recent: Ids
    features: Floats


class Encoded(NamedTuple):
    """Of one prefix: the `history` [width] that was read, `vector` [width], `gates` [heads] with the sum 1,
    and `weighed` [width], the vector with each part weighed by its gate. Written by `encode`.
    """

    history: Floats
    vector: Floats
    gates: Floats
    weighed: Floats


@compiled_reordered
def room(width: int, heads: int) -> Encoded:
    """Where one prefix can be encoded."""
    return Encoded(
        np.zeros(width, dtype=np.float32),
        np.zeros(width, dtype=np.float32),
        np.zeros(heads, dtype=np.float32),
        np.zeros(width, dtype=np.float32),
    )


@compiled_reordered
def encode(parameters: Parameters, vectors: Floats, asked: Asked, row: int, found: Encoded) -> None:
    """Make a vector of what one prefix asks; `vectors` float32 [nodes, width] are those of the items."""
    for j in range(len(found.vector)):
        found.history[j] = 0
        found.vector[j] = parameters.asked_bias[j]
    for place in range(asked.recent.shape[1]):
        item = asked.recent[row, place]
        for j in range(len(found.history)):
            found.history[j] += parameters.recency[place, j] * vectors[item, j]
    times(asked.texts[row], parameters.asked_text, found.vector)
    times(found.history, parameters.asked_recent, found.vector)
    times(asked.features[row], parameters.asked_features, found.vector)
    for head in range(len(found.gates)):
        found.gates[head] = 0
    times(found.vector, parameters.gate, found.gates)
    softmax(found.gates)
    part = len(found.vector) // len(found.gates)
    scale = np.float32(len(found.gates) / np.sqrt(part))
    for j in range(len(found.vector)):
        found.weighed[j] = found.vector[j] * found.gates[j // part] * scale


@compiled_reordered
def score(
    weighed: Floats, vector: Floats, text: Floats, point: Floats, closeness: float, bias: float
) -> np.float32:
    """How well a candidate fits what is asked.

    Args:
        weighed: float32 [width], of `encode`.
        vector: float32 [width], of the candidate.
        text: float32 [text], what was visible; `point` likewise, the candidate's description.
        closeness: what the product of those two counts, in `CLOSENESS_PACE`.
        bias: of the candidate.
    """
    total, near = np.float32(bias), np.float32(0)
    for j in range(len(weighed)):
        total += weighed[j] * vector[j]
    for j in range(len(text)):
        near += text[j] * point[j]
    return np.float32(total + CLOSENESS_PACE * np.float32(closeness) * near)


@compiled_reordered
def all_scores(parameters: Parameters, vectors: Floats, points: Floats, asked: Asked, found: Floats) -> None:
    """Write the score of the first m nodes for every prefix to `found`, float32 [prefixes, m]."""
    encoded = room(vectors.shape[1], parameters.gate.shape[1])
    for row in range(len(asked.texts)):
        encode(parameters, vectors, asked, row, encoded)
        for item in range(found.shape[1]):
            found[row, item] = score(
                encoded.weighed,
                vectors[item],
                asked.texts[row],
                points[item],
                parameters.closeness[0],
                parameters.item_bias[item],
            )


@compiled_reordered
def candidate_shares(
    parameters: Parameters,
    vectors: Floats,
    points: Floats,
    asked: Asked,
    row: int,
    items: Ids,
    encoded: Encoded,
) -> Floats:
    """float32 [candidates]: softmax of the scores of int32 `items`, 0 of `NOBODY`; `encoded` is written."""
    encode(parameters, vectors, asked, row, encoded)
    shares = np.empty(len(items), dtype=np.float32)
    for place in range(len(items)):
        item = items[place]
        shares[place] = -np.inf
        if item != NOBODY:
            shares[place] = score(
                encoded.weighed,
                vectors[item],
                asked.texts[row],
                points[item],
                parameters.closeness[0],
                parameters.item_bias[item],
            )
    softmax(shares)
    return shares


@compiled_reordered
def score_slopes(
    parameters: Parameters,
    vectors: Floats,
    points: Floats,
    asked: Asked,
    row: int,
    items: Ids,
    slopes: Floats,
    encoded: Encoded,
    found: Parameters,
    vector_slopes: Floats,
) -> None:
    """Add what slopes [candidates] of the scores mean for parameters (`found`) and vectors of items."""
    width = len(encoded.vector)
    weighed_slopes = np.zeros(width, dtype=np.float32)
    near = np.float32(0)
    for place in range(len(items)):
        item, slope = items[place], slopes[place]
        if item == NOBODY:
            continue
        found.item_bias[item] += slope
        for j in range(width):
            weighed_slopes[j] += slope * vectors[item, j]
            vector_slopes[item, j] += slope * encoded.weighed[j]
        for j in range(asked.texts.shape[1]):
            near += slope * asked.texts[row, j] * points[item, j]
    found.closeness[0] += CLOSENESS_PACE * near
    asked_slopes = np.zeros(width, dtype=np.float32)
    _gate_slopes(parameters, encoded, weighed_slopes, asked_slopes, found)
    history_slopes = np.zeros(width, dtype=np.float32)
    unused_text = np.zeros(asked.texts.shape[1], dtype=np.float32)
    unused_features = np.zeros(asked.features.shape[1], dtype=np.float32)
    times_slopes(asked.texts[row], parameters.asked_text, asked_slopes, unused_text, found.asked_text)
    times_slopes(
        asked.features[row], parameters.asked_features, asked_slopes, unused_features, found.asked_features
    )
    times_slopes(encoded.history, parameters.asked_recent, asked_slopes, history_slopes, found.asked_recent)
    for j in range(width):
        found.asked_bias[j] += asked_slopes[j]
    for place in range(asked.recent.shape[1]):
        item = asked.recent[row, place]
        for j in range(width):
            found.recency[place, j] += history_slopes[j] * vectors[item, j]
            vector_slopes[item, j] += history_slopes[j] * parameters.recency[place, j]


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
