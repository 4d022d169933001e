"""What is learned: one flat array, and the matrices that lie in it."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

EMBEDDING_SPREAD = 0.1
CLOSENESS = 1.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """`nodes` of the hypergraph, `text` numbers of a point, `width` numbers of a node's vector in `heads`
    equal parts, `recent` items of the history that are read, `features` of a prefix.

    Raises:
        ValueError: one of them is negative or, but for `features`, 0; or heads do not divide the width.
    """

    nodes: int
    text: int
    width: int
    heads: int
    recent: int
    features: int = 0

    def __post_init__(self) -> None:
        if min(astuple(self)[:-1]) < 1 or self.features < 0 or self.width % self.heads:
            raise ValueError(f"no model can have these sizes: {self}")


class Parameters(NamedTuple):
    """float32. Of nodes: `embeddings` [nodes, width], `item_bias` [nodes], `described` [text, width].
    Of messages, up and down: `transform` [width, width], `receiver` and `sender` [width].
    Of what is asked: `asked_text` [text, width], `asked_recent` [width, width], `recency` [recent, width],
    `asked_features` [features, width], `asked_bias` [width], `gate` [width, heads], `closeness` [1].
    """

    embeddings: Floats
    item_bias: Floats
    described: Floats
    up_transform: Floats
    up_receiver: Floats
    up_sender: Floats
    down_transform: Floats
    down_receiver: Floats
    down_sender: Floats
    asked_text: Floats
    asked_recent: Floats
    recency: Floats
    asked_features: Floats
    asked_bias: Floats
    gate: Floats
    closeness: Floats


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """The shape of each of `Parameters`, in its order."""
    width = sizes.width
    of_messages = {"transform": (width, width), "receiver": (width,), "sender": (width,)}
    return {
        "embeddings": (sizes.nodes, width),
        "item_bias": (sizes.nodes,),
        "described": (sizes.text, width),
        **{f"up_{name}": shape for name, shape in of_messages.items()},
        **{f"down_{name}": shape for name, shape in of_messages.items()},
        "asked_text": (sizes.text, width),
        "asked_recent": (width, width),
        "recency": (sizes.recent, width),
        "asked_features": (sizes.features, width),
        "asked_bias": (width,),
        "gate": (width, sizes.heads),
        "closeness": (1,),
    }


def count(sizes: Sizes) -> int:
    """How many numbers there are."""
    return sum(prod(shape) for shape in shapes(sizes).values())


def views(flat: Floats, sizes: Sizes) -> Parameters:
    """The matrices that lie in a flat array [count]: writing to them writes to it.

    Raises:
        ValueError: the array has another length.
    """
    if flat.shape != (count(sizes),):
        raise ValueError(f"{flat.shape} numbers do not fit a model of {count(sizes)}")
    found, start = [], 0
    for shape in shapes(sizes).values():
        end = start + prod(shape)
        found.append(flat[start:end].reshape(shape))
        start = end
    return Parameters(*found)


def drawn(sizes: Sizes, seed: int) -> Floats:
    """float32 [count]: where training begins. Matrices keep lengths, biases are 0."""
    draws = np.random.default_rng(seed)
    flat = np.zeros(count(sizes), dtype=np.float32)
    found = views(flat, sizes)
    found.embeddings[:] = draws.normal(0, EMBEDDING_SPREAD, found.embeddings.shape)
    found.described[:] = found.asked_text[:] = draws.normal(0, sizes.text**-0.5, found.described.shape)
    for matrix in (found.up_transform, found.down_transform, found.asked_recent):
        matrix[:] = draws.normal(0, sizes.width**-0.5, matrix.shape)
    for vector in (found.up_receiver, found.up_sender, found.down_receiver, found.down_sender):
        vector[:] = draws.normal(0, EMBEDDING_SPREAD, vector.shape)
    found.recency[:] = 1 / np.arange(1, sizes.recent + 1)[:, None]
    found.closeness[:] = CLOSENESS
    return flat
