"""After which tasks a run waits for somebody's word."""

from __future__ import annotations

import pytest

from tests.processors.session_world import SessionWorld
from tests.processors.workflow.test_advance import PARSE, branch


@pytest.mark.parametrize(("count", "last"), [(0, "run.completed"), (1, "decision.required")])
def test_nobody_is_asked_after_a_task_that_was_skipped(count: int, last: str) -> None:
    world = SessionWorld()
    world.start(branch({"id": "m", **PARSE}) | {"options": {"decision_points": ["n"]}})
    world.answer(world.call_of("m"), {"count": count})
    if count:
        world.answer(world.call_of("n"))
    assert world.types()[-1] == last
