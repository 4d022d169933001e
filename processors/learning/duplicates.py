"""Which traces are nearly the same, so that none of them tells about another (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.schemas.canonical import canonical_json

Groups = NDArray[np.int64]


def trace_hash(items: Sequence[str], edges: Sequence[Sequence[int]], arguments: Sequence[Any]) -> int:
    """An int64 that traces of the same structure and arguments share.

    Args:
        items: names of what was called, in order.
        edges: pairs of places in `items`, what gives and what takes.
        arguments: those of each call, JSON-serialisable.
    """
    return key_hash([list(items), sorted([list(edge) for edge in edges]), list(arguments)])


def key_hash(value: Any) -> int:
    """An int64 that equal JSON values share, in every process."""
    return int.from_bytes(blake2b(canonical_json(value), digest_size=8).digest(), "big", signed=True)


def joined(keys: Sequence[NDArray[np.int64]]) -> Groups:
    """Groups of traces that share a key, also by way of others.

    Each of `keys` is int64 [traces]. Returns int64 [traces]: the least number of a trace in the group.

    Raises:
        ValueError: there are no keys.
    """
    if not keys:
        raise ValueError("without keys nothing is known of what belongs together")
    found = np.arange(len(keys[0]))
    columns = [np.unique(column, return_inverse=True) for column in keys]
    while True:
        before = found
        for names, of in columns:
            least = np.full(len(names), len(found))
            np.minimum.at(least, of, found)
            found = least[of]
        if np.array_equal(found, before):
            return found
