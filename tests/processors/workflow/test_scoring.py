"""A score is written down whether its run goes on, has ended or is forgotten; it changes nothing of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pml.processors.workflow import decode_session, encode_session
from pml.schemas.commands import RunScore
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.workflow.test_decide import FORK, SIMPLE

VALUES = st.one_of(
    st.fixed_dictionaries({"number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)}),
    st.fixed_dictionaries({"category": st.text(min_size=1, max_size=200)}),
    st.fixed_dictionaries({"boolean": st.booleans()}),
)


@given(value=VALUES)
def test_a_score_has_its_one_value_and_nothing_else_changes(value: dict[str, Any]) -> None:
    world = SessionWorld()
    world.start(SIMPLE)
    assert world.session is not None
    before = world.session
    data = data_of(world.send("run.score", "run_1", {"name": "quality", **value}), "run.scored")
    given_ = data.model_dump(include={"number", "category", "boolean"}, exclude_none=True)
    assert given_.keys() == value.keys()
    if "category" not in value:
        assert given_ == value
    after = world.session
    told = {"seq", "last_offset", "last_event_ms", "scores"}
    assert replace(after, **{name: getattr(before, name) for name in told}) == before
    assert list(after.scores.values()) == [data.command_hash]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"number": 1, "boolean": True},
        {"number": True},
        {"number": "1"},
        {"number": float("nan")},
        {"number": float("inf")},
        {"boolean": 1},
        {"boolean": "yes"},
        {"category": ""},
        {"category": "x" * 201},
        {"number": 1, "name": "not a name"},
        {"number": 1, "source": "a b"},
        {"number": 1, "comment": "x" * 2_001},
    ],
)
def test_what_is_no_score_is_refused_at_the_door(value: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunScore.model_validate({"name": "quality", **value})


@pytest.mark.parametrize(
    ("principal", "source"),
    [("person:ada", "human"), ("agent:planner", "agent"), ("local", "program"), ("person:", "program")],
)
def test_who_says_nothing_of_the_source_is_told_by_the_principal(principal: str, source: str) -> None:
    world = SessionWorld()
    world.start(SIMPLE)
    score = {"name": "quality", "number": 1}
    step = world.send("run.score", "run_1", score, principal)
    assert (step.events[0].principal, data_of(step, "run.scored").source) == (principal, source)
    named = world.send("run.score", "run_1", {**score, "source": "judge-7"}, principal)
    assert data_of(named, "run.scored").source == "judge-7"


def test_a_session_that_nobody_knows_takes_a_score_and_attaches_what_is_sent_again() -> None:
    world = SessionWorld()
    score = {"name": "quality", "number": 1}
    first = world.send("run.score", "run_old", score, command_id="cmd_late")
    assert [event.type for event in first.events] == ["run.scored"]
    assert (first.events[0].run_id, first.events[0].seq) == ("run_old", 0)
    assert data_of(first, "run.scored").known is False
    again = world.send("run.score", "run_old", score, command_id="cmd_late")
    assert data_of(again, "command.attached").status == "forgotten"


def test_scores_take_no_room_from_decisions_and_end_at_their_own_bound() -> None:
    world = SessionWorld(catalog=catalog(commands_remembered_max=2))
    world.start(SIMPLE)
    said = [world.send("run.score", "run_1", {"name": "q", "number": number}) for number in range(3)]
    assert [step.events[0].type for step in said] == ["run.scored", "run.scored", "command.rejected"]
    error = data_of(said[2], "command.rejected").error
    assert (error["code"], error["retryable"]) == ("SESSION_FULL", True)
    assert world.send("run.abort", "run_1").events[0].type == "decision.made"


def test_an_id_is_one_command_whatever_it_was_for() -> None:
    world = SessionWorld()
    world.start(SIMPLE)
    world.send("run.score", "run_1", {"name": "q", "number": 1}, command_id="cmd_x")
    for kind in ("run.abort", "run.start"):
        if kind == "run.start":
            step = world.start(SIMPLE, "run_2", command_id="cmd_x")
        else:
            step = world.send(kind, "run_1", command_id="cmd_x")
        assert data_of(step, "command.rejected").error["code"] == "CONFLICT"


def test_what_was_scored_is_in_the_record_and_absent_where_nothing_was() -> None:
    world = SessionWorld()
    world.start(SIMPLE)
    assert world.session is not None
    assert b'"scores"' not in encode_session(world.session)
    world.send("run.score", "run_1", {"name": "q", "number": 1}, command_id="cmd_x")
    found = decode_session(encode_session(world.session), world.definitions.get)
    assert found == world.session


def test_a_score_begins_nothing_early() -> None:
    """Speculation was off until now: the next input that moves something begins what may run early."""
    world = SessionWorld(catalog=catalog(speculation_mode="off"))
    world.start(FORK)
    world.answer(world.call_of("a"), {"next": "3"})
    world.catalog = catalog()
    step = world.send("run.score", "run_1", {"name": "q", "number": 1})
    assert ([event.type for event in step.events], step.calls) == (["run.scored"], ())
    assert data_of(world.reach("task", "zz", world.time_ms), "speculation.started").task_id == "c"


def test_a_run_that_had_ended_is_not_taken_up_by_a_score() -> None:
    world = SessionWorld()
    world.start(SIMPLE)
    world.answer(world.call_of("a"))
    step = world.send("run.score", "run_1", {"name": "q", "boolean": True})
    assert [event.type for event in step.events] == ["run.scored"]
    assert (data_of(step, "run.scored").known, step.calls) == (True, ())
    assert world.session is not None
    assert not world.session.live
