"""Which events teach something."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.speculation.outcomes import OBSERVED, lessons, succeeded
from pml.schemas.events import EVENTS

CONTEXT = {"user": "alice", "domain": "web", "workflow_type": "audit"}


def ended(fate: str, reason: str, confidence: float = 0.9) -> dict[str, Any]:
    return {"fate": fate, "reason": reason, "confidence": confidence, "context": CONTEXT}


@pytest.mark.parametrize(
    ("fate", "reason", "success"),
    [
        ("served", "hit", True),
        ("served", "joined", True),
        ("failed", "timeout", False),
        ("failed", "tool_error", False),
        ("discarded", "unused", False),
        ("discarded", "expired", False),
        ("discarded", "branch_not_taken", False),
        ("discarded", "invalidated", None),
        ("discarded", "superseded", None),
        ("discarded", "evicted", None),
        ("discarded", "replanned", None),
        ("discarded", "aborted", None),
        ("discarded", "switched_off", None),
    ],
)
def test_ends_count_as_the_design_says(fate: str, reason: str, success: bool | None) -> None:
    assert succeeded("speculation.ended", ended(fate, reason)) is success
    found = lessons("speculation.ended", "local", ended(fate, reason))
    assert [said for _, said in found] == ([] if success is None else [success] * 4)


def test_what_was_certain_teaches_nothing() -> None:
    assert lessons("speculation.ended", "local", ended("served", "hit", confidence=1.0)) == []
    assert lessons("speculation.ended", "local", {**ended("served", "hit"), "context": None}) == []


def test_an_outcome_teaches_four_contexts_of_its_tenant() -> None:
    found = lessons("speculation.ended", "acme", ended("served", "hit"))
    assert found == [
        ("threshold/acme/user=alice/type=audit", True),
        ("threshold/acme/domain=web/type=audit", True),
        ("threshold/acme/type=audit", True),
        ("threshold/acme/default", True),
    ]


@pytest.mark.parametrize("success", [True, False])
def test_a_candidate_that_was_only_scored_counts(success: bool) -> None:
    data = {"confidence": 0.9, "context": CONTEXT, "success": success}
    assert succeeded("speculation.scored", data) is success


def test_a_result_that_was_found_to_be_different_is_a_failure() -> None:
    assert succeeded("speculation.diverged", {"confidence": 0.9, "context": CONTEXT}) is False
    assert succeeded("speculation.diverged", {"confidence": 1.0, "context": CONTEXT}) is None
    assert succeeded("speculation.diverged", {"tool": "a:b"}) is None


@pytest.mark.parametrize("kind", ["run.completed", "run.failed", "run.aborted"])
def test_the_end_of_a_run_tells_what_its_decisions_came_to(kind: str) -> None:
    data = {"workflow_type": "a/b", "decisions": {"d1": "true", "d 2": "case:x"}}
    assert lessons(kind, "local", data) == [
        ("branch_stats/local/a%2Fb/d1", "true"),
        ("branch_stats/local/a%2Fb/d%202", "case:x"),
    ]
    assert lessons(kind, "local", {"decisions": {}}) == []


def test_every_type_that_is_looked_at_is_one_of_the_log() -> None:
    assert set(EVENTS) >= OBSERVED


@pytest.mark.parametrize(
    ("kind", "data", "learned"),
    [
        ("speculation.verified", {"tool": "git:log", "outcome": "same"}, [("divergence/git:log", True)]),
        ("speculation.verified", {"tool": "git:log", "outcome": "unknown"}, []),
        ("speculation.diverged", {"tool": "git:log"}, [("divergence/git:log", False)]),
    ],
)
def test_calling_again_teaches_whether_a_tool_says_the_same(
    kind: str, data: dict[str, Any], learned: list[tuple[str, bool]]
) -> None:
    assert lessons(kind, "local", data) == learned


def test_a_verified_hit_is_no_second_success() -> None:
    context = {"user": "ada", "domain": "docs", "workflow_type": "w"}
    data = {"tool": "git:log", "outcome": "same", "context": context, "confidence": 0.9, "fate": "served"}
    assert lessons("speculation.verified", "local", data) == [("divergence/git:log", True)]
    kinds = [key.split("/")[0] for key, _ in lessons("speculation.diverged", "local", data)]
    assert kinds == ["divergence"] + ["threshold"] * 4


def test_a_run_of_a_workflow_without_a_type_teaches_nothing() -> None:
    assert lessons("run.completed", "local", {"decisions": {"d": "true"}}) == []
