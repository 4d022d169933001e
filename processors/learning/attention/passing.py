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
from pml.processors.learning.attention.products import matrix_slopes, row_slopes, rows_times
from pml.processors.learning.compiled import compiled_reordered
from pml.processors.learning.vocabulary import Ids

# Of logits below 0, as in the paper.
LEAK = np.float32(0.2)
_TANH_END = np.float32(7.90531110763549805)
_ABOVE = (
    np.float32(4.89352455891786e-03),
    np.float32(6.37261928875436e-04),
    np.float32(1.48572235717979e-05),
    np.float32(5.12229709037114e-08),
    np.float32(-8.60467152213735e-11),
    np.float32(2.00018790482477e-13),
    np.float32(-2.76076847742355e-16),
)
_BELOW = (
    np.float32(4.89352518554385e-03),
    np.float32(2.26843463243900e-03),
    np.float32(1.18534705686654e-04),
    np.float32(1.19825839466702e-06),
)


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
def tanh(values: Floats) -> None:
    """Replace float32 [n] by its hyperbolic tangent, to some millionths: a quotient of polynomials.

    The coefficients are Eigen's (`MathFunctionsImpl.h`); where the tangent rounds to 1, they end.
    """
    for i in range(len(values)):
        x = min(max(values[i], -_TANH_END), _TANH_END)
        square = x * x
        above = _ABOVE[4] + square * (_ABOVE[5] + square * _ABOVE[6])
        above = _ABOVE[1] + square * (_ABOVE[2] + square * (_ABOVE[3] + square * above))
        below = _BELOW[1] + square * (_BELOW[2] + square * _BELOW[3])
        values[i] = x * (_ABOVE[0] + square * above) / (_BELOW[0] + square * below)


@compiled_reordered
def speaking(messages: Messages, level: int) -> Ids:
    """int32: the nodes of one level whom somebody hears."""
    nodes = messages.order[messages.starts[level] : messages.starts[level + 1]]
    return nodes[messages.sends[nodes]]


@compiled_reordered
def passed(inputs: Floats, messages: Messages, hearing: Hearing, heads: int) -> Passed:
    """Let every node hear its senders, one level after another; `inputs` float32 [nodes, width]."""
    outputs, said, heard = inputs.copy(), np.zeros_like(inputs), np.zeros_like(inputs)
    attention = np.zeros((heads, len(messages.senders)), dtype=np.float32)
    negative = np.zeros((heads, len(messages.senders)), dtype=np.bool_)
    loudness = np.zeros((len(inputs), heads), dtype=np.float32)
    own = np.zeros(heads, dtype=np.float32)
    part = inputs.shape[1] // heads
    for level in range(len(messages.starts) - 1):
        for node in messages.order[messages.starts[level] : messages.starts[level + 1]]:
            start, end = messages.offsets[node], messages.offsets[node + 1]
            if end == start:
                continue
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
            tanh(heard[node])
            for j in range(inputs.shape[1]):
                outputs[node, j] += heard[node, j]
        speakers = speaking(messages, level)
        words = np.zeros((len(speakers), inputs.shape[1]), dtype=np.float32)
        rows_times(outputs[speakers], hearing.transform, words)
        for row in range(len(speakers)):
            said[speakers[row]] = words[row]
            heads_dot(outputs[speakers[row]], hearing.sender, loudness[speakers[row]])
    return Passed(inputs, outputs, said, heard, attention, negative)


@compiled_reordered
def passed_slopes(messages: Messages, hearing: Hearing, kept: Passed, slopes: Floats, found: Hearing) -> None:
    """Turn the slopes of what `passed` gave into those of what it got.

    `slopes` float32 [nodes, width] are of its outputs before and of its inputs after; to `found` those of
    `hearing` are added.
    """
    said_slopes = np.zeros_like(kept.said)
    loud_slopes = np.zeros((len(kept.inputs), len(kept.attention)), dtype=np.float32)
    for level in range(len(messages.starts) - 2, -1, -1):
        speakers = speaking(messages, level)
        _said_slopes(speakers, hearing, kept.outputs, (said_slopes, loud_slopes), slopes, found)
        for node in messages.order[messages.starts[level] : messages.starts[level + 1]]:
            if messages.offsets[node + 1] > messages.offsets[node]:
                _heard_slopes(node, messages, hearing, kept, (said_slopes, loud_slopes), slopes, found)


@compiled_reordered
def _said_slopes(
    speakers: Ids,
    hearing: Hearing,
    outputs: Floats,
    given: tuple[Floats, Floats],
    slopes: Floats,
    found: Hearing,
) -> None:
    """Add what slopes of all that was said, and of how loud it was, mean to those of its speakers' outputs."""
    said_slopes, loud_slopes = given
    width, heads = outputs.shape[1], loud_slopes.shape[1]
    part = width // heads
    spoken, words = outputs[speakers], said_slopes[speakers]
    matrix_slopes(spoken, words, found.transform)
    more = np.zeros_like(spoken)
    row_slopes(words, hearing.transform, more)
    for row in range(len(speakers)):
        node = speakers[row]
        for head in range(heads):
            loud = loud_slopes[node, head]
            for j in range(head * part, (head + 1) * part):
                slopes[node, j] += more[row, j] + loud * hearing.sender[j]
                found.sender[j] += loud * spoken[row, j]


@compiled_reordered
def _heard_slopes(
    node: int,
    messages: Messages,
    hearing: Hearing,
    kept: Passed,
    given: tuple[Floats, Floats],
    slopes: Floats,
    found: Hearing,
) -> None:
    """Add what slopes of one node's outputs mean to those of what it heard and of how it listened."""
    said_slopes, loud_slopes = given
    inputs, said, heard, attention = kept.inputs, kept.said, kept.heard, kept.attention
    heads, width = attention.shape[0], inputs.shape[1]
    part = width // heads
    start, end = messages.offsets[node], messages.offsets[node + 1]
    before_tanh = np.empty(width, dtype=np.float32)
    toward = np.empty(end - start, dtype=np.float32)
    for j in range(width):
        before_tanh[j] = slopes[node, j] * (np.float32(1) - heard[node, j] * heard[node, j])
    for head in range(heads):
        low, high = head * part, (head + 1) * part
        mean = np.float32(0)
        for pair in range(start, end):
            spoken, total = messages.senders[pair], np.float32(0)
            for j in range(low, high):
                total += before_tanh[j] * said[spoken, j]
                said_slopes[spoken, j] += attention[head, pair] * before_tanh[j]
            toward[pair - start] = total
            mean += attention[head, pair] * total
        own = np.float32(0)
        for pair in range(start, end):
            logit = attention[head, pair] * (toward[pair - start] - mean)
            logit *= LEAK if kept.negative[head, pair] else np.float32(1)
            loud_slopes[messages.senders[pair], head] += logit
            own += logit
        for j in range(low, high):
            slopes[node, j] += own * hearing.receiver[j]
            found.receiver[j] += own * inputs[node, j]
