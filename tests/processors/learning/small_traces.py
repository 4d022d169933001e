"""Small traces of few items, as lists and as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from pml.processors.learning.traces import Prefixes, TraceSet, success_by_ends

# Items 1 to 4; 0 is what the vocabulary does not have.
SIZE = 5
LISTS = st.lists(st.lists(st.integers(0, SIZE - 1), max_size=6), min_size=1, max_size=6)


def trace_set(
    lists: Sequence[Sequence[int]],
    weights: Sequence[float] | None = None,
    outcomes: Sequence[float] | None = None,
    texts: Sequence[int] | None = None,
    success: Sequence[float] | None = None,
) -> TraceSet:
    """Traces with these items; by default all weigh 1, ended well, and text i belongs to trace i.

    All items but the last went well, and that as its trace did, unless `success` says of each how it went.
    """
    count = len(lists)
    owners = [number for number, items in enumerate(lists) for _ in items]
    offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    ends = np.array(outcomes or [1.0] * count, dtype=np.float32)
    return TraceSet(
        items=np.array([item for items in lists for item in items], dtype=np.int32),
        success=success_by_ends(offsets, ends) if success is None else np.array(success, dtype=np.float32),
        offsets=offsets,
        outcomes=ends,
        weights=np.array(weights or [1.0] * count, dtype=np.float32),
        groups=np.arange(count),
        times_ms=np.arange(count) * 1_000,
        texts=np.array([(texts or range(count))[owner] for owner in owners], dtype=np.int64),
        end_texts=np.array(texts or range(count), dtype=np.int64),
    )


def prefixes_of(*histories: Sequence[int], texts: np.ndarray | None = None) -> Prefixes:
    """Histories whose next item is asked for."""
    ends = np.cumsum([len(history) for history in histories], dtype=np.int64)
    items = np.array([item for history in histories for item in history], dtype=np.int32)
    return Prefixes(items, ends - [len(history) for history in histories], ends, texts)
