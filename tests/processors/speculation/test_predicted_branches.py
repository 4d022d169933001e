"""A predicted capability with decisions: what its results open begins, and what joins branches again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.schemas.prediction import PREDICT_TOOL
from tests.processors.session_world import SessionWorld, data_of
from tests.processors.speculation.predicted_world import READ, call, done, world


def forked(last: dict[str, Any]) -> dict[str, Any]:
    """A capability that looks at one file, by what it finds at one of two, and then does a `last` thing."""
    reads = {
        "n1": {"arguments": READ},
        "n2": {"arguments": {"path": "c.md"}, "condition": [{"node": "d1", "outcome": "true"}]},
        "n3": {"arguments": {"path": "d.md"}, "condition": [{"node": "d1", "outcome": "false"}]},
        "n4": {"depends_on": ["n2", "n3"], "arguments": {"path": "e.md"}, **last},
    }
    tasks = [{"id": name, "tool": "files:read_file", **task} for name, task in reads.items()]
    told = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": list(reads)}
    decisions = [{"id": "d1", "expression": "n1.found == 'c.md'"}]
    return {
        "learner": "markov_1",
        "candidates": [told],
        "workflow": {"tasks": tasks, "decisions": decisions},
    }


EITHER = {"arguments": {"path": {"type": "reference", "expression": "n2.found|n3.found"}}}
NEITHER = {"arguments": {"path": {"type": "reference", "expression": "n3.found"}}}


@pytest.mark.parametrize("last", [{}, EITHER])
@pytest.mark.parametrize(("found", "branch", "path"), [("c.md", "n2", "c.md"), ("x.md", "n3", "d.md")])
def test_where_branches_join_again_a_capability_goes_on(
    last: dict[str, Any], found: str, branch: str, path: str
) -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), forked(last))
    step = known.answer(known.call_of("n1"), {"found": found})
    assert [(made.task_id, made.arguments["path"]) for made in step.calls] == [(branch, path)]
    step = known.answer(known.call_of(branch), {"found": "e.md"})
    assert [(made.task_id, made.arguments) for made in step.calls] == [("n4", {"path": "e.md"})]
    assert data_of(step, "speculation.started").source_tasks == ("n1", branch)
    known.answer(known.call_of("n4"), {"found": "at last"})
    for number, name in enumerate(["b.md", path, "e.md"], start=2):
        assert data_of(call(known, f"run_{number}", name), "task.completed").served_by == "speculation"


def test_what_joins_branches_reads_nothing_of_one_that_is_left_out() -> None:
    """Not even of a task that is called so in the run that has ended."""
    known = world()
    task = {"id": "n3", "tool": "files:read_file", "arguments": {"path": "a.md"}}
    known.start({"tasks": [task]}, "run_1")
    known.answer(known.call_of("n3", "run_1"), {"found": "of another run"})
    known.answer(known.call_of(PREDICT_TOOL), forked(NEITHER))
    known.answer(known.call_of("n1"), {"found": "c.md"})
    assert known.answer(known.call_of("n2"), {"found": "e.md"}).calls == ()


def test_what_joins_branches_that_are_all_left_out_begins_with_what_decided_that() -> None:
    known = world()
    done(known, "run_1")
    answer = forked({"depends_on": ["n2"]})
    known.answer(known.call_of(PREDICT_TOOL), answer)
    step = known.answer(known.call_of("n1"), {"found": "d.md"})
    assert [made.task_id for made in step.calls] == ["n3", "n4"]
    sources = {event.data.task_id: event.data.source_tasks for event in known.of_type("speculation.started")}
    assert sources == {"n1": None, "n3": ("n1",), "n4": ("n1",)}
    step = call(known, "run_2", "b.md", tool="files:write_file")
    gone = {event.data.task_id for event in step.events if event.type == "speculation.ended"}
    assert gone >= {"n1"}, "what was read of it is written"


def test_behind_a_decision_that_nobody_can_take_nothing_begins() -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), forked({}))
    assert known.answer(known.call_of("n1"), {"nothing": "found"}).calls == ()


@pytest.mark.parametrize(("mode", "begun"), [("fast", ["n1", "n2"]), ("slow", ["n1", "n3", "n4"])])
def test_a_task_behind_what_parameters_leave_out_begins_at_once(mode: str, begun: list[str]) -> None:
    known = world()
    done(known, "run_1")
    answer = forked({"depends_on": ["n2"]})
    answer["workflow"]["decisions"] = [{"id": "d1", "expression": f"'{mode}' == 'fast'"}]
    step = known.answer(known.call_of(PREDICT_TOOL), answer)
    assert [made.task_id for made in step.calls] == begun


VALUES = st.lists(st.booleans(), min_size=2, max_size=6)


@st.composite
def branching(draw: st.DrawFn) -> tuple[dict[str, Any], list[bool]]:
    """A workflow with decisions about earlier results, joins, nested branches; and what each task finds."""
    found = draw(VALUES)
    tasks: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    for number in range(len(found)):
        earlier = [task["id"] for task in tasks]
        condition = []
        for read in sorted(draw(st.sets(st.sampled_from(earlier), max_size=2))) if earlier else ():
            decisions.append({"id": f"d{len(decisions)}", "expression": f"{read}.found"})
            outcome = draw(st.sampled_from(["true", "false"]))
            condition.append({"node": decisions[-1]["id"], "outcome": outcome})
        waits = sorted(draw(st.sets(st.sampled_from(earlier), max_size=3))) if earlier else []
        tasks.append(
            {
                "id": f"n{number}",
                "tool": "files:read_file",
                "arguments": {"path": f"{number}.md"},
                "depends_on": waits,
                "condition": condition,
            }
        )
    return {"tasks": tasks, "decisions": decisions}, found


def answer_all(known: SessionWorld, found: list[bool]) -> None:
    """Each call finds what its task does; nothing more is predicted."""
    while known.open_calls:
        made = next(iter(known.open_calls.values()))
        nothing = {"learner": "none", "candidates": []}
        known.answer(
            made.call_id,
            nothing if made.tool == PREDICT_TOOL else {"found": found[int(made.task_id.removeprefix("n"))]},
        )


@given(drawn=branching())
@settings(max_examples=200, deadline=None)
def test_of_a_predicted_capability_begins_what_a_run_of_it_would_do(
    drawn: tuple[dict[str, Any], list[bool]],
) -> None:
    """The twin is the run: each of its tasks finds its call done, and nothing else was begun."""
    workflow, found = drawn
    known = world(budget_name="high")
    done(known, "run_1")
    names = [task["id"] for task in workflow["tasks"]]
    told = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": names}
    known.answer(
        known.call_of(PREDICT_TOOL), {"learner": "markov_1", "candidates": [told], "workflow": workflow}
    )
    answer_all(known, found)
    begun = {event.data.task_id for event in known.of_type("speculation.started")}
    known.start(workflow, "run_2")
    answer_all(known, found)
    completed = {
        event.data.task_id: event.data.served_by
        for event in known.of_type("task.completed")
        if event.run_id == "run_2"
    }
    assert begun <= completed.keys()
    if known.session_run("run_2").status == "completed":
        assert completed == dict.fromkeys(begun, "speculation")
