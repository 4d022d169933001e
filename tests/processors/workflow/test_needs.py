"""`needs` asks for every value that a decision reads; the session of these tests checks that each time."""

from __future__ import annotations

from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import reference, task


def test_what_a_speculation_read_is_asked_for_after_its_task_has_ended() -> None:
    world = SessionWorld()
    late, other = task("c", reference("a.next"), "b"), task("d", "4", "b", tool="time:now")
    world.start({"tasks": [task("a", "1"), task("b", "2"), late, other]})
    world.answer(world.call_of("a"), {"next": "3"})
    world.catalog = catalog(speculation_mode="off")
    world.answer(world.call_of("b"))
    real = next(call for call in world.open_calls.values() if call.task_id == "c" and not call.speculative)
    world.answer(real.call_id, code="NOT_FOUND")
    ended = data_of(world.answer(world.call_of("d")), "speculation.ended")
    assert (ended.task_id, ended.arguments) == ("c", {"path": "3"})
