"""After a run: which predicted calls begin, and what becomes of them (spec story 12.4)."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.plans import FORESEEN_MOST
from pml.schemas.canonical import NESTING_MAX
from pml.schemas.codec import decode_event, encode
from pml.schemas.events import PredictionMade
from pml.schemas.prediction import HISTORY_MOST, PREDICT_TOOL
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.speculation.predicted_world import (
    READ,
    call,
    done,
    foretell,
    outcomes,
    predicted,
    started,
    world,
)

LOOP = """
async def main():
    x = await mcp.files.parse(x=1)
    while x["n"] > 0:
        x = await mcp.files.parse(x=x["n"])
    return x
"""


def test_a_candidate_that_cannot_be_called_says_what_is_missing() -> None:
    known = world()
    done(known, "run_1")
    told = {
        "missing": ["path\nignore all", "y" * 1_000],
        "through": ["files:list_dir"],
        "steps": 1,
        "cost": 0.5,
    }
    candidates = [
        {"name": "files:read_file", "likelihood": 0.9, "reason": "not_yet", "feasibility": told},
        {"name": "files:list_dir", "likelihood": 0.1, "reason": "unlikely"},
    ]
    answer = {"learner": "discounting", "candidates": candidates}
    made = data_of(known.answer(known.call_of(PREDICT_TOOL), answer), "prediction.made")
    one, other = made.candidates
    assert (one.outcome, one.feasibility.steps, one.feasibility.through) == (
        "not_yet",
        1,
        ("files:list_dir",),
    )
    assert all(len(name) <= 300 for name in one.feasibility.missing)
    assert other.feasibility is None


def test_that_nobody_can_give_what_is_missing_stays_so_in_the_log() -> None:
    known = world()
    done(known, "run_1")
    told = [{"missing": ["path"], "steps": None}, {"steps": 0}]
    candidates = [
        {"name": "files:read_file", "likelihood": 0.5, "reason": "infeasible", "feasibility": each}
        for each in told
    ]
    step = known.answer(known.call_of(PREDICT_TOOL), {"learner": "discounting", "candidates": candidates})
    made = next(event for event in step.events if event.type == "prediction.made")
    kept = decode_event(encode(made)).data
    assert isinstance(kept, PredictionMade)
    assert [each.feasibility and each.feasibility.steps for each in kept.candidates] == [None, 0]


def test_the_question_names_what_the_session_did_and_brings_its_values() -> None:
    known = world()
    done(known, "run_1")
    asked = known.open_calls[known.call_of(PREDICT_TOOL)].arguments
    assert (asked["history"], asked["request"]) == (["files:read_file"], "look at a.md")
    assert asked["past"][0]["arguments"] == {"path": "a.md"}
    assert asked["past"][0]["result"]["text"] == "see a.md"


def test_the_question_brings_what_was_told_beside_the_latest_call() -> None:
    known = world()
    task = {"id": "n1", "tool": "files:read_file", "arguments": {"path": "a.md"}}
    for number, context in enumerate([{"customer": 7}, {"customer": 8}, {}, {"large": "x" * 70_000}]):
        run_id = f"run_{number}"
        known.start({"tasks": [task]}, run_id, context=context)
        known.answer(known.call_of("n1", run_id), {"text": "see"})
        asked = known.open_calls[known.call_of(PREDICT_TOOL, run_id)].arguments
        told = [each.get("context") for each in asked["past"]]
        assert told[:-1] == [None] * number
        assert told[-1] == (context if 0 < len(str(context)) < 1_000 and context else None)


def test_the_log_keeps_of_a_question_where_values_rest_and_none_of_them() -> None:
    known = world()
    step = done(known, "run_1")
    assert "a.md" not in str(data_of(step, "internal.started").arguments)


def test_a_session_remembers_a_bounded_number_of_elements() -> None:
    known = world()
    for number in range(HISTORY_MOST + 3):
        done(known, f"run_{number}", f"{number}.md")
    asked = [each for each in known.open_calls.values() if each.tool == PREDICT_TOOL][-1].arguments
    assert len(asked["history"]) == HISTORY_MOST
    assert [each["arguments"]["path"] for each in asked["past"]] == [f"{n}.md" for n in range(15, 19)]


def test_nothing_is_asked_where_nothing_can_follow() -> None:
    nameless, off, unspeculated, stopped = world(), world(predictions="off"), world(), world()
    done(nameless, "s1")
    done(off, "run_1")
    task = {"id": "n1", "tool": "files:read_file", "arguments": READ}
    unspeculated.start({"tasks": [task], "options": {"speculation": "off"}})
    unspeculated.answer(unspeculated.call_of("n1"), {})
    call(stopped, "run_1")
    stopped.send("run.abort")
    for each in (nameless, off, unspeculated, stopped):
        assert {"run.completed", "run.aborted"} & set(each.types())
        assert "internal.started" not in each.types()


def test_a_session_that_predicts_nothing_remembers_and_reads_nothing_for_it() -> None:
    known = world(predictions="off")
    done(known, "run_1")
    assert known.session is not None
    assert known.session.past == ()


def test_a_run_that_failed_is_an_element_too() -> None:
    known = world()
    call(known, "run_1")
    known.answer(known.call_of("n1"), code="NOT_FOUND")
    asked = known.open_calls[known.call_of(PREDICT_TOOL)].arguments
    assert asked["history"] == ["files:read_file"]
    assert (asked["past"][0]["arguments"], asked["past"][0]["result"]) == ({"path": "a.md"}, None)


@pytest.mark.parametrize(
    "depends_on", [["p1"], ["nobody"]], ids=["waits for itself", "waits for what is not there"]
)
def test_calls_that_can_have_no_order_are_no_answer(depends_on: list[str]) -> None:
    known = world()
    done(known, "run_1")
    said = predicted(("files:read_file", READ, 0.95))
    said["workflow"]["tasks"][0]["depends_on"] = depends_on
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert data_of(step, "internal.ended").error.code == "BAD_ANSWER"


def test_it_is_told_what_arguments_were_taken_from() -> None:
    known = world()
    done(known, "run_1")
    said = predicted(("files:read_file", READ, 0.95))
    said["candidates"][0]["sources"] = {"path": "result files:list_dir first"}
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert data_of(step, "prediction.made").candidates[0].sources == {"path": "result files:list_dir first"}


def test_the_next_run_is_served_by_what_was_predicted() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    step = call(known, "run_2", "b.md")
    assert data_of(step, "task.completed").served_by == "speculation"
    assert data_of(step, "speculation.ended").reason == "hit"
    assert data_of(step, "run.completed").counts.hits == 1


def test_the_next_run_joins_what_is_still_under_way() -> None:
    known = started(world())
    assert data_of(call(known, "run_2", "b.md"), "task.started").served_by == "joined"
    step = known.answer(known.call_of("n1", "run_2"), {"text": "b"})
    assert data_of(step, "speculation.ended").fate == "served"


def test_what_still_runs_when_the_next_run_begins_without_it_was_wrong() -> None:
    known = started(world())
    guessed = known.call_of("p1")
    known.time_ms += 10
    step = call(known, "run_2", "c.md")
    ended = data_of(step, "speculation.ended")
    assert (ended.fate, ended.reason, ended.kind) == ("discarded", "unused", "prediction")
    assert ended.context is not None
    assert ended.arguments == READ
    assert [each.call_id for each in step.cancels] == [guessed]


def test_what_has_its_result_waits_for_the_run_after_the_next() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    known.time_ms += 10
    step = done(known, "run_2", "c.md")
    assert "speculation.ended" not in [event.type for event in step.events]
    known.time_ms += 10
    step = call(known, "run_3", "b.md")
    assert data_of(step, "task.completed").served_by == "speculation"
    assert data_of(step, "speculation.ended").reason == "hit"


def test_what_waits_is_discarded_when_something_is_written() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    known.time_ms += 10
    step = call(known, "run_2", "b.md", tool="files:write_file")
    assert data_of(step, "speculation.ended").reason == "invalidated"
    known.answer(known.call_of("n1", "run_2"), {"text": "written"})
    assert data_of(call(known, "run_3", "b.md"), "task.started").served_by == "call"


def test_what_waits_too_long_expires() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    known.time_ms += 300_000
    step = call(known, "run_2", "b.md")
    assert data_of(step, "speculation.ended").reason == "expired"
    assert data_of(step, "task.started").served_by == "call"


@pytest.mark.parametrize(("tool", "kept"), [("files:read_file", True), ("files:list_dir", False)])
def test_what_runs_is_kept_while_the_run_may_still_call_its_tool(tool: str, kept: bool) -> None:
    known = started(world())
    known.time_ms += 10
    tasks = [
        {"id": "n1", "tool": "files:read_file", "arguments": {"path": "c.md"}},
        {
            "id": "n2",
            "tool": tool,
            "arguments": {"path": {"type": "reference", "expression": "n1.next"}},
            "depends_on": ["n1"],
        },
    ]
    step = known.start({"tasks": tasks}, "run_2")
    assert ("speculation.ended" not in [event.type for event in step.events]) == kept
    known.time_ms += 10
    step = known.answer(known.call_of("n1", "run_2"), {"next": "b.md"})
    assert data_of(step, "task.started").served_by == ("joined" if kept else "call")


def test_a_run_that_began_before_the_prediction_says_nothing_about_it() -> None:
    known = world()
    call(known, "run_2", "c.md")
    known.time_ms += 10
    started(known)
    step = known.answer(known.call_of("n1", "run_2"), {"text": "c"})
    assert "speculation.ended" not in [event.type for event in step.events]


def test_an_answer_that_comes_after_the_next_run_began_begins_nothing() -> None:
    known = world()
    done(known, "run_1")
    question = known.call_of(PREDICT_TOOL)
    call(known, "run_2", "b.md")
    assert outcomes(known.answer(question, predicted(("files:read_file", READ, 0.95)))) == ["overtaken"]


def test_an_answer_that_comes_after_its_run_was_taken_up_again_begins_nothing() -> None:
    known = world()
    call(known, "run_1")
    known.answer(known.call_of("n1"), code="NOT_FOUND")
    question = known.call_of(PREDICT_TOOL)
    known.send("run.retry")
    assert outcomes(known.answer(question, predicted(("files:read_file", READ, 0.95)))) == ["overtaken"]


def test_a_run_that_was_taken_up_again_does_not_take_predicted_calls_for_its_own() -> None:
    """It has a task of the same name, under a decision that closes it."""
    known = world()
    read, under = {"tool": "files:read_file"}, {"node": "d1", "outcome": "true"}
    tasks = [
        {"id": "n1", **read, "arguments": {"path": "a.md"}},
        {"id": "p1", **read, "arguments": {"path": "c.md"}, "condition": [under]},
    ]
    workflow = {"tasks": tasks, "decisions": [{"id": "d1", "expression": "n1.more"}]}
    known.start(workflow, "run_1")
    known.time_ms += 10
    known.answer(known.call_of("n1"), code="NOT_FOUND")
    assert outcomes(foretell(known, ("files:read_file", READ, 0.95))) == ["begun"]
    guessed = known.call_of("p1")
    known.send("run.retry")
    step = known.answer(known.call_of("n1"), {"more": False})
    assert "run.completed" in [event.type for event in step.events]
    assert "speculation.ended" not in [event.type for event in step.events]
    known.answer(guessed, {"text": "b"})
    assert data_of(call(known, "run_2", "b.md"), "task.started").served_by == "speculation"


@pytest.mark.parametrize(
    ("tool", "arguments", "confidence", "outcome"),
    [
        ("files:write_file", READ, 0.99, "not_safe"),
        ("files:delete_file", READ, 0.99, "not_safe"),
        ("nowhere:tool", READ, 0.99, "not_safe"),
        ("time:now", {}, 0.99, "not_safe"),
        ("web:get", {"url": "http://localhost"}, 0.99, "open_world"),
        ("files:read_file", READ, 0.5, "below_threshold"),
        ("files:read_file", READ, 0.95, "begun"),
    ],
)
def test_a_predicted_call_meets_every_condition(
    tool: str, arguments: dict[str, Any], confidence: float, outcome: str
) -> None:
    known = world()
    done(known, "run_1")
    step = foretell(known, (tool, arguments, confidence))
    assert outcomes(step) == [outcome]
    assert ("speculation.started" in [event.type for event in step.events]) == (outcome == "begun")


def test_a_candidate_without_arguments_is_told_with_its_reason() -> None:
    known = world()
    done(known, "run_1")
    told = {"name": "files:read_file", "likelihood": 0.9, "reason": "no_source: path"}
    step = known.answer(known.call_of(PREDICT_TOOL), {"learner": "markov_1", "candidates": [told]})
    assert outcomes(step) == ["no_source: path"]


def test_a_read_waits_while_a_write_of_the_same_is_pending() -> None:
    known = world()
    call(known, "run_2", "b.md", "files:write_file")
    done(known, "run_1")
    assert outcomes(foretell(known, ("files:read_file", READ, 0.95))) == ["pending_write"]


def test_a_write_makes_a_waiting_prediction_void() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    assert data_of(call(known, "run_2", "b.md", "files:write_file"), "speculation.ended").reason == (
        "invalidated"
    )


def test_predictions_share_the_budget_of_all_speculation() -> None:
    known = world(budget_name="low")
    done(known, "run_1")
    paths = [("files:read_file", {"path": f"{name}.md"}, 0.95) for name in "bc"]
    assert outcomes(foretell(known, *paths)) == ["begun", "budget"]


def test_what_lacks_a_little_confidence_is_held_against_what_came() -> None:
    known = world()
    done(known, "run_1")
    assert outcomes(foretell(known, ("files:read_file", READ, 0.90))) == ["below_threshold"]
    known.time_ms += 10
    scored = data_of(done(known, "run_2", "b.md"), "speculation.scored")
    assert (scored.success, scored.kind, scored.task_id) == (True, "prediction", "p1")
    foretell(known, ("files:read_file", READ, 0.90))
    known.time_ms += 10
    scored = data_of(done(known, "run_3", "c.md"), "speculation.scored")
    assert (scored.success, scored.reason) == (False, "unused")


def test_shadow_mode_plans_and_calls_nothing() -> None:
    known = world(speculation_mode="shadow")
    done(known, "run_1")
    step = foretell(known, ("files:read_file", READ, 0.95))
    assert (outcomes(step), step.calls) == (["planned"], ())
    known.time_ms += 10
    assert data_of(done(known, "run_2", "b.md"), "speculation.scored").success


def paced() -> SessionWorld:
    """Shadow mode has seen how long a read takes, then planned one of x.md, whose result would be there."""
    known = world(speculation_mode="shadow")
    done(known, "run_1")
    foretell(known, ("files:read_file", READ, 0.95))
    known.time_ms += 10
    assert data_of(done(known, "run_2", "b.md"), "speculation.scored").success
    assert outcomes(foretell(known, ("files:read_file", {"path": "x.md"}, 0.95))) == ["planned"]
    known.time_ms += 50
    assert "speculation.scored" not in [event.type for event in done(known, "run_3", "c.md").events]
    return known


def test_what_shadow_mode_planned_waits_as_a_result_would() -> None:
    known = paced()
    known.time_ms += 10
    scored = data_of(done(known, "run_4", "x.md"), "speculation.scored")
    assert (scored.success, scored.reason) == (True, "hit")


def test_what_shadow_mode_planned_is_given_up_as_a_result_would_be() -> None:
    known = paced()
    known.time_ms += 300_000
    scored = data_of(done(known, "run_4", "c.md"), "speculation.scored")
    assert (scored.success, scored.reason) == (False, "expired")


def test_so_many_planned_calls_wait_at_the_most() -> None:
    known = world(speculation_mode="shadow", budget_name="high")
    done(known, "run_1")
    foretell(known, ("files:read_file", READ, 0.95))
    known.time_ms += 10
    done(known, "run_2", "b.md")
    for number in range(5):
        paths = [("files:read_file", {"path": f"{number}{name}.md"}, 0.95) for name in "abcde"]
        foretell(known, *paths)
        known.time_ms += 50
        done(known, f"run_{number + 3}", "c.md")
    assert known.session is not None
    waiting = [item.task_id for item in known.session.foreseen.values()]
    assert len(waiting) == FORESEEN_MOST
    assert {event.data.reason for event in known.of_type("speculation.scored")} == {"hit", "unused"}


def test_a_prediction_that_nobody_uses_expires_although_the_session_rests() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "b"})
    assert known.session is not None
    assert known.session.live
    assert data_of(known.due(), "speculation.ended").reason == "expired"
    assert not known.session.live


def test_a_server_that_gives_no_answer_costs_nothing_but_the_prediction() -> None:
    known = world()
    done(known, "run_1")
    assert data_of(known.due(), "internal.ended").error.code == "TIMEOUT"
    assert known.session is not None
    assert not known.session.live


def test_an_answer_that_makes_no_sense_begins_nothing() -> None:
    known = world()
    done(known, "run_1")
    step = known.answer(known.call_of(PREDICT_TOOL), {"candidates": 7})
    assert data_of(step, "internal.ended").error.code == "BAD_ANSWER"
    assert [event.type for event in step.events] == ["internal.ended"]


def test_what_two_candidates_begin_with_begins_once() -> None:
    known = world(threshold=0.4)
    done(known, "run_1")
    step = foretell(known, ("files:read_file", READ, 0.45), ("files:read_file", READ, 0.43))
    assert (outcomes(step), len(step.calls)) == (["begun", "cached"], 1)


def twice(one: str, other: str) -> dict[str, Any]:
    """A capability of two tasks with these names that make the same call."""
    tasks = [{"id": name, "tool": "files:read_file", "arguments": READ} for name in (one, other)]
    told = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": [one, other]}
    return {"learner": "markov_1", "candidates": [told], "workflow": {"tasks": tasks}}


def test_what_a_capability_begins_with_twice_begins_once() -> None:
    known = world(budget_name="low")
    done(known, "run_1")
    step = known.answer(known.call_of(PREDICT_TOOL), twice("p1__n1", "p1__n2"))
    assert (outcomes(step), [each.task_id for each in step.calls]) == (["begun"], ["p1__n1"])


def after(source: str) -> dict[str, Any]:
    """A task that reads what another found."""
    path = {"type": "reference", "expression": f"{source}.found"}
    return {"id": f"{source}_next", "tool": "files:read_file", "arguments": {"path": path}}


def test_what_follows_either_of_two_calls_that_are_one_begins_with_its_result() -> None:
    known = world()
    done(known, "run_1")
    said = twice("p1__n1", "p1__n2")
    said["workflow"]["tasks"].append(after("p1__n2"))
    said["candidates"][0]["tasks"].append("p1__n2_next")
    known.answer(known.call_of(PREDICT_TOOL), said)
    step = known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    assert [(call.task_id, call.arguments) for call in step.calls] == [("p1__n2_next", {"path": "c.md"})]
    known.answer(known.call_of("p1__n2_next"), {"text": "c"})
    assert data_of(call(known, "run_2", "c.md"), "task.completed").served_by == "speculation"


def test_two_calls_that_become_one_by_what_came_are_gone_on_with_as_well() -> None:
    known = world()
    done(known, "run_1")
    said = twice("p1__n1", "p1__n2")
    both = {"first": "p1__n1_next.found", "path": "p1__n2_next.found"}
    last = {name: {"type": "reference", "expression": each} for name, each in both.items()}
    last_task = {"id": "p1__n2_next_next", "tool": "files:read_file", "arguments": last}
    said["workflow"]["tasks"] += [after("p1__n1"), after("p1__n2"), last_task]
    said["candidates"][0]["tasks"] += ["p1__n1_next", "p1__n2_next", "p1__n2_next_next"]
    known.answer(known.call_of(PREDICT_TOOL), said)
    step = known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    assert [call.arguments for call in step.calls] == [{"path": "c.md"}]
    step = known.answer(known.call_of(step.calls[0].task_id), {"found": "d.md"})
    found = [(call.task_id, call.arguments) for call in step.calls]
    assert found == [("p1__n2_next_next", {"first": "d.md", "path": "d.md"})]


@pytest.mark.parametrize(
    ("confidence", "follows", "begun"),
    [(0.95, "files:read_file", True), (0.7, "files:read_file", False), (0.95, "files:write_file", False)],
)
def test_a_capability_goes_on_with_what_another_candidate_began_as_if_it_had(
    confidence: float, follows: str, begun: bool
) -> None:
    known = world()
    done(known, "run_1")
    said = twice("p1", "p2__n1")
    said["workflow"]["tasks"].append({**after("p2__n1"), "tool": follows})
    rates = {"likelihood": confidence, "confidence": confidence}
    said["candidates"] = [
        {"name": "files:read_file", "likelihood": 0.96, "confidence": 0.96, "tasks": ["p1"]},
        {"name": "cap_1", **rates, "tasks": ["p2__n1", "p2__n1_next"]},
    ]
    known.answer(known.call_of(PREDICT_TOOL), said)
    step = known.answer(known.call_of("p1"), {"found": "c.md"})
    assert [call.task_id for call in step.calls] == (["p2__n1_next"] if begun else [])
    if begun:
        (started,) = (event.data for event in step.events if event.type == "speculation.started")
        assert started.confidence == confidence


def test_a_call_that_waits_already_is_not_begun_again() -> None:
    known = world()
    call(known, "run_2", "c.md")
    known.time_ms += 10
    started(known)
    known.answer(known.call_of("p1"), {"text": "b"})
    known.answer(known.call_of("n1", "run_2"), {"text": "c"})
    assert outcomes(foretell(known, ("files:read_file", READ, 0.95))) == ["cached"]


def whole(second: dict[str, Any] | None = None) -> dict[str, Any]:
    """A capability that reads b.md, then what it found there."""
    path = {"type": "reference", "expression": "p1__n1.found"}
    after = {"id": "p1__n2", "tool": "files:read_file", "arguments": {"path": path}, **(second or {})}
    tasks = [{"id": "p1__n1", "tool": "files:read_file", "arguments": READ}, after]
    told = {
        "name": "cap_1",
        "likelihood": 0.95,
        "confidence": 0.95,
        "tasks": ["p1__n1", "p1__n2"],
    }
    return {"learner": "markov_1", "candidates": [told], "workflow": {"tasks": tasks}}


def test_a_predicted_capability_runs_whole() -> None:
    known = world()
    done(known, "run_1")
    step = known.answer(known.call_of(PREDICT_TOOL), whole())
    assert [call.task_id for call in step.calls] == ["p1__n1"]
    step = known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    assert [call.arguments for call in step.calls] == [{"path": "c.md"}]
    known.answer(known.call_of("p1__n2"), {"text": "c"})
    step = call(known, "run_2", "c.md")
    assert data_of(step, "task.completed").served_by == "speculation"


def waits(known: SessionWorld, found: str = "c.md") -> None:
    """The result of a predicted read of b.md waits, and the next question is open."""
    started(known)
    known.answer(known.call_of("p1"), {"found": found})
    done(known, "run_2", "d.md")


def test_a_capability_whose_first_call_waits_already_runs_whole_too() -> None:
    known = world()
    waits(known)
    step = known.answer(known.call_of(PREDICT_TOOL), whole())
    assert outcomes(step) == ["cached"]
    assert [(made.task_id, made.arguments) for made in step.calls] == [("p1__n2", {"path": "c.md"})]
    assert data_of(step, "speculation.started").sources is not None
    known.answer(known.call_of("p1__n2"), {"text": "c"})
    assert data_of(call(known, "run_3", "b.md"), "task.completed").served_by == "speculation"
    assert data_of(call(known, "run_4", "c.md"), "task.completed").served_by == "speculation"


def test_a_capability_goes_on_with_what_a_run_has_taken_already() -> None:
    known = world()
    waits(known)
    assert data_of(call(known, "run_3", "b.md"), "task.completed").served_by == "speculation"
    step = known.answer(known.call_of(PREDICT_TOOL, "run_3"), whole())
    assert [made.arguments for made in step.calls] == [{"path": "c.md"}]


def test_what_goes_on_with_a_result_of_old_use_is_wrong_when_the_next_run_begins_without_it() -> None:
    """That its source had served a run before it began says nothing for it."""
    known = world()
    waits(known)
    call(known, "run_3", "b.md")
    known.time_ms += 10
    known.answer(known.call_of(PREDICT_TOOL, "run_3"), whole())
    known.time_ms += 10
    step = call(known, "run_4", "d.md", tool="files:list_dir")
    ended = data_of(step, "speculation.ended")
    assert (ended.task_id, ended.reason) == ("p1__n2", "unused")


def test_each_source_of_what_still_runs_is_looked_at_once() -> None:
    """Layers of three, each of which reads all of the layer before: nobody walks 3²³ ways through them."""
    known = world(budget_name="high")
    done(known, "run_1")
    layers, wide = 24, 3
    tasks = [
        {
            "id": f"p{layer:02}_{number}",
            "tool": "files:read_file",
            "arguments": {"path": f"{layer}/{number}.md"},
            "depends_on": [f"p{layer - 1:02}_{each}" for each in range(wide)] if layer else [],
        }
        for layer in range(layers)
        for number in range(wide)
    ]
    rates = {"likelihood": 0.95, "confidence": 0.95}
    told = {"name": "cap_1", **rates, "tasks": [each["id"] for each in tasks]}
    answer = {"learner": "markov_1", "candidates": [told], "workflow": {"tasks": tasks}}
    known.answer(known.call_of(PREDICT_TOOL), answer)
    for made in tasks[:-wide]:
        known.answer(known.call_of(made["id"]), {"text": "x"})
    known.time_ms += 10
    step = call(known, "run_2", "d.md", tool="files:list_dir")
    ended = [event.data for event in step.events if event.type == "speculation.ended"]
    assert [each.reason for each in ended] == ["unused"] * wide


def test_a_capability_goes_on_while_what_it_began_with_long_ago_is_taken() -> None:
    """Its second result comes from its first, and its third call from the second."""
    known = world()
    done(known, "run_1")
    said = whole()
    said["workflow"]["tasks"] += [after("p1__n2")]
    said["candidates"][0]["tasks"] += ["p1__n2_next"]
    known.answer(known.call_of(PREDICT_TOOL), said)
    known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    known.answer(known.call_of("p1__n2"), {"found": "e.md"})
    known.time_ms += 10
    call(known, "run_2", "b.md")
    known.time_ms += 10
    assert [each.task_id for each in known.open_calls.values() if each.speculative] == ["p1__n2_next"]
    assert data_of(call(known, "run_3", "c.md"), "task.completed").served_by == "speculation"
    assert data_of(call(known, "run_4", "e.md"), "task.started").served_by == "joined"


def test_a_capability_with_a_middle_that_waits_begins_what_is_behind_it() -> None:
    known = world()
    waits(known, "d.md")
    said = predicted(("files:read_file", {"path": "d.md"}, 0.95))
    known.answer(known.call_of(PREDICT_TOOL), said)
    known.answer(known.call_of("p1"), {"found": "e.md"})
    done(known, "run_3", "f.md")
    said = whole()
    said["workflow"]["tasks"] += [after("p1__n2")]
    said["candidates"][0]["tasks"] += ["p1__n2_next"]
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert [(made.task_id, made.arguments) for made in step.calls] == [("p1__n2_next", {"path": "e.md"})]


@pytest.mark.parametrize(("confidence", "follows"), [(0.7, "files:read_file"), (0.95, "files:write_file")])
def test_what_follows_a_call_that_waits_meets_every_condition(confidence: float, follows: str) -> None:
    known = world()
    waits(known)
    said = whole({"tool": follows})
    said["candidates"][0] |= {"likelihood": confidence, "confidence": confidence}
    assert not known.answer(known.call_of(PREDICT_TOOL), said).calls


def test_what_follows_a_call_that_waits_keeps_within_the_budget() -> None:
    known = world(budget_name="low")
    waits(known)
    other, said = predicted(("files:read_file", {"path": "e.md"}, 0.95)), whole()
    said["workflow"]["tasks"] += other["workflow"]["tasks"]
    said["candidates"] += other["candidates"]
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert (outcomes(step), [made.task_id for made in step.calls]) == (["cached", "begun"], ["p1"])


def test_what_follows_a_result_that_is_too_old_does_not_begin() -> None:
    known = world()
    started(known)
    known.answer(known.call_of("p1"), {"found": "c.md"})
    # The default TTL is five minutes.
    known.time_ms += 300_000
    done(known, "run_2", "d.md")
    step = known.answer(known.call_of(PREDICT_TOOL), whole())
    assert (outcomes(step), [made.task_id for made in step.calls]) == (["begun"], ["p1__n1"])


def test_a_result_that_came_too_late_to_be_kept_is_read_by_nothing_early() -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), whole())
    tasks = [
        {"id": name, "tool": "files:read_file", "arguments": {"path": path}}
        for name, path in (("n1", "b.md"), ("n2", "d.md"))
    ]
    known.start({"tasks": tasks}, "run_2")
    # The default TTL is five minutes.
    known.time_ms += 600_000
    step = known.answer(known.call_of("n1", "run_2"), {"found": "c.md"})
    assert data_of(step, "task.completed").served_by == "joined"
    assert not [made for made in step.calls if made.speculative]


def test_what_a_capability_does_next_goes_with_what_it_was_taken_from() -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), whole())
    known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    known.time_ms += 10
    call(known, "run_2", "b.md", tool="files:write_file")
    assert [event.data.reason for event in known.of_type("speculation.ended")] == ["invalidated"] * 2


def test_what_a_capability_does_next_goes_on_while_its_first_result_is_taken() -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), whole())
    known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    known.time_ms += 10
    step = call(known, "run_2", "b.md")
    assert [event.data.reason for event in known.of_type("speculation.ended")] == ["hit"]
    assert data_of(step, "task.completed").served_by == "speculation"
    assert data_of(call(known, "run_3", "c.md"), "task.started").served_by == "joined"


def test_what_a_run_calls_itself_meanwhile_does_not_begin_a_second_time() -> None:
    """It joined the first call of the capability, and goes on as the capability would."""
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), whole())
    first, then = (dict(task) for task in whole()["workflow"]["tasks"])
    path = {"type": "reference", "expression": "n1.found"}
    tasks = [{**first, "id": "n1"}, {**then, "id": "n2", "arguments": {"path": path}}]
    assert data_of(known.start({"tasks": tasks}, "run_2"), "task.started").served_by == "joined"
    step = known.answer(known.call_of("n1", "run_2"), {"found": "c.md"})
    assert [(made.task_id, made.speculative) for made in step.calls] == [("n2", False)]


@pytest.mark.parametrize("second", [{"tool": "files:write_file"}, {"tool": "files:delete_file"}])
def test_a_capability_that_does_more_than_read_does_not_run_whole(second: dict[str, Any]) -> None:
    known = world()
    done(known, "run_1")
    known.answer(known.call_of(PREDICT_TOOL), whole(second))
    assert not [call.task_id for call in known.open_calls.values() if call.speculative]


@pytest.mark.parametrize(
    ("outcome", "expression", "begun"),
    [
        ("true", "p1__n1.found == 'c.md'", True),
        ("false", "p1__n1.found == 'c.md'", False),
        ("case:c.md", "p1__n1.found", True),
        ("case:d.md", "p1__n1.found", False),
        ("case:default", "p1__n1.found", True),
        ("true", "p1__n1.missing == 1", False),
    ],
)
def test_of_a_capabilitys_branches_the_one_begins_that_its_results_open(
    outcome: str, expression: str, begun: bool
) -> None:
    known = world()
    done(known, "run_1")
    said = whole({"condition": [{"node": "p1__d1", "outcome": outcome}]})
    said["workflow"]["decisions"] = [{"id": "p1__d1", "expression": expression}]
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert [made.task_id for made in step.calls] == ["p1__n1"], "what is behind a decision waits for it"
    step = known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    assert [made.arguments for made in step.calls] == ([{"path": "c.md"}] if begun else [])


@pytest.mark.parametrize(("mode", "begun"), [("fast", ["p1__n1", "p1__n2"]), ("slow", ["p1__n1"])])
def test_a_decision_about_parameters_is_taken_before_anything_begins(mode: str, begun: list[str]) -> None:
    """In a capability that is called with literals it reads nothing any more."""
    known = world()
    done(known, "run_1")
    literal = {"path": {"type": "literal", "value": "e.md"}}
    said = whole({"arguments": literal, "condition": [{"node": "p1__d1", "outcome": "true"}]})
    said["workflow"]["decisions"] = [{"id": "p1__d1", "expression": f"'{mode}' == 'fast'"}]
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert (outcomes(step), [made.task_id for made in step.calls]) == (["begun"], begun)


def test_a_capability_of_which_decisions_leave_nothing_does_not_begin() -> None:
    known = world()
    done(known, "run_1")
    said = whole()
    for task in said["workflow"]["tasks"]:
        task["condition"] = [{"node": "p1__d1", "outcome": "true"}]
    said["workflow"]["decisions"] = [{"id": "p1__d1", "expression": "1 == 2"}]
    step = known.answer(known.call_of(PREDICT_TOOL), said)
    assert (outcomes(step), step.calls) == (["not_taken"], ())


def test_behind_a_decision_a_call_may_read_nothing_else() -> None:
    known = world()
    done(known, "run_1")
    literal = {"path": {"type": "literal", "value": "e.md"}}
    said = whole({"arguments": literal, "condition": [{"node": "p1__d1", "outcome": "true"}]})
    said["workflow"]["decisions"] = [{"id": "p1__d1", "expression": "p1__n1.found == 'c.md'"}]
    known.answer(known.call_of(PREDICT_TOOL), said)
    step = known.answer(known.call_of("p1__n1"), {"found": "c.md"})
    assert [made.arguments for made in step.calls] == [{"path": "e.md"}]


def test_with_a_lower_threshold_less_confidence_is_enough() -> None:
    known = world(threshold=0.7)
    done(known, "run_1")
    assert outcomes(foretell(known, ("files:read_file", READ, 0.75))) == ["begun"]


ENDLESS = {"type": "expression", "expression": "n1.x * 10", "code": "n1.x * 10"}


def test_a_computed_argument_that_is_no_json_stops_a_capability_and_not_the_call_that_was_joined() -> None:
    known = world()
    done(known, "run_1")
    tasks = [
        {"id": "n1", "tool": "files:read_file", "arguments": READ},
        {"id": "n2", "tool": "files:read_file", "arguments": {"path": ENDLESS}},
    ]
    whole = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": ["n1", "n2"]}
    answer = {"learner": "discounting", "candidates": [whole], "workflow": {"tasks": tasks}}
    known.answer(known.call_of(PREDICT_TOOL), answer)
    call(known, "run_2", "b.md")
    step = known.answer(known.call_of("n1", "run_2"), {"x": 1e308})
    assert data_of(step, "task.completed").served_by == "joined"
    assert known.session_run("run_2").status == "completed"


def test_a_question_leaves_out_what_is_no_json_or_too_deep_for_it() -> None:
    known = world()
    endless = {
        "id": "n1",
        "tool": "files:read_file",
        "arguments": {"path": ENDLESS | {"expression": "args.x * 10"}},
    }
    step = known.start({"tasks": [endless]}, context={"x": 1e308})
    assert data_of(step, "task.failed").error.code == "NOT_JSON"
    assert known.open_calls[known.call_of(PREDICT_TOOL)].arguments["past"][0]["arguments"] is None
    deep: Any = 1
    for _ in range(NESTING_MAX + 1):
        deep = [deep]
    known.start(
        {"tasks": [{"id": "n1", "tool": "files:read_file", "arguments": READ}]}, "run_2", context={"x": deep}
    )
    known.answer(known.call_of("n1", "run_2"), {"text": "see"})
    latest = known.open_calls[known.call_of(PREDICT_TOOL, "run_2")].arguments["past"][-1]
    assert (latest.get("context"), latest["arguments"]) == (None, READ)


def test_what_was_read_before_its_permission_said_what_else_it_touches_serves_nobody() -> None:
    known = started(world())
    known.answer(known.call_of("p1"), {"text": "old"})
    touches = ["files:{path}", "web:"]
    known.catalog = catalog(
        {"files:read_file": {"scope": "readonly", "approval": "auto", "touches": touches}}, predictions="on"
    )
    assert data_of(call(known, "run_2", "b.md"), "task.started").served_by == "call"


def test_what_was_predicted_serves_for_half_of_the_time_that_results_can_be_read_at_most() -> None:
    permission = {"scope": "readonly", "approval": "auto", "touches": ["files:{path}"], "ttl_s": 86_400}
    for waited_ms, served_by in ((1_799_000, "speculation"), (1_801_000, "call")):
        known = world()
        known.catalog = catalog({"files:read_file": permission}, predictions="on", results_ttl_ms=3_600_000)
        started(known)
        known.answer(known.call_of("p1"), {"text": "x"})
        known.time_ms += waited_ms
        assert data_of(call(known, "run_2", "b.md"), "task.started").served_by == served_by


@pytest.mark.parametrize(("timeout_s", "served_by"), [(29, "call"), (30, "joined")])
def test_a_task_joins_no_call_that_may_take_longer_than_it_would_wait(timeout_s: int, served_by: str) -> None:
    known = started(world())
    task = {"id": "n1", "tool": "files:read_file", "arguments": READ, "timeout_s": timeout_s}
    assert data_of(known.start({"tasks": [task]}, "run_2"), "task.started").served_by == served_by


@pytest.mark.parametrize("error", [None, {"code": "PROGRAM_ERROR", "message": "it broke"}])
def test_after_a_program_it_is_asked_too_and_what_was_predicted_before_it_gives_way(
    error: dict[str, Any] | None,
) -> None:
    known = started(world())
    known.time_ms += 10
    known.program(LOOP, "python", "run_2")
    known.analyse()
    known.step("run_2", calls=[("files:parse", {"x": 1})])
    known.answer(known.call_of("files:parse", "run_2"), {"n": 0})
    step = known.step("run_2", **({"error": error} if error else {"value": {"n": 0}}))
    assert (data_of(step, "speculation.ended").reason, step.events[-1].type) == ("unused", "internal.started")
    assert known.open_calls[known.call_of(PREDICT_TOOL, "run_2")].arguments["history"][-1] == "files:parse"
