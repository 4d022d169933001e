"""A simulation that does not notice a broken promise is blind: each mutant breaks one."""

from __future__ import annotations

import pytest

from tests.simulation.test_simulation import TIMEOUT_S, simulate


@pytest.mark.timeout(TIMEOUT_S)
def test_mutants_are_found() -> None:
    report = simulate("--seeds", "0", "--mutants", "quick")
    assert len(report["mutants"]) >= 45
    assert [mutant["name"] for mutant in report["mutants"] if mutant["seeds"] is None] == []
