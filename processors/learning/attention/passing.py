"""Messages along the hypergraph, one level after another, and their slopes.

A node adds to its vector what it hears: attention over the senders' transformed vectors, a head for each part
of the vector (Veličković et al. 2018, arXiv 1710.10903; over hyperedges: Ding et al. 2020, arXiv 2011.00387).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.attention.membership import Messages
from pml.processors.learning.attention.parameters import Floats
from pml.processors.learning.compiled import compiled_reordered

# Of logits below 0, as in the paper.
LEAK = np.float32(0.2)


class Hearing(NamedTuple):
    """Those of one direction: `transform` float32 [width, width] of what is said, `receiver` and `sender`
    float32 [width], a part for each head, of who hears and who speaks: how much is heard.
    """

    transform: Floats
    receiver: Floats
    sender: Floats


class Passed(NamedTuple):
    """float32 [nodes, width]: `inputs`, `outputs` after all was heard, what was `said` and what was `heard`;
    `attention` float32 [heads, pairs], and bool likewise where its logit was `negative`.
    """

    inputs: Floats
    outputs: Floats
    said: Floats
    heard: Floats
    attention: Floats
    negative: NDArray[np.bool_]


@compiled_reordered
def times(vector: Floats, matrix: Floats, found: Floats) -> None:
    """Add vector [n] · matrix [n, m] to `found` [m]."""
    for i in range(matrix.shape[0]):
        factor = vector[i]
        for j in range(matrix.shape[1]):
            found[j] += factor * matrix[i, j]


@compiled_reordered
def times_slopes(
    vector: Floats, matrix: Floats, slopes: Floats, vector_slopes: Floats, matrix_slopes: Floats
) -> None:
    """Add what `slopes` [m] of `times` mean for its vector [n] and its matrix [n, m]."""
    for i in range(matrix.shape[0]):
        total, factor = np.float32(0), vector[i]
        for j in range(matrix.shape[1]):
            total += slopes[j] * matrix[i, j]
            matrix_slopes[i, j] += factor * slopes[j]
        vector_slopes[i] += total


@compiled_reordered
def heads_dot(vector: Floats, weights: Floats, found: Floats) -> None:
    """Write the product of vector and weights [width] in each head's part to `found` [heads]."""
    part = len(vector) // len(found)
    for head in range(len(found)):
        total = np.float32(0)
        for j in range(head * part, (head + 1) * part):
            total += vector[j] * weights[j]
        found[head] = total


@compiled_reordered
def softmax(values: Floats) -> None:
    """Replace float32 [n] by its softmax."""
    most, total = values[0], np.float32(0)
    for i in range(len(values)):
        most = max(most, values[i])
    for i in range(len(values)):
        values[i] = np.exp(values[i] - most)
        total += values[i]
    for i in range(len(values)):
        values[i] /= total


@compiled_reordered
def passed(inputs: Floats, messages: Messages, hearing: Hearing, heads: int) -> Passed:
    """Let every node hear its senders, in the order of `messages`; `inputs` float32 [nodes, width]."""
    outputs, said, heard = inputs.copy(), np.zeros_like(inputs), np.zeros_like(inputs)
    attention = np.zeros((heads, len(messages.senders)), dtype=np.float32)
    negative = np.zeros((heads, len(messages.senders)), dtype=np.bool_)
    loudness = np.zeros((len(inputs), heads), dtype=np.float32)
    own = np.zeros(heads, dtype=np.float32)
    part = inputs.shape[1] // heads
    for node in messages.order:
        start, end = messages.offsets[node], messages.offsets[node + 1]
        if end > start:
            heads_dot(inputs[node], hearing.receiver, own)
            for head in range(heads):
                for pair in range(start, end):
                    logit = own[head] + loudness[messages.senders[pair], head]
                    negative[head, pair] = logit < 0
                    attention[head, pair] = logit * LEAK if logit < 0 else logit
                softmax(attention[head, start:end])
                for pair in range(start, end):
                    for j in range(head * part, (head + 1) * part):
                        heard[node, j] += attention[head, pair] * said[messages.senders[pair], j]
            for j in range(inputs.shape[1]):
                heard[node, j] = np.tanh(heard[node, j])
                outputs[node, j] += heard[node, j]
        if messages.sends[node]:
            times(outputs[node], hearing.transform, said[node])
            heads_dot(outputs[node], hearing.sender, loudness[node])
    return Passed(inputs, outputs, said, heard, attention, negative)


@compiled_reordered
def passed_slopes(messages: Messages, hearing: Hearing, kept: Passed, slopes: Floats, found: Hearing) -> None:
    """Turn the slopes of what `passed` gave into those of what it got.

    `slopes` float32 [nodes, width] are of its outputs before and of its inputs after; to `found` those of
    `hearing` are added.
    """
    inputs, outputs, said, heard, attention, negative = kept
    heads, width = attention.shape[0], inputs.shape[1]
    part = width // heads
    said_slopes = np.zeros_like(said)
    loud_slopes = np.zeros((len(inputs), heads), dtype=np.float32)
    before_tanh = np.zeros(width, dtype=np.float32)
    for place in range(len(messages.order) - 1, -1, -1):
        node = messages.order[place]
        if messages.sends[node]:
            times_slopes(outputs[node], hearing.transform, said_slopes[node], slopes[node], found.transform)
            for j in range(width):
                slopes[node, j] += loud_slopes[node, j // part] * hearing.sender[j]
                found.sender[j] += loud_slopes[node, j // part] * outputs[node, j]
        start, end = messages.offsets[node], messages.offsets[node + 1]
        if end == start:
            continue
        for j in range(width):
            before_tanh[j] = slopes[node, j] * (np.float32(1) - heard[node, j] * heard[node, j])
        for head in range(heads):
            low, high = head * part, (head + 1) * part
            mean = np.float32(0)
            for pair in range(start, end):
                spoken, toward = messages.senders[pair], np.float32(0)
                for j in range(low, high):
                    toward += before_tanh[j] * said[spoken, j]
                    said_slopes[spoken, j] += attention[head, pair] * before_tanh[j]
                mean += attention[head, pair] * toward
            own = np.float32(0)
            for pair in range(start, end):
                spoken, toward = messages.senders[pair], np.float32(0)
                for j in range(low, high):
                    toward += before_tanh[j] * said[spoken, j]
                logit = attention[head, pair] * (toward - mean)
                logit *= LEAK if negative[head, pair] else np.float32(1)
                loud_slopes[spoken, head] += logit
                own += logit
            for j in range(low, high):
                slopes[node, j] += own * hearing.receiver[j]
                found.receiver[j] += own * inputs[node, j]
