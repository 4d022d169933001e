"""The attention model over whole arrays, in NumPy and in JAX: what ours is timed against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pml.processors.learning.attention.descent import Batch
from pml.processors.learning.attention.head import CLOSENESS_PACE
from pml.processors.learning.attention.membership import Membership, Messages
from pml.processors.learning.attention.parameters import Parameters
from pml.processors.learning.attention.passing import LEAK

Array = Any


class Level(NamedTuple):
    """Nodes that hear at once: `nodes` [hearing], and of each pair `senders` and which of `nodes` hears it.

    `starts` says where the pairs of each node begin; its pairs lie together.
    """

    nodes: Array
    senders: Array
    hearing: Array
    starts: Array


def levels_of(messages: Messages, levels: Array) -> list[Level]:
    """The levels of one direction in their order; `levels` [nodes] are ascending in that direction."""
    counts = np.diff(messages.offsets)
    found = []
    for level in np.unique(levels):
        nodes = np.flatnonzero((levels == level) & (counts > 0))
        if len(nodes):
            spans = [messages.senders[messages.offsets[node] : messages.offsets[node + 1]] for node in nodes]
            hearing = np.repeat(np.arange(len(nodes)), counts[nodes])
            starts = np.concatenate(([0], np.cumsum(counts[nodes])[:-1]))
            found.append(Level(nodes, np.concatenate(spans), hearing, starts))
    return found


class Directions(NamedTuple):
    """All levels, up and down."""

    up: list[Level]
    down: list[Level]


def directions(membership: Membership) -> Directions:
    """Those of a hypergraph."""
    up, down = membership.upward(), membership.downward()
    return Directions(levels_of(up, membership.levels), levels_of(down, -membership.levels))


def jax_loss(jax: Any, ways: Directions, points: Array) -> Callable[[Parameters, Batch], Array]:
    """The same loss, of parameters and a batch, which JAX can differentiate."""
    np_, ops = jax.numpy, jax.ops

    def heard(inputs: Array, levels: list[Level], matrices: tuple[Array, ...], heads: int) -> Array:
        transform, receiver, sender = matrices
        outputs = inputs
        for level in levels:
            count = len(level.nodes)
            spoken = outputs[level.senders]
            sums = _heads(inputs[level.nodes] * receiver, heads)[level.hearing] + _heads(
                spoken * sender, heads
            )
            logits = np_.where(sums < 0, sums * LEAK, sums)
            most = ops.segment_max(logits, level.hearing, count, indices_are_sorted=True)
            odds = np_.exp(logits - jax.lax.stop_gradient(most)[level.hearing])
            total = ops.segment_sum(odds, level.hearing, count, indices_are_sorted=True)
            shares = np_.repeat(odds / total[level.hearing], inputs.shape[1] // heads, axis=1)
            said = (spoken @ transform) * shares
            mean = ops.segment_sum(said, level.hearing, count, indices_are_sorted=True)
            outputs = outputs.at[level.nodes].add(np_.tanh(mean))
        return outputs

    def loss(p: Parameters, batch: Batch) -> Array:
        heads = p.gate.shape[1]
        inputs = batch.own[:, None] * p.embeddings + points @ p.described
        raised = heard(inputs, ways.up, (p.up_transform, p.up_receiver, p.up_sender), heads)
        nodes = heard(raised, ways.down, (p.down_transform, p.down_receiver, p.down_sender), heads)
        asked = batch.asked
        history = (nodes[asked.recent] * p.recency).sum(axis=1)
        vector = p.asked_bias + asked.texts @ p.asked_text + history @ p.asked_recent
        vector = vector + asked.features @ p.asked_features
        part = nodes.shape[1] // heads
        gates = np_.repeat(jax.nn.softmax(vector @ p.gate), part, axis=1) * (heads / part**0.5)
        near = np_.einsum("bt,bct->bc", asked.texts, points[batch.candidates])
        sums = np_.einsum("bw,bcw->bc", vector * gates, nodes[batch.candidates])
        sums = sums + CLOSENESS_PACE * p.closeness[0] * near + p.item_bias[batch.candidates]
        return -(batch.weights * jax.nn.log_softmax(sums)[:, 0]).mean()

    return loss


def _heads(values: Array, heads: int) -> Array:
    return values.reshape(len(values), heads, -1).sum(axis=2)


class _Heard(NamedTuple):
    spoken: Array
    said: Array
    shares: Array
    negative: Array
    tanh: Array


def _passed(
    inputs: Array, levels: list[Level], matrices: tuple[Array, ...], heads: int
) -> tuple[Array, list[_Heard]]:
    transform, receiver, sender = matrices
    outputs, kept = inputs.copy(), []
    for level in levels:
        spoken = outputs[level.senders]
        sums = _heads(inputs[level.nodes] * receiver, heads)[level.hearing] + _heads(spoken * sender, heads)
        negative = sums < 0
        logits = np.where(negative, sums * LEAK, sums)
        odds = np.exp(logits - np.maximum.reduceat(logits, level.starts)[level.hearing])
        shares = odds / np.add.reduceat(odds, level.starts)[level.hearing]
        said = spoken @ transform
        wide = np.repeat(shares, inputs.shape[1] // heads, axis=1)
        tanh = np.tanh(np.add.reduceat(said * wide, level.starts))
        outputs[level.nodes] += tanh
        kept.append(_Heard(spoken, said, shares, negative, tanh))
    return outputs, kept


def _passed_slopes(
    inputs: Array,
    levels: list[Level],
    matrices: tuple[Array, ...],
    kept: list[_Heard],
    slopes: Array,
    *,
    found: tuple[Array, ...],
) -> None:
    (transform, receiver, sender), width = matrices, inputs.shape[1]
    # Slopes of what was heard from are whole only when all that heard it is done: the last level first.
    for level, each in zip(levels[::-1], kept[::-1], strict=True):
        heads = each.shares.shape[1]
        part = width // heads
        before = (slopes[level.nodes] * (1 - each.tanh**2))[level.hearing]
        toward = _heads(before * each.said, heads)
        mean = np.add.reduceat(each.shares * toward, level.starts)[level.hearing]
        logits = each.shares * (toward - mean) * np.where(each.negative, LEAK, np.float32(1))
        wide = np.repeat(logits, part, axis=1)
        said = before * np.repeat(each.shares, part, axis=1)
        np.add.at(slopes, level.senders, said @ transform.T + wide * sender)
        found[0][:] += each.spoken.T @ said
        found[2][:] += (wide * each.spoken).sum(axis=0)
        own = np.add.reduceat(wide, level.starts)
        slopes[level.nodes] += own * receiver
        found[1][:] += (own * inputs[level.nodes]).sum(axis=0)


def numpy_slopes(ways: Directions, points: Array, p: Parameters, batch: Batch, found: Parameters) -> float:
    """The loss of a batch, and its slopes, added to `found`: what `step_slopes` does, over whole arrays."""
    heads, asked, items = p.gate.shape[1], batch.asked, batch.candidates
    up, down = (
        (p.up_transform, p.up_receiver, p.up_sender),
        (p.down_transform, p.down_receiver, p.down_sender),
    )
    inputs = batch.own[:, None] * p.embeddings + points @ p.described
    raised, kept_up = _passed(inputs, ways.up, up, heads)
    nodes, kept_down = _passed(raised, ways.down, down, heads)
    read = nodes[asked.recent]
    history = (read * p.recency).sum(axis=1)
    vector = p.asked_bias + asked.texts @ p.asked_text + history @ p.asked_recent
    vector += asked.features @ p.asked_features
    part = nodes.shape[1] // heads
    scale = np.float32(heads / part**0.5)
    gates = _softmax(vector @ p.gate)
    wide = np.repeat(gates, part, axis=1) * scale
    near = (points[items] @ asked.texts[:, :, None])[:, :, 0]
    named = nodes[items]
    sums = (named @ (vector * wide)[:, :, None])[:, :, 0]
    shares = _softmax(sums + CLOSENESS_PACE * p.closeness[0] * near + p.item_bias[items])
    loss = float(-(batch.weights * np.log(shares[:, 0])).mean())
    shares[:, 0] -= 1
    shares *= (batch.weights / np.float32(len(items)))[:, None]
    slopes = np.zeros_like(nodes)
    np.add.at(slopes, items, shares[:, :, None] * (vector * wide)[:, None, :])
    np.add.at(found.item_bias, items, shares)
    found.closeness[0] += CLOSENESS_PACE * np.sum(shares * near)
    weighed = (shares[:, None, :] @ named)[:, 0]
    toward = _heads(weighed * vector, heads) * scale
    logits = gates * (toward - (gates * toward).sum(axis=1, keepdims=True))
    found.gate[:] += vector.T @ logits
    towards_vector = weighed * wide + logits @ p.gate.T
    found.asked_text[:] += asked.texts.T @ towards_vector
    found.asked_recent[:] += history.T @ towards_vector
    found.asked_features[:] += asked.features.T @ towards_vector
    found.asked_bias[:] += towards_vector.sum(axis=0)
    towards_history = (towards_vector @ p.asked_recent.T)[:, None, :]
    found.recency[:] += (towards_history * read).sum(axis=0)
    np.add.at(slopes, asked.recent, towards_history * p.recency)
    _passed_slopes(
        raised,
        ways.down,
        down,
        kept_down,
        slopes,
        found=(found.down_transform, found.down_receiver, found.down_sender),
    )
    _passed_slopes(
        inputs, ways.up, up, kept_up, slopes, found=(found.up_transform, found.up_receiver, found.up_sender)
    )
    found.embeddings[:] += batch.own[:, None] * slopes
    found.described[:] += points.T @ slopes
    return loss


def _softmax(values: Array) -> Array:
    odds = np.exp(values - values.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)
