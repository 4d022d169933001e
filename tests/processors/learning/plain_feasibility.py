"""What can be called, by brute force: what the search over hyperpaths must agree with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from pml.processors.learning.parameters import Parameter
from pml.processors.learning.tool_hypergraph import Giver, Record, Slot

NEVER = float("inf")
NAMES, INPUTS = "abcdef", "xyz"


def wanted(tool: str, name: str) -> Parameter:
    """An input that is required, of whatever type."""
    return Parameter(tool, name, "any", True, (), None, ())


@dataclass(frozen=True)
class World:
    """Tools written down: what each requires, who gives what, how each did, and what is at hand."""

    required: Mapping[str, Sequence[str]]
    giving: Mapping[Slot, Mapping[str, float]]
    records: Mapping[str, Record]
    at_hand: frozenset[Slot]

    def needs(self, name: str) -> Sequence[Parameter]:
        return [wanted(name, each) for each in self.required.get(name, ())]

    def givers(self, wanted: Parameter) -> Sequence[Giver]:
        given = self.giving.get((wanted.tool, wanted.name), {})
        return [Giver(name, share) for name, share in given.items()]

    def record(self, name: str) -> Record:
        return self.records.get(name, Record())

    def has(self, wanted: Parameter) -> bool:
        return (wanted.tool, wanted.name) in self.at_hand


def plain_missing(world: World, name: str) -> list[str]:
    """What it requires and the session has not."""
    return [each for each in world.required.get(name, ()) if (name, each) not in world.at_hand]


def plain_callable(world: World) -> set[str]:
    """Everything that can be called at some time: calls are made as long as one more can be."""
    done: set[str] = set()
    while True:
        there = _there(world, done)
        more = {
            name for name, needs in world.required.items() if all((name, each) in there for each in needs)
        }
        if more <= done:
            return done
        done |= more


def plain_cost(world: World, name: str) -> float:
    """The cheapest of all ways to what it misses."""
    return sum(_cost(world, (name, each), ()) for each in world.required.get(name, ()))


def executed(world: World, name: str, through: Sequence[str]) -> bool:
    """Whether these calls can be made in this order, and then that one."""
    done: set[str] = set()
    for each in (*through, name):
        there = _there(world, done)
        if not all((each, wanted) in there for wanted in world.required.get(each, ())):
            return False
        done.add(each)
    return True


def _there(world: World, done: set[str]) -> set[Slot]:
    return set(world.at_hand) | {slot for slot, givers in world.giving.items() if done & set(givers)}


def _cost(world: World, slot: Slot, path: tuple[Slot, ...]) -> float:
    if slot in world.at_hand:
        return 0.0
    if slot in path:
        return NEVER
    costs = []
    for giver, share in world.giving.get(slot, {}).items():
        record = world.record(giver)
        own = -math.log((record.successes + 1) / (record.runs + 2)) - math.log(max(share, 0.01))
        inputs = [_cost(world, (giver, each), (*path, slot)) for each in world.required.get(giver, ())]
        costs.append(own + sum(inputs))
    return min(costs, default=NEVER)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Up to six tools of up to three inputs each, with cycles, of which a few are at hand."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    some = st.lists(st.sampled_from(INPUTS), max_size=2, unique=True)
    required = {name: draw(some) for name in names}
    slots = [(name, each) for name, needs in required.items() for each in needs]
    shares = st.sampled_from([0.0, 0.25, 0.7, 1.0])
    givers = st.dictionaries(st.sampled_from(names), shares, max_size=2)
    runs = st.integers(0, 5)
    records = {name: draw(runs) for name in names}
    return World(
        required,
        {slot: draw(givers) for slot in slots},
        {name: Record(draw(st.integers(0, tried)), tried) for name, tried in records.items()},
        frozenset(slot for slot in slots if draw(st.integers(0, 3)) == 0),
    )
