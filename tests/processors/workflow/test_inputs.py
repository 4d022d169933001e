"""What is read back from the input topics."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK


def test_a_record_that_is_another_one_by_now_is_a_result_without_fields() -> None:
    """A topic that was made anew gives its offsets a second time."""
    world = SessionWorld(catalog=catalog(speculation_mode="off"))
    world.start(FORK)
    world.answer(world.call_of("a"), {"next": "3"})
    assert world.session is not None
    run = world.session.runs["run_1"]
    result = run.task("a").result
    assert result is not None
    world.payloads[result] = world.payloads[run.payload]
    assert data_of(world.answer(world.call_of("b")), "task.started").omitted == ("path",)
