"""What can be called with what a session has, and through which other calls."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given

from pml.processors.learning.feasibility import STEPS_MOST, TOOLS_MOST, Feasible, feasibility
from pml.processors.learning.tool_hypergraph import GIVERS_MOST, Record
from tests.processors.learning.plain_feasibility import (
    World,
    executed,
    plain_callable,
    plain_cost,
    plain_missing,
    worlds,
)

GIVES = 0.5


def chain(length: int) -> World:
    """Each tool needs what the one before it gives: t0 needs nothing."""
    names = [f"t{number}" for number in range(length + 1)]
    required = {name: ["x"] for name in names[1:]} | {names[0]: []}
    giving = {(name, "x"): {before: GIVES} for before, name in pairwise(names)}
    return World(required, giving, {}, frozenset())


@given(worlds())
def test_it_agrees_with_brute_force(world: World) -> None:
    names = list(world.required)
    found = feasibility(names, world, world.has)
    able = plain_callable(world)
    for name in names:
        each = found[name]
        assert list(each.missing) == plain_missing(world, name)
        assert (each.through is not None) == (name in able)
        if each.through is not None:
            assert executed(world, name, each.through)
            assert each.cost == pytest.approx(plain_cost(world, name))


def test_where_everything_is_at_hand_nothing_is_searched() -> None:
    world = World({"a": ["x"]}, {}, {}, frozenset({("a", "x")}))
    assert feasibility(["a"], world, world.has) == {"a": Feasible()}


def test_all_inputs_are_needed_not_one() -> None:
    world = World({"a": ["x", "y"], "b": []}, {("a", "x"): {"b": 1.0}}, {}, frozenset())
    assert feasibility(["a"], world, world.has)["a"] == Feasible(("x", "y"), None)


def test_the_surer_of_two_ways_is_told() -> None:
    required: dict[str, list[str]] = {"a": ["x"], "good": [], "bad": []}
    records = {"good": Record(9, 10), "bad": Record(1, 10)}
    world = World(required, {("a", "x"): {"bad": 0.7, "good": 0.7}}, records, frozenset())
    found = feasibility(["a"], world, world.has)["a"]
    assert found.through == ("good",)
    assert math.exp(-found.cost) == pytest.approx(10 / 12 * 0.7)


def test_a_call_that_gives_two_inputs_is_one_step() -> None:
    world = World(
        {"a": ["x", "y"], "b": []}, {("a", "x"): {"b": 1.0}, ("a", "y"): {"b": 1.0}}, {}, frozenset()
    )
    assert feasibility(["a"], world, world.has)["a"].through == ("b",)


def test_a_way_that_is_too_long_is_none() -> None:
    world = chain(STEPS_MOST + 1)
    found = feasibility([f"t{STEPS_MOST}", f"t{STEPS_MOST + 1}"], world, world.has)
    assert found[f"t{STEPS_MOST}"].through == tuple(f"t{number}" for number in range(STEPS_MOST))
    assert found[f"t{STEPS_MOST + 1}"] == Feasible(("x",), None)


def test_only_so_many_tools_are_looked_at() -> None:
    """Each of them needs what eight others give: without a bound it would be all of them."""
    names = [f"t{number}" for number in range(2_000)]
    required = {name: ["x"] for name in names}
    giving = {
        (name, "x"): dict.fromkeys(names[number * GIVERS_MOST + 1 : (number + 1) * GIVERS_MOST + 1], GIVES)
        for number, name in enumerate(names)
    }
    asked: Counter[str] = Counter()

    class Counted(World):
        def needs(self, name: str) -> list:  # type: ignore[type-arg]
            asked[name] += 1
            return list(super().needs(name))

    world = Counted(required, giving, {}, frozenset())
    assert feasibility(["t0"], world, world.has)["t0"] == Feasible(("x",), None)
    assert asked.total() == TOOLS_MOST + 1
