"""The score of a candidate for what is asked: the same functions in training and in serving.

What is asked (text, latest items, features) becomes a vector; each head compares its part of it with that
part of the candidate's, and a gate, a softmax of what is asked, says how much each head counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pml.processors.learning.attention.parameters import Floats, Parameters
from pml.processors.learning.attention.passing import softmax
from pml.processors.learning.attention.products import matrix_slopes, row_slopes, times
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


class Shares(NamedTuple):
    """Of the candidates of one prefix: `shares` float32 [candidates], the softmax of their scores, 0 of
    `NOBODY`; and `near` likewise, how near their descriptions are to the text.
    """

    shares: Floats
    near: Floats


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
        recency, read = parameters.recency[place], scorer.vectors[recent[place]]
        for j in range(width):
            history[j] += recency[j] * read[j]
    vector, gates = parameters.asked_bias.copy(), np.zeros(heads, dtype=np.float32)
    times(text, parameters.asked_text, vector)
    times(history, parameters.asked_recent, vector)
    times(features, parameters.asked_features, vector)
    times(vector, parameters.gate, gates)
    softmax(gates)
    part = width // heads
    scale = np.float32(heads / np.sqrt(part))
    for head in range(heads):
        low = head * part
        for j in range(part):
            weighed[low + j] = vector[low + j] * gates[head] * scale
    return Encoded(text, recent, features, history, vector, gates, weighed)


@compiled_reordered
def nearness(scorer: Scorer, encoded: Encoded, item: int) -> np.float32:
    """How near an item's description is to the text."""
    text, point, near = encoded.text, scorer.points[item], np.float32(0)
    for j in range(len(text)):
        near += text[j] * point[j]
    return near


@compiled_reordered
def score_of(scorer: Scorer, encoded: Encoded, item: int, near: np.float32) -> np.float32:
    """How well an item of this nearness fits what is asked."""
    weighed, vector, total = encoded.weighed, scorer.vectors[item], scorer.parameters.item_bias[item]
    for j in range(len(weighed)):
        total += weighed[j] * vector[j]
    return np.float32(total + CLOSENESS_PACE * scorer.parameters.closeness[0] * near)


@compiled_reordered
def all_scores(scorer: Scorer, asked: Asked, found: Floats) -> None:
    """Write the score of the first m nodes for every prefix to `found`, float32 [prefixes, m]."""
    for row in range(len(asked.texts)):
        encoded = encode(scorer, asked, row)
        for item in range(found.shape[1]):
            found[row, item] = score_of(scorer, encoded, item, nearness(scorer, encoded, item))


@compiled_reordered
def candidate_shares(scorer: Scorer, encoded: Encoded, items: Ids) -> Shares:
    """Of int32 `items` [candidates]."""
    found = Shares(np.full(len(items), -np.inf, dtype=np.float32), np.zeros(len(items), dtype=np.float32))
    for place in range(len(items)):
        item = items[place]
        if item != NOBODY:
            found.near[place] = nearness(scorer, encoded, item)
            found.shares[place] = score_of(scorer, encoded, item, found.near[place])
    softmax(found.shares)
    return found


@compiled_reordered
def score_slopes(scorer: Scorer, encoded: Encoded, items: Ids, given: Shares, found: Slopes) -> Floats:
    """Add what slopes of the scores mean to those of parameters and vectors.

    `given` has the slopes in place of the shares. Returned are the slopes [width] of the prefix's vector,
    which `asked_slopes` passes on for all prefixes at once.
    """
    width = len(encoded.vector)
    weighed_slopes, near = np.zeros(width, dtype=np.float32), np.float32(0)
    for place in range(len(items)):
        item, slope = items[place], given.shares[place]
        if item == NOBODY:
            continue
        found.parameters.item_bias[item] += slope
        near += slope * given.near[place]
        vector, vector_slopes = scorer.vectors[item], found.vectors[item]
        for j in range(width):
            weighed_slopes[j] += slope * vector[j]
            vector_slopes[j] += slope * encoded.weighed[j]
    found.parameters.closeness[0] += CLOSENESS_PACE * near
    return _gate_slopes(scorer.parameters, encoded, weighed_slopes, found.parameters)


@compiled_reordered
def asked_slopes(scorer: Scorer, asked: Asked, histories: Floats, slopes: Floats, found: Slopes) -> None:
    """Add what slopes [prefixes, width] of the prefixes' vectors mean to those of parameters and vectors.

    `histories` [prefixes, width] are those that were read.
    """
    parameters, given, width = scorer.parameters, found.parameters, slopes.shape[1]
    matrix_slopes(asked.texts, slopes, given.asked_text)
    matrix_slopes(asked.features, slopes, given.asked_features)
    matrix_slopes(histories, slopes, given.asked_recent)
    history_slopes = np.zeros_like(slopes)
    row_slopes(slopes, parameters.asked_recent, history_slopes)
    for row in range(len(slopes)):
        for j in range(width):
            given.asked_bias[j] += slopes[row, j]
        for place in range(asked.recent.shape[1]):
            vector, recency = scorer.vectors[asked.recent[row, place]], parameters.recency[place]
            vector_slopes = found.vectors[asked.recent[row, place]]
            for j in range(width):
                given.recency[place, j] += history_slopes[row, j] * vector[j]
                vector_slopes[j] += history_slopes[row, j] * recency[j]


@compiled_reordered
def _gate_slopes(
    parameters: Parameters, encoded: Encoded, weighed_slopes: Floats, found: Parameters
) -> Floats:
    """The slopes of the asked vector [width], from those of the weighed vector; the gate's are added."""
    width, heads = len(encoded.vector), len(encoded.gates)
    part = width // heads
    scale = np.float32(heads / np.sqrt(part))
    slopes, gate_slopes = np.zeros(width, dtype=np.float32), np.zeros(heads, dtype=np.float32)
    mean = np.float32(0)
    for head in range(heads):
        total, low = np.float32(0), head * part
        for j in range(part):
            slopes[low + j] = weighed_slopes[low + j] * encoded.gates[head] * scale
            total += weighed_slopes[low + j] * encoded.vector[low + j]
        gate_slopes[head] = total * scale
        mean += encoded.gates[head] * gate_slopes[head]
    for head in range(heads):
        gate_slopes[head] = encoded.gates[head] * (gate_slopes[head] - mean)
    for j in range(width):
        for head in range(heads):
            slopes[j] += gate_slopes[head] * parameters.gate[j, head]
            found.gate[j, head] += gate_slopes[head] * encoded.vector[j]
    return slopes
