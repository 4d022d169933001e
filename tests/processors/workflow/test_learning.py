"""The names that something is learned under."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.learning import NAME_LENGTH_MAX, complexity_of, domain_of, threshold_context
from pml.schemas.base import ThresholdContext
from tests.processors.session_world import SessionWorld, data_of

BRANCHED = {
    "workflow_type": "audit",
    "tasks": [
        {"id": "n1", "tool": "files:read_file", "arguments": {"path": "a"}},
        {
            "id": "n2",
            "tool": "files:read_file",
            "arguments": {"path": "b"},
            "condition": {"node": "d1", "outcome": "true"},
        },
    ],
    "decisions": [{"id": "d1", "expression": "n1.ok == true"}],
}


def test_a_run_is_remembered_by_its_user_its_domain_and_its_type() -> None:
    world = SessionWorld()
    world.start(BRANCHED, context={"domain": "web"}, principal="alice")
    assert world.session is not None
    context = threshold_context(world.session.runs["run_1"])
    assert context == ThresholdContext(user="alice", domain="web", workflow_type="audit")


@pytest.mark.parametrize(
    ("context", "domain"),
    [
        ({}, "default"),
        ({"domain": ""}, "default"),
        ({"domain": 7}, "default"),
        (None, "default"),
        ("x", "default"),
    ],
)
def test_a_run_without_a_domain_is_of_the_default_one(context: Any, domain: str) -> None:
    assert domain_of(context) == domain
    assert complexity_of(context) == domain


def test_names_are_cut_and_hold_no_secret() -> None:
    world = SessionWorld()
    secret = "ghp_" + "a1B2" * 9
    world.start(
        {**BRANCHED, "workflow_type": "t" * 200}, context={"domain": f"d {secret}"}, principal=f"p {secret}"
    )
    assert world.session is not None
    found = threshold_context(world.session.runs["run_1"])
    assert found.workflow_type == "t" * NAME_LENGTH_MAX
    assert secret not in found.user + found.domain
    assert all("REDACTED" in text for text in (found.user, found.domain))


def test_the_end_of_a_run_with_decisions_says_its_type() -> None:
    world = SessionWorld()
    world.start(BRANCHED)
    step = world.answer(world.call_of("n1"), {"ok": False})
    ended = data_of(step, "run.completed")
    assert (ended.workflow_type, ended.decisions) == ("audit", {"d1": "false"})
