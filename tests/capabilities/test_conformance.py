"""The same program in both languages has the one structure that its case writes down."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.capabilities.analysing import structure_of
from tests.capabilities.case_table import read_cases
from tests.capabilities.structures import short


def cases() -> list[Any]:
    """Every case in the languages that it is written in: what only one of them has is written in that one."""
    return [
        pytest.param(case, language, id=f"{file}: {case['name']} ({language})")
        for file, case in read_cases()
        for language in ("python", "typescript")
        if language in case
    ]


@pytest.mark.parametrize(("case", "language"), cases())
def test_a_program_has_the_structure_of_its_case(case: dict[str, Any], language: Any) -> None:
    found = short(structure_of(case[language], language))
    wanted = case["structure"] | case.get(f"only_{language}", {})
    if "provides" not in wanted:
        found.pop("provides", None)
    wanted["edges"] = sorted(wanted.get("edges", []))
    if "unsupported" in wanted:
        wanted["unsupported"] = sorted(wanted["unsupported"])
    assert found == {name: value for name, value in wanted.items() if value}


def test_no_two_cases_have_the_same_name() -> None:
    names = [case.id for case in cases()]

    assert len(set(names)) == len(names)
