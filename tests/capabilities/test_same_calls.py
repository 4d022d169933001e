"""What a structure does is what its program does: both are run, and their calls and results compared."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pml.processors.capabilities.analysing import structure_of
from pml.schemas.structure import Structure
from tests.capabilities.programs import Written, programs
from tests.capabilities.running import Run, World, follows, run_program

CASES = Path(__file__).parent / "cases"


def compare(code: str, structure: Structure, given: dict[str, Any], seed: int, in_order: bool) -> None:
    """Run both; where nothing happens at the same time, also their order is the same, and told by edges."""
    real, drawn = World(seed), World(seed)
    result = run_program(code, given, real)
    run = Run(structure, dict(given), drawn)

    assert run.result() == result
    assert sorted(drawn.calls) == sorted(real.calls)
    after = follows(structure)
    if in_order:
        assert drawn.calls == real.calls
        assert all(later in after[earlier] for earlier, later in _neighbours(structure, run))
    for earlier, later in _told_apart(run, drawn):
        if later in after[earlier]:
            assert real.calls.index(_call(run, drawn, earlier)) < real.calls.index(_call(run, drawn, later))


def _neighbours(structure: Structure, run: Run) -> list[tuple[str, str]]:
    """Calls that ran one after the other, but for those of two times of a loop."""
    loops = {node.id: node.loop for node in structure.nodes}
    place = {node.id: position for position, node in enumerate(structure.nodes)}
    return [
        (earlier, later)
        for earlier, later in pairwise(run.executed)
        if loops[earlier] is None or loops[earlier] != loops[later] or place[earlier] < place[later]
    ]


def _told_apart(run: Run, world: World) -> list[tuple[str, str]]:
    """Pairs of nodes that ran once each, with calls that nobody else made."""
    once = [
        name
        for name, call in zip(run.executed, world.calls, strict=True)
        if run.executed.count(name) == 1 and world.calls.count(call) == 1
    ]
    return [(one, other) for one in once for other in once]


def _call(run: Run, world: World, node: str) -> tuple[str, str]:
    return world.calls[run.executed.index(node)]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs(), number=st.integers(0, 9), seed=st.integers(0, 10_000))
def test_a_structure_calls_what_its_program_calls(program: Written, number: int, seed: int) -> None:
    structure = structure_of(program.python, "python")
    if not structure.unsupported:
        compare(program.python, structure, {"given": number}, seed, not program.gathers)
