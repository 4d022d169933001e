"""Both languages give the same structure for the same program, whatever it is."""

from __future__ import annotations

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
