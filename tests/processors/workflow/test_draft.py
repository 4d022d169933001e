"""The values that an answer reads while it is being written."""

from __future__ import annotations

from pml.processors.workflow.draft import Results
from tests.processors.session_world import SessionWorld
from tests.processors.workflow.test_decide import FORK


def test_the_results_of_a_run_are_those_of_its_completed_tasks_and_of_what_waits_for_others() -> None:
    world = SessionWorld()
    world.start(FORK)
    world.answer(world.call_of("a"), {"next": "3"})
    world.answer(world.call_of("c"), {"text": "early"})
    assert world.session is not None
    run = world.session.runs["run_1"]
    (entry,) = world.session.speculations.values()
    assert entry.result is not None
    own = {"a": {"next": "3", "content": []}}
    both = own | {"c": {"text": "early", "content": []}}
    for sources, expected in (({}, own), ({"c": entry.result}, both)):
        found = Results(run, world.payloads, sources)
        assert (dict(found), len(found)) == (expected, len(expected))
        assert "b" not in found
    assert dict(Results(run, {})) == {}, "what is past its retention is none"
