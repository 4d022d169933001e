"""A simulation that does not notice a broken promise is blind: each mutant breaks one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation import hunt
from tests.simulation.mutants import MUTANTS
from tests.simulation.test_simulation import simulate


def test_mutants_are_found() -> None:
    report = simulate("--seeds", "0", "--mutants", "look")
    assert [mutant["name"] for mutant in report["mutants"]] == [mutant.name for mutant in MUTANTS]
    assert len(MUTANTS) >= 65
    assert [mutant["name"] for mutant in report["mutants"] if mutant["seeds"] is None] == []


def test_each_mutant_has_a_seed_that_found_it() -> None:
    assert hunt.kept().keys() == {mutant.name for mutant in MUTANTS}
    assert all(1 <= hunt.kept()[mutant.name] <= mutant.within for mutant in MUTANTS)


def test_a_look_plays_the_seed_that_was_kept_and_then_all_others() -> None:
    nothing_broken = replace(MUTANTS[0], within=4, patches=list)
    played: list[int] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hunt, "play", lambda seed, plot: played.append(seed) or Calm())
        assert hunt.hunt(nothing_broken, first=3).seeds is None
    assert played == [hunt.FIRST_SEED + number for number in (2, 0, 1, 3)]


class Calm:
    """A play in which every check held."""

    violation = None
