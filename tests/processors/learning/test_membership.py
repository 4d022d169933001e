"""Levels and messages are those of what contains what."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.attention.membership import Membership
from tests.processors.learning.small_traces import trace_set

NODES = 10


@st.composite
def contained(draw: st.DrawFn) -> dict[int, list[int]]:
    return {owner: draw(st.lists(st.integers(1, owner - 1), max_size=4)) for owner in range(4, NODES)}


@given(contained())
@settings(max_examples=50, deadline=None, derandomize=True)
def test_levels_are_one_above_the_highest_member_and_everybody_hears_after_its_senders(
    members: dict[int, list[int]],
) -> None:
    found = Membership.of(NODES, members)
    level = [0] * NODES
    for owner in range(4, NODES):
        level[owner] = 1 + max((level[member] for member in members[owner]), default=-1)
    assert found.levels.tolist() == level
    owners = {node: {owner for owner, each in members.items() if node in each} for node in range(NODES)}
    up = {node: set(members.get(node, ())) for node in range(NODES)}
    for messages, expected in ((found.upward(), up), (found.downward(), owners)):
        done: set[int] = set()
        assert sorted(messages.order.tolist()) == list(range(NODES))
        for node in messages.order.tolist():
            heard = messages.senders[messages.offsets[node] : messages.offsets[node + 1]].tolist()
            assert sorted(heard) == sorted(expected[node])
            assert done >= set(heard)
            done.add(node)
        assert (messages.starts[0], messages.starts[-1]) == (0, NODES)
        for start, end in zip(messages.starts[:-1], messages.starts[1:], strict=True):
            together = set(messages.order[start:end].tolist())
            assert together
            assert all(together.isdisjoint(expected[node]) for node in together)
        assert set(np.flatnonzero(messages.sends)) == set().union(*expected.values())


def test_structures_are_sets_that_were_called_together_smaller_ones_within_larger() -> None:
    found = Membership.of_structures(trace_set([[1, 2], [2, 1, 2], [1, 2, 3], [3], [0, 4, 2], [1, 3, 2]]), 5)
    assert found.nodes == 8
    pairs = set(zip(found.owners.tolist(), found.members.tolist(), strict=True))
    assert pairs == {(5, 1), (5, 2), (6, 1), (6, 2), (6, 3), (6, 5), (7, 2), (7, 4)}
    assert Membership.of_structures(trace_set([[1, 2], [3, 4], [3, 4]]), 5, most=1).members.tolist() == [3, 4]


def test_what_capabilities_call_is_contained_beside_what_traces_called_together() -> None:
    found = Membership.of_structures(trace_set([[1, 2]]), 6, {4: [1, 3], 5: [4]})
    assert dict(zip(found.owners.tolist(), found.members.tolist(), strict=True)).keys() == {4, 5, 6}
    assert found.members[found.owners == 4].tolist() == [1, 3]
    assert found.levels.tolist() == [0, 0, 0, 0, 1, 2, 1]


def test_programs_that_call_each_other_in_a_circle_contain_only_what_ends() -> None:
    found = Membership.of_structures(trace_set([[1, 2]]), 7, {3: [1, 4], 4: [3, 2], 5: [3, 1], 6: [6, 2]})
    pairs = set(zip(found.owners.tolist(), found.members.tolist(), strict=True))
    assert pairs == {(3, 1), (4, 2), (5, 1), (6, 2), (7, 1), (7, 2)}


def test_arrays_are_all_of_it_and_silence_contains_nothing() -> None:
    found = Membership.of(4, {3: [1, 2]})
    again = Membership.from_arrays(found.to_arrays())
    assert (again.nodes, again.owners.tolist(), again.members.tolist()) == (4, [3, 3], [1, 2])
    assert found.silent().nodes == 4
    assert len(found.silent().owners) == 0


@pytest.mark.parametrize(
    ("members", "says"),
    [({1: [2], 2: [1]}, "contains itself"), ({1: [4]}, "numbered"), ({3: [0]}, "numbered")],
)
def test_what_cannot_be_is_refused(members: dict[int, list[int]], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Membership.of(4, members)
