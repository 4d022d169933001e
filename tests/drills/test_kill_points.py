"""Each named point at which a role may die, hit with work in flight (DESIGN §2, rules 3, 4, 6, 8).

Once each in `make test`, `PML_DRILL_ROUNDS` times in `make drill`.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pml.schemas.topics import SESSION_PARTITIONS
from tests.drills.verdict import until_foreseen, verdict
from tests.drills.workshop import ROLES, Workshop

ROUNDS = int(os.environ.get("PML_DRILL_ROUNDS", "1"))
STREAMS = Path(__file__).parent.parent.parent / "streams"
NAMED = re.compile(r'crash_point\("([a-z_.]+)"\)')

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


def named_points() -> list[str]:
    """The points as they stand in the code: one that is added is drilled without being listed anywhere."""
    return [name for name in points_in("*.py") if name.partition(".")[0] in ROLES]


def points_in(files: str) -> list[str]:
    """The points in files of this name."""
    return sorted({name for path in STREAMS.rglob(files) for name in NAMED.findall(path.read_text())})


async def test_there_are_points_in_every_role_that_writes() -> None:
    assert {name.partition(".")[0] for name in named_points()} == set(ROLES)
    assert len(named_points()) >= 20


@pytest.mark.parametrize("turn", range(ROUNDS))
@pytest.mark.parametrize("point", named_points())
async def test_nothing_is_lost_or_doubled_where_a_role_dies(
    workshop: Workshop, point: str, turn: int, say: Callable[[str], None]
) -> None:
    role = point.partition(".")[0]
    async with workshop.work():
        if _passes_often(point):
            workshop.crash_later(role, f"{point}:{1 + turn % 3}")
        else:
            await workshop.stop(role)
            workshop.start(role, crash_at=point)
        assert await workshop.until_dead(role) == -signal.SIGKILL
        workshop.start(role)
        await workshop.until_ready(role)
    say(f"{point}: {await verdict(workshop)}")


@pytest.mark.parametrize("turn", range(ROUNDS))
@pytest.mark.parametrize("point", points_in("write_behind.py"))
async def test_nothing_is_lost_or_doubled_where_who_took_over_dies_writing_its_states_anew(
    workshop: Workshop, point: str, turn: int, say: Callable[[str], None]
) -> None:
    """The first that it writes are all states of a partition, under its own term."""
    async with workshop.work():
        await workshop.stop("orchestrator")
        workshop.start("orchestrator", crash_at=f"{point}:{1 + turn % SESSION_PARTITIONS}")
        assert await workshop.until_dead("orchestrator") == -signal.SIGKILL
        workshop.start("orchestrator")
        await workshop.until_ready("orchestrator")
    say(f"{point}, taking over: {await verdict(workshop)}")


async def test_there_were_calls_that_began_because_they_were_predicted(
    workshop: Workshop, say: Callable[[str], None]
) -> None:
    """Else the drills above say nothing of them."""
    async with workshop.work():
        await until_foreseen(workshop)
    say(f"nobody dies: {await verdict(workshop)}")


def _passes_often(point: str) -> bool:
    """Those of a takeover are passed once a partition, all others with every chunk or call."""
    return point not in {*points_in("takeover.py"), *points_in("ownership.py")}
