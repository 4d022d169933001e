"""Both languages give the same structure for the same program, whatever it is."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from pml.processors.capabilities.analysing import structure_of
from tests.capabilities.programs import Written, programs
from tests.capabilities.structures import short


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(program=programs())
def test_the_same_program_has_the_same_structure_in_both_languages(program: Written) -> None:
    python = short(structure_of(program.python, "python"))
    typescript = short(structure_of(program.typescript, "typescript"))

    assert python == typescript


@pytest.mark.parametrize(
    "condition",
    [
        "(a.x and a.y) and a.z",
        "a.x and a.y and a.z",
        "a.x and (a.y and a.z)",
        "((a.x or a.y) or a.z) or a.w",
        "((a.x or a.y) and a.z) and a.w",
        "(a.x and a.y) or a.z",
    ],
)
def test_parentheses_that_say_nothing_are_no_part_of_the_structure(condition: str) -> None:
    python = f"a = await mcp.s.one()\nif {condition}:\n    await mcp.s.two()\nreturn a\n"
    symbols = condition.replace(" and ", " && ").replace(" or ", " || ")
    typescript = f"const a = await mcp.s.one();\nif ({symbols}) {{ await mcp.s.two(); }}\nreturn a;\n"
    assert short(structure_of(python, "python")) == short(structure_of(typescript, "typescript"))
