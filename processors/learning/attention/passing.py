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
    `attention` float32 [pairs, heads], and bool likewise where its logit was `negative`.
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
        total, low = np.float32(0), head * part
        for j in range(part):
            total += vector[low + j] * weights[low + j]
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
    attention = np.empty((len(messages.senders), heads), dtype=np.float32)
    negative = np.empty((len(messages.senders), heads), dtype=np.bool_)
    kept = Passed(inputs, outputs, said, heard, attention, negative)
    loudness = np.zeros((len(inputs), heads), dtype=np.float32)
    for level in range(len(messages.starts) - 1):
        for node in messages.order[messages.starts[level] : messages.starts[level + 1]]:
            if messages.offsets[node + 1] > messages.offsets[node]:
                _listen(node, messages, hearing.receiver, loudness, kept)
        speakers = speaking(messages, level)
        words = np.zeros((len(speakers), inputs.shape[1]), dtype=np.float32)
        rows_times(outputs[speakers], hearing.transform, words)
        for row in range(len(speakers)):
            # One by one: a check that rows are of one length takes seconds to compile.
            for j in range(inputs.shape[1]):
                said[speakers[row], j] = words[row, j]
            heads_dot(outputs[speakers[row]], hearing.sender, loudness[speakers[row]])
    return kept


@compiled_reordered
def _listen(node: int, messages: Messages, receiver: Floats, loudness: Floats, kept: Passed) -> None:
    """Write what one node hears, and its outputs."""
    heard, attention, width = kept.heard[node], kept.attention, kept.inputs.shape[1]
    heads = attention.shape[1]
    part, start, end = width // heads, messages.offsets[node], messages.offsets[node + 1]
    own, most, total = (
        np.zeros(heads, dtype=np.float32),
        np.full(heads, -np.inf, dtype=np.float32),
        np.zeros(heads, dtype=np.float32),
    )
    heads_dot(kept.inputs[node], receiver, own)
    for pair in range(start, end):
        for head in range(heads):
            logit = own[head] + loudness[messages.senders[pair], head]
            kept.negative[pair, head] = logit < 0
            attention[pair, head] = logit * LEAK if logit < 0 else logit
            most[head] = max(most[head], attention[pair, head])
    for pair in range(start, end):
        for head in range(heads):
            attention[pair, head] = np.exp(attention[pair, head] - most[head])
            total[head] += attention[pair, head]
    for pair in range(start, end):
        said = kept.said[messages.senders[pair]]
        for head in range(heads):
            attention[pair, head] /= total[head]
            share, low = attention[pair, head], head * part
            for j in range(part):
                heard[low + j] += share * said[low + j]
    tanh(heard)
    for j in range(width):
        kept.outputs[node, j] += heard[j]


class Towards(NamedTuple):
    """Slopes so far: of the `outputs` and of what was `said` float32 [nodes, width], of how `loud` each was
    [nodes, heads], and of the `hearing`.
    """

    outputs: Floats
    said: Floats
    loud: Floats
    hearing: Hearing


@compiled_reordered
def passed_slopes(messages: Messages, hearing: Hearing, kept: Passed, slopes: Floats, found: Hearing) -> None:
    """Turn the slopes of what `passed` gave into those of what it got.

    `slopes` float32 [nodes, width] are of its outputs before and of its inputs after; to `found` those of
    `hearing` are added.
    """
    loud = np.zeros((len(kept.inputs), kept.attention.shape[1]), dtype=np.float32)
    towards = Towards(slopes, np.zeros_like(kept.said), loud, found)
    for level in range(len(messages.starts) - 2, -1, -1):
        _said_slopes(speaking(messages, level), hearing, kept.outputs, towards)
        for node in messages.order[messages.starts[level] : messages.starts[level + 1]]:
            if messages.offsets[node + 1] > messages.offsets[node]:
                _heard_slopes(node, messages, hearing.receiver, kept, towards)


@compiled_reordered
def _said_slopes(speakers: Ids, hearing: Hearing, outputs: Floats, towards: Towards) -> None:
    """Add what slopes of what speakers said, and of how loud, mean to those of their outputs."""
    heads, found = towards.loud.shape[1], towards.hearing
    part = outputs.shape[1] // heads
    spoken, words = outputs[speakers], towards.said[speakers]
    matrix_slopes(spoken, words, found.transform)
    more = np.zeros_like(spoken)
    row_slopes(words, hearing.transform, more)
    for row in range(len(speakers)):
        slopes, own = towards.outputs[speakers[row]], spoken[row]
        for j in range(len(own)):
            slopes[j] += more[row, j]
        for head in range(heads):
            loud, low = towards.loud[speakers[row], head], head * part
            for j in range(part):
                slopes[low + j] += loud * hearing.sender[low + j]
                found.sender[low + j] += loud * own[low + j]


@compiled_reordered
def _heard_slopes(node: int, messages: Messages, receiver: Floats, kept: Passed, towards: Towards) -> None:
    """Add what slopes of one node's outputs mean to those of what it heard and of how it listened."""
    attention, heard, slopes = kept.attention, kept.heard[node], towards.outputs[node]
    heads, width = attention.shape[1], len(heard)
    part, start, end = width // heads, messages.offsets[node], messages.offsets[node + 1]
    before_tanh = np.empty(width, dtype=np.float32)
    toward = np.empty((end - start, heads), dtype=np.float32)
    mean, own = np.zeros(heads, dtype=np.float32), np.zeros(heads, dtype=np.float32)
    for j in range(width):
        before_tanh[j] = slopes[j] * (np.float32(1) - heard[j] * heard[j])
    for pair in range(start, end):
        said, said_slopes = kept.said[messages.senders[pair]], towards.said[messages.senders[pair]]
        for head in range(heads):
            total, share, low = np.float32(0), attention[pair, head], head * part
            for j in range(part):
                total += before_tanh[low + j] * said[low + j]
                said_slopes[low + j] += share * before_tanh[low + j]
            toward[pair - start, head] = total
            mean[head] += share * total
    for pair in range(start, end):
        for head in range(heads):
            logit = attention[pair, head] * (toward[pair - start, head] - mean[head])
            logit *= LEAK if kept.negative[pair, head] else np.float32(1)
            towards.loud[messages.senders[pair], head] += logit
            own[head] += logit
    inputs, receiver_slopes = kept.inputs[node], towards.hearing.receiver
    for head in range(heads):
        low = head * part
        for j in range(part):
            slopes[low + j] += own[head] * receiver[low + j]
            receiver_slopes[low + j] += own[head] * inputs[low + j]
