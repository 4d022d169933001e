"""Small traces of few items, as lists and as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from pml.processors.learning.traces import Prefixes, TraceSet

# Items 1 to 4; 0 is what the vocabulary does not have.
SIZE = 5
LISTS = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=6), min_size=1, max_size=6)


def trace_set(
    lists: Sequence[Sequence[int]],
    weights: Sequence[float] | None = None,
    outcomes: Sequence[float] | None = None,
    texts: Sequence[int] | None = None,
) -> TraceSet:
    """Traces with these items; by default all weigh 1, ended well, and text i belongs to trace i."""
    count = len(lists)
    owners = [number for number, items in enumerate(lists) for _ in items]
    return TraceSet(
        items=np.array([item for items in lists for item in items], dtype=np.int32),
        offsets=np.cumsum([0, *map(len, lists)], dtype=np.int64),
        outcomes=np.array(outcomes or [1.0] * count, dtype=np.float32),
        weights=np.array(weights or [1.0] * count, dtype=np.float32),
        groups=np.arange(count),
        times_ms=np.arange(count) * 1_000,
        texts=np.array([(texts or range(count))[owner] for owner in owners], dtype=np.int64),
    )


def prefixes_of(*histories: Sequence[int], texts: np.ndarray | None = None) -> Prefixes:
    """Histories whose next item is asked for."""
    ends = np.cumsum([len(history) for history in histories], dtype=np.int64)
    items = np.array([item for history in histories for item in history], dtype=np.int32)
    return Prefixes(items, ends - [len(history) for history in histories], ends, texts)
