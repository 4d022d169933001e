"""What is nearly the same is one group, also by way of others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.duplicates import joined, key_hash, trace_hash


def test_structure_and_arguments_decide_and_the_order_of_edges_and_keys_does_not() -> None:
    calls, edges = ["a", "b", "c"], [(0, 1), (0, 2)]
    arguments = [{"x": 1, "y": 2}, {}, {}]
    found = trace_hash(calls, edges, arguments)
    assert found == trace_hash(calls, edges[::-1], [{"y": 2, "x": 1}, {}, {}])
    assert found != trace_hash(calls, edges, [{"x": 1, "y": 3}, {}, {}])
    assert found != trace_hash(calls, edges[:1], arguments)
    assert found != trace_hash(["a", "c", "b"], edges, arguments)


def test_a_hash_is_the_same_in_every_process() -> None:
    assert key_hash(["a", {"b": 1}]) == 5903322431072717210


def twin(keys: list[list[int]]) -> list[int]:
    """Walk from each trace to all that it shares a key with, and on."""
    count = len(keys[0])
    found = []
    for first in range(count):
        reached, waiting = {first}, [first]
        while waiting:
            one = waiting.pop()
            near = {other for column in keys for other in range(count) if column[other] == column[one]}
            waiting += near - reached
            reached |= near
        found.append(min(reached))
    return found


@given(
    st.integers(0, 9).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 5), min_size=n, max_size=n), min_size=1, max_size=3)
    )
)
def test_groups_are_what_can_be_reached(keys: list[list[int]]) -> None:
    assert joined([np.array(column, dtype=np.int64) for column in keys]).tolist() == twin(keys)


def test_without_keys_nothing_is_known() -> None:
    with pytest.raises(ValueError, match="without keys"):
        joined([])
