"""The identity of the accounts, and what a breach of it leads to (DESIGN §4, Accounts)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pml.processors.speculation import planner
from pml.processors.speculation.accounts import balanced, drift, open_entries
from pml.processors.workflow.draft import Draft
from pml.schemas.events import SpeculationUnbalanced
from tests.processors.session_world import SessionWorld, data_of

WORKFLOW = {
    "tasks": [
        {"id": "a", "tool": "files:list_dir", "arguments": {"path": "docs"}},
        {"id": "b", "tool": "files:search"},
        {"id": "c", "tool": "files:read_file", "arguments": {"path": "a.md"}, "depends_on": ["a", "b"]},
    ]
}


def test_started_is_the_sum_of_the_others() -> None:
    world = SessionWorld()
    world.start(WORKFLOW)
    world.answer(world.call_of("a"), {"first": "a.md"})
    assert world.session is not None
    assert (open_entries(world.session), drift(world.session)) == (1, 0)
    lost = replace(world.session, speculations={})
    assert drift(lost) == 1
    assert not balanced(lost)


def test_a_breach_is_an_event_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A speculation that is lost without an end is what a defect would look like."""
    world = SessionWorld()
    world.start(WORKFLOW)
    speculate = planner.speculate

    def forgetful(draft: Draft, run_id: str) -> None:
        speculate(draft, run_id)
        draft._session = replace(draft.session, speculations={})

    monkeypatch.setattr(planner, "speculate", forgetful)
    monkeypatch.setattr(SessionWorld, "_check", lambda *_: None)
    step = world.answer(world.call_of("a"), {"first": "a.md"})
    assert step.events[-1].type == "speculation.unbalanced"
    found = data_of(step, "speculation.unbalanced")
    assert found == SpeculationUnbalanced(started=1, open=0, served=0, discarded=0, failed=0)
    step = world.answer(world.call_of("b"), {"matches": []})
    assert "speculation.unbalanced" not in [event.type for event in step.events]
