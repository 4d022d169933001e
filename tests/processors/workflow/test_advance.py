"""Decisions of a run, and what was begun early for the branches that they close."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow import Step
from pml.schemas.events import SpeculationEnded
from tests.processors.session_world import OUTCOMES, SessionWorld, data_of
from tests.processors.speculation.test_candidates import LIST, READ, SEARCH, workflow, world

PARSE = {"tool": "files:parse"}


def branch(*tasks: dict[str, Any], outcome: str = "true") -> dict[str, Any]:
    """These tasks, then a decision about `m`, and `n` behind it."""
    last = {"id": "n", **PARSE, "condition": [{"node": "d2", "outcome": outcome}]}
    return {"tasks": [*tasks, last], "decisions": [{"id": "d2", "expression": "m.count > 0"}]}


def test_a_decision_is_told_as_it_came_whatever_its_branches_name() -> None:
    for count, told in ((1, "true"), (0, "false")):
        for named in ("true", "false"):
            found = SessionWorld()
            found.start(branch({"id": "m", **PARSE}, outcome=named))
            step = found.answer(found.call_of("m"), {"count": count})
            assert data_of(step, "branch.taken").outcome == told


def test_a_plan_of_shadow_mode_is_scored_by_its_call_not_by_its_branch() -> None:
    """Its confidence was enough, if only just: a branch taken does not say that it would have been served."""
    found = world({"d1": (1, 1)}, threshold=0.5, speculation_mode="shadow")
    found.start(workflow({"d1": "true"}))
    found.answer(found.call_of("quick"), {"first": "a.md"})
    assert data_of(found.answer(found.call_of("slow"), {"count": 1}), "branch.taken").outcome == "true"
    assert found.types().count("speculation.planned") == 1
    assert found.of_type("speculation.scored") == []
    step = found.answer(found.call_of("late"), {"text": "a"})
    assert data_of(step, "speculation.scored").reason == "joined"


def test_calls_of_a_closed_branch_end_in_the_order_of_their_tasks() -> None:
    """Never in that of a set, which differs from process to process."""
    found = world({"d1": (8, 0)}, threshold=0.8, budget_name="high")
    plan = workflow({"d1": "true"})
    names = [f"late{number}" for number in range(8)]
    plan["tasks"][2:] = [{**plan["tasks"][2], "id": name, "arguments": {"path": name}} for name in names]
    found.start(plan)
    found.answer(found.call_of("quick"), {"first": "a.md"})
    step = found.answer(found.call_of("slow"), {"count": 0})
    ended = [event.data for event in step.events if isinstance(event.data, SpeculationEnded)]
    assert [(data.task_id, data.reason) for data in ended] == [(name, "branch_not_taken") for name in names]


def replanned() -> SessionWorld:
    """`x` began early; `y` of another run joined its call; then a plan without `x` came."""
    found = world({"d1": (8, 0)}, threshold=0.8, speculation_depth=2)
    late = {"id": "x", **READ, "depends_on": ["b"], "condition": [{"node": "d1", "outcome": "true"}]}
    tasks = [{"id": "a", **LIST}, {"id": "b", **SEARCH, "depends_on": ["a"]}, late]
    decisions = [{"id": "d1", "expression": "b.count > 0"}]
    found.start({"tasks": tasks, "decisions": decisions, "options": {"per_layer_validation": True}})
    found.answer(found.call_of("a"), {"first": "x"})
    found.start({"tasks": [{"id": "y", **READ}]}, "run_2")
    assert found.of_type("task.started")[-1].data.served_by == "joined"  # type: ignore[attr-defined]
    found.send("run.replan", data=branch({"id": "m", **PARSE}))
    return found


@pytest.mark.parametrize("answered_before", [True, False])
@pytest.mark.parametrize("count", [0, 1])
def test_a_run_decides_on_after_a_replan_dropped_a_task_whose_call_another_run_joined(
    answered_before: bool, count: int
) -> None:
    found = replanned()
    if answered_before:
        found.answer(found.call_of("y"), {"text": "a"})
    step = found.answer(found.call_of("m"), {"count": count})
    assert data_of(step, "branch.taken").outcome == ("true" if count else "false")
    if not answered_before:
        assert (
            data_of(found.answer(found.call_of("y"), {"text": "a"}), "task.completed").served_by == "joined"
        )
    assert found.session is not None
    assert found.session.runs["run_2"].status == "completed"


def test_a_run_is_retried_after_a_joined_call_failed_whose_task_a_replan_dropped() -> None:
    found = replanned()
    found.answer(found.call_of("y"), code="NOT_FOUND")
    found.answer(found.call_of("m"), code="NOT_FOUND")
    found.send("run.continue")
    assert data_of(found.send("run.retry"), "run.retried").task_ids == ("m", "n")


def failure(step: Step) -> tuple[str, list[str]]:
    error = data_of(step, "run.failed").error
    return error["code"], error["details"]["tasks"]


WRITE = {"tool": "files:write_file", "arguments": {"path": "b.md"}}


def test_a_run_whose_task_failed_in_time_names_the_task() -> None:
    found = SessionWorld()
    found.start({"tasks": [{"id": "a", **READ}]})
    assert failure(found.answer(found.call_of("a"), code="NOT_FOUND")) == ("TASK_FAILED", ["a"])


def test_a_run_whose_time_is_over_says_so_and_names_what_was_not_begun() -> None:
    """A read is given up at once; a write is awaited, and what comes after it is not begun."""
    found = SessionWorld()
    found.start({"tasks": [{"id": "a", **READ}], "options": {"timeout_s": 1}})
    assert failure(found.due()) == ("RUN_TIMEOUT", [])
    found = SessionWorld()
    tasks = [{"id": "w", **WRITE}, {"id": "a", **READ, "depends_on": ["w"]}]
    found.start({"tasks": tasks, "options": {"timeout_s": 1}})
    assert [event.type for event in found.due().events] == ["task.skipped"]
    assert failure(found.answer(found.call_of("w"))) == ("RUN_TIMEOUT", ["a"])


def test_a_run_that_has_done_everything_completes_though_its_time_is_over() -> None:
    found = SessionWorld()
    found.start({"tasks": [{"id": "w", **WRITE}], "options": {"timeout_s": 1}})
    found.time_ms += 2_000
    assert found.answer(found.call_of("w")).events[-1].type == "run.completed"


def test_of_several_results_that_are_gone_a_decision_names_the_one_of_the_first_task() -> None:
    """Never the first of a set, which differs from process to process."""
    found = SessionWorld()
    names = [f"t{number:02}" for number in range(16)]
    plan = branch(*({"id": name, **PARSE} for name in names))
    plan["decisions"][0]["expression"] = " or ".join(f"{name}.x" for name in names)
    found.start(plan)
    for name in reversed(names):
        step = found.answer(found.call_of(name), {"x": True})
        if name == "t01":
            found.gone.update(address for address in found.payloads if address[0] == OUTCOMES)
            found.payloads = {
                address: value for address, value in found.payloads.items() if address[0] != OUTCOMES
            }
    assert data_of(step, "branch.taken").reason == "the value at pml.tool-outcomes/3/15 is gone"
