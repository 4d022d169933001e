"""The attention model once more, node by node and number by number, in float64: slow and easy to believe."""

from __future__ import annotations

from math import exp, log, sqrt, tanh
from typing import Any

import numpy as np

from pml.processors.learning.attention.descent import Batch
from pml.processors.learning.attention.head import NOBODY
from pml.processors.learning.attention.membership import Membership
from pml.processors.learning.attention.parameters import Parameters

Column = np.ndarray[Any, np.dtype[np.float64]]


def vectors(p: Parameters, points: Column, own: Column, membership: Membership) -> Column:
    """float64 [nodes, width]: up from members to owners, then down from owners to members."""
    inputs = own[:, None] * p.embeddings + points @ p.described
    pairs = list(zip(membership.owners.tolist(), membership.members.tolist(), strict=True))
    by_level = sorted(range(len(inputs)), key=lambda node: membership.levels[node])
    members = {node: [member for owner, member in pairs if owner == node] for node in by_level}
    owners = {node: [owner for owner, member in pairs if member == node] for node in by_level}
    heads = p.gate.shape[1]
    raised = heard(inputs, by_level, members, (p.up_transform, p.up_receiver, p.up_sender), heads)
    down = (p.down_transform, p.down_receiver, p.down_sender)
    return heard(raised, by_level[::-1], owners, down, heads)


def heard(
    inputs: Column, order: list[int], senders: dict[int, list[int]], matrices: tuple[Any, ...], heads: int
) -> Column:
    transform, receiver, sender = matrices
    found = inputs.copy()
    parts = np.split(np.arange(inputs.shape[1]), heads)
    for node in order:
        if senders[node]:
            for part in parts:
                sums = [
                    inputs[node, part] @ receiver[part] + found[other, part] @ sender[part]
                    for other in senders[node]
                ]
                odds = [exp(each if each > 0 else 0.2 * each) for each in sums]
                said = [(found[other] @ transform)[part] for other in senders[node]]
                mean = sum(odd * each for odd, each in zip(odds, said, strict=True)) / sum(odds)
                found[node, part] = inputs[node, part] + [tanh(each) for each in mean]
    return found


def scores(
    p: Parameters, points: Column, nodes: Column, asked: Any, *, row: int, items: list[int]
) -> list[float]:
    """Of each item, for one prefix."""
    history = sum(p.recency[place] * nodes[item] for place, item in enumerate(asked.recent[row]))
    vector = p.asked_bias + asked.texts[row] @ p.asked_text + history @ p.asked_recent
    vector = vector + asked.features[row] @ p.asked_features
    odds = [exp(each) for each in vector @ p.gate]
    parts = np.split(np.arange(len(vector)), len(odds))
    told = []
    for item in items:
        near = 10 * p.closeness[0] * (asked.texts[row] @ points[item])
        fits = [
            len(odds) * odd / sum(odds) * (vector[part] @ nodes[item, part]) / sqrt(len(part))
            for odd, part in zip(odds, parts, strict=True)
        ]
        told.append(sum(fits) + near + p.item_bias[item])
    return told


def loss(p: Parameters, points: Column, membership: Membership, batch: Batch) -> float:
    """The mean over the prefixes of weight · −log share of the first candidate."""
    nodes = vectors(p, points, batch.own.astype(np.float64), membership)
    total = 0.0
    for row, items in enumerate(batch.candidates.tolist()):
        if items[0] != NOBODY:
            odds = scores(
                p, points, nodes, batch.asked, row=row, items=[item for item in items if item != NOBODY]
            )
            total += batch.weights[row] * (log(sum(exp(each) for each in odds)) - odds[0])
    return total / len(batch.candidates)
