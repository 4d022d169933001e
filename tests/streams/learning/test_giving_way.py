"""A process that stands behind others stands still while they keep the processors busy, but not for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import accumulate, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.streams.learning.giving_way import LOOKS, ONE_OF, OTHERS_MOST, Taken, Turns, left_to_others
from pml.streams.learning.limited import MIB, Limits, run_limited

SHARES = st.floats(0, 1)
# Ends once it stood still for a second: others alone, however busy, do not hold it up as long.
STANDS_STILL = (
    "import time; last = time.monotonic()\n"
    "while (now := time.monotonic()) - last < 1: last = now\n"
    "print('stood still')"
)


def turns_of(shares: list[float]) -> list[bool]:
    """Whether it may run after each second in which others took this share of two processors.

    What is left to others is that of many.
    """
    turns = Turns(OTHERS_MOST)
    taken = accumulate(shares, lambda so_far, share: so_far + 2 * share, initial=0.0)
    return [turns.may_run(Taken(2.0 * number, others)) for number, others in enumerate(taken)][1:]


@given(st.lists(st.integers(0, 255).map(lambda share: OTHERS_MOST * share / 256)))
def test_it_runs_while_others_leave_room(shares: list[float]) -> None:
    """Shares whose sums are exact: others just below it may be added up to no less than it."""
    assert all(turns_of(shares))


@given(st.lists(SHARES, max_size=60))
def test_however_busy_others_are_it_runs_in_one_look_of_ten(shares: list[float]) -> None:
    runs = [(may_run, len(list(looks))) for may_run, looks in groupby(turns_of(shares))]
    assert max((length for may_run, length in runs if not may_run), default=0) < ONE_OF


@given(st.lists(st.floats(OTHERS_MOST + 0.01, 1), min_size=5 * ONE_OF, max_size=5 * ONE_OF))
def test_while_others_are_busy_it_runs_in_no_more_looks_than_that(shares: list[float]) -> None:
    assert sum(turns_of(shares)) == 5


def test_one_busy_moment_is_no_busy_machine_and_room_is_seen_soon() -> None:
    assert turns_of([0.0] * LOOKS + [1.0] + [0.0] * LOOKS) == [True] * (2 * LOOKS + 1)
    after = turns_of([1.0] * LOOKS + [0.0] * LOOKS)[LOOKS:]
    assert (after[0], after[-1]) == (False, True)


@given(st.integers(1, 512))
def test_the_more_processors_there_are_the_more_others_may_take(processors: int) -> None:
    assert 0 < left_to_others(processors) <= left_to_others(processors + 1) <= OTHERS_MOST
    assert left_to_others(2) == 0.15, "what was measured: docs/guide/training.md"


@pytest.fixture
def busy_processors() -> Iterator[None]:
    """So many processes that do nothing but work as there are processors."""
    spins = [sys.executable, "-I", "-S", "-c", "while True: pass"]
    others = [subprocess.Popen(spins) for _ in range(os.cpu_count() or 1)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.usefixtures("busy_processors")
async def test_a_program_beside_busy_processors_stands_still_and_says_how_long() -> None:
    program = [sys.executable, "-I", "-S", "-c", STANDS_STILL]
    ended = await run_limited(program, os.environ, Limits(1024 * MIB, time_s=60))
    assert ended.output == b"stood still\n"
    assert 1 <= ended.gave_way_s < ended.took_s


@pytest.mark.parametrize("passed_s", [0.0, -1.0])
def test_clocks_that_stand_still_say_nothing_of_others(passed_s: float) -> None:
    turns = Turns(OTHERS_MOST)
    assert turns.may_run(Taken(10.0, 10.0))
    assert turns.may_run(Taken(10.0 + passed_s, 11.0))
