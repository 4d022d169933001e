"""One step of training: vectors of all nodes, the contrastive loss of a batch, its slopes; and Adam."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pml.processors.learning.attention.head import (
    NOBODY,
    Asked,
    Scorer,
    Slopes,
    asked_slopes,
    candidate_shares,
    encode,
    score_slopes,
)
from pml.processors.learning.attention.membership import Messages
from pml.processors.learning.attention.parameters import Floats, Parameters
from pml.processors.learning.attention.passing import Hearing, Passed, passed, passed_slopes
from pml.processors.learning.attention.products import matrix_slopes, rows_times
from pml.processors.learning.compiled import compiled_reordered
from pml.processors.learning.vocabulary import Ids

# Adam (Kingma & Ba 2015), with the usual constants but for the rate, which is an argument.
MEAN_DECAY, SQUARE_DECAY, TINY = 0.9, 0.999, 1e-8
# No share is taken to be less, or its logarithm would have no end.
_SHARE_LEAST = 1e-12


class Graph(NamedTuple):
    """`points` float32 [nodes, text] of the descriptions, and who hears whom, up and then down."""

    points: Floats
    upward: Messages
    downward: Messages


class Batch(NamedTuple):
    """What is asked, and for each prefix int32 [prefixes, candidates]: what came, then what did not.

    `NOBODY` stands where there are fewer. `weights` float32 [prefixes] scale the losses; `own` float32
    [nodes] the embeddings: 0 where a node has none in this step.
    """

    asked: Asked
    candidates: Ids
    weights: Floats
    own: Floats


@compiled_reordered
def inputs_of(parameters: Parameters, points: Floats, own: Floats) -> Floats:
    """float32 [nodes, width]: what its description and its embedding say of each node."""
    found = np.zeros_like(parameters.embeddings)
    for node in range(len(found)):
        for j in range(found.shape[1]):
            found[node, j] = own[node] * parameters.embeddings[node, j]
    rows_times(points, parameters.described, found)
    return found


@compiled_reordered
def input_slopes(slopes: Floats, points: Floats, own: Floats, embeddings: Floats, described: Floats) -> None:
    """Add what slopes [nodes, width] of `inputs_of` mean to those of the embeddings and of `described`."""
    for node in range(len(slopes)):
        for j in range(slopes.shape[1]):
            embeddings[node, j] += own[node] * slopes[node, j]
    matrix_slopes(points, slopes, described)


def hearings(parameters: Parameters) -> tuple[Hearing, Hearing]:
    """Those of what goes up, and of what goes down."""
    up = Hearing(parameters.up_transform, parameters.up_receiver, parameters.up_sender)
    return up, Hearing(parameters.down_transform, parameters.down_receiver, parameters.down_sender)


def both_ways(parameters: Parameters, graph: Graph, own: Floats) -> tuple[Passed, Passed]:
    """Messages up all levels, and then down again: the second's outputs are the vectors of all nodes."""
    upward, downward = hearings(parameters)
    heads = parameters.gate.shape[1]
    up = passed(inputs_of(parameters, graph.points, own), graph.upward, upward, heads)
    return up, passed(up.outputs, graph.downward, downward, heads)


def scorer_of(parameters: Parameters, graph: Graph, own: Floats) -> Scorer:
    """What scores candidates, in training and in serving."""
    return Scorer(parameters, both_ways(parameters, graph, own)[1].outputs, graph.points)


@compiled_reordered
def losses_of(scorer: Scorer, batch: Batch, found: Slopes) -> tuple[float, Floats]:
    """The mean weighted loss −log share of what came; its slopes are added to `found`.

    The second value is float32 [prefixes]: that share among the candidates.
    """
    count, width = len(batch.candidates), scorer.vectors.shape[1]
    chances = np.zeros(count, dtype=np.float32)
    histories, slopes = np.zeros((count, width), np.float32), np.zeros((count, width), np.float32)
    loss = 0.0
    for row in range(count):
        items = batch.candidates[row]
        if items[0] == NOBODY:
            continue
        encoded = encode(scorer, batch.asked, row)
        found_shares = candidate_shares(scorer, encoded, items)
        shares = found_shares.shares
        chances[row] = shares[0]
        loss -= batch.weights[row] * np.log(max(shares[0], _SHARE_LEAST)) / count
        shares[0] -= np.float32(1)
        for place in range(len(items)):
            shares[place] *= batch.weights[row] / np.float32(count)
        given = score_slopes(scorer, encoded, items, found_shares, found)
        for j in range(width):
            histories[row, j], slopes[row, j] = encoded.history[j], given[j]
    asked_slopes(scorer, batch.asked, histories, slopes, found)
    return loss, chances


def step_slopes(
    parameters: Parameters, graph: Graph, batch: Batch, found: Parameters
) -> tuple[float, Floats]:
    """What `losses_of` gives for a batch; `found`, zeros before, has the slopes of all parameters after."""
    up, down = both_ways(parameters, graph, batch.own)
    slopes = np.zeros_like(down.outputs)
    scorer = Scorer(parameters, down.outputs, graph.points)
    loss, chances = losses_of(scorer, batch, Slopes(found, slopes))
    (upward, downward), (found_up, found_down) = hearings(parameters), hearings(found)
    passed_slopes(graph.downward, downward, down, slopes, found_down)
    passed_slopes(graph.upward, upward, up, slopes, found_up)
    input_slopes(slopes, graph.points, batch.own, found.embeddings, found.described)
    return loss, chances


class Descent(NamedTuple):
    """All float32 [parameters]: the parameters, their slopes, and the means of slopes and their squares."""

    flat: Floats
    slopes: Floats
    means: Floats
    squares: Floats


@compiled_reordered
def adam(descent: Descent, step: int, rate: float, shrinkage: float) -> None:
    """Move all parameters against their slopes, which are 0 after.

    `step` counts from 1; `shrinkage` takes its share of each parameter, times the rate, away (AdamW,
    Loshchilov & Hutter 2019).
    """
    flat, slopes, means, squares = descent
    pace = np.float32(rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step))
    less, mean_decay, square_decay = (
        np.float32(rate * shrinkage),
        np.float32(MEAN_DECAY),
        np.float32(SQUARE_DECAY),
    )
    for i in range(len(flat)):
        slope = slopes[i]
        means[i] = mean_decay * means[i] + (np.float32(1) - mean_decay) * slope
        squares[i] = square_decay * squares[i] + (np.float32(1) - square_decay) * slope * slope
        flat[i] -= pace * means[i] / (np.sqrt(squares[i]) + np.float32(TINY)) + less * flat[i]
        slopes[i] = 0
