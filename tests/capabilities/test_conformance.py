"""The same program in both languages has the one structure that its case writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pml.processors.capabilities.analysing import structure_of
from tests.capabilities.structures import short

CASES = Path(__file__).parent / "cases"


def cases() -> list[Any]:
    """Every case in the languages that it is written in: what only one of them has is written in that one."""
    return [
        pytest.param(case, language, id=f"{path.stem}: {case['name']} ({language})")
        for path in sorted(CASES.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
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
