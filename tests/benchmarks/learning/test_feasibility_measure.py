"""Which candidates can be called is looked up in every call; what that would change is counted."""

from __future__ import annotations

from benchmarks.learning.feasibility_measure import WAYS, Answered, Asked, row_of
from pml.processors.learning.feasibility import Feasible
from pml.processors.learning.model import Candidate

ABLE, LATER, NEVER = Feasible(), Feasible(("x",), ("c",), 0.1), Feasible(("x",), None)
NAMED = (Candidate("a", 0.6), Candidate("b", 0.4))


def asked(feasible: Feasible, came: str) -> Asked:
    """The first candidate is so feasible."""
    return Asked(NAMED, {"a": feasible, "b": ABLE}, came, group=len(came))


def test_what_lacks_something_falls_behind_or_weighs_as_much_as_its_way_is_sure() -> None:
    assert [asked(found, "b").rank(WAYS["last"]) for found in (ABLE, LATER, NEVER)] == [2, 1, 1]
    assert [asked(found, "b").rank(WAYS["weighed"]) for found in (ABLE, LATER, NEVER)] == [2, 2, 1]


def test_a_row_says_how_much_is_lacking_and_what_that_would_change() -> None:
    found = Answered([asked(NEVER, "b"), asked(LATER, "a"), asked(ABLE, "gone")], [2.0], [1.0])
    told = row_of("nestful", "nothing", found, seed=1)
    assert (told["asked"], told["lacking"], told["lacking_of_first"]) == (3, 0.3333, 0.3333)
    assert (told["infeasible"], told["lacking_of_what_came"], told["hit_1"]) == (0.1667, 0.5, 0.3333)
    assert told["gains"]["last"]["hit_1"]["mean"] == 0
    assert told["gains"]["weighed"]["hit_1"]["mean"] == 0.3333
