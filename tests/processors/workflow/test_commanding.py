"""A command that is not obeyed, or not again, begins nothing."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, SIMPLE


def test_a_command_that_is_refused_or_repeated_runs_nothing_early() -> None:
    """Speculation was off until now: the next input that is obeyed begins what may run early."""
    world = SessionWorld(catalog=catalog(speculation_mode="off"))
    world.start(FORK)
    world.start(SIMPLE, "run_2")
    world.answer(world.call_of("a", "run_1"), {"next": "3"})
    world.send("run.abort", "run_2", command_id="stop")
    world.catalog = catalog()
    for run_id, command_id, told in (
        ("run_2", "stop", "command.attached"),
        ("run_9", "cmd_9", "command.rejected"),
    ):
        step = world.send("run.abort", run_id, command_id=command_id)
        assert [event.type for event in step.events] == [told]
    assert data_of(world.reach("task", "zz", world.time_ms), "speculation.started").task_id == "c"
