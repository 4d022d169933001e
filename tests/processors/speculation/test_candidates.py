"""How sure it is that a task will run, beside a brute-force twin (DESIGN §4, condition 4)."""

from __future__ import annotations

from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.speculation.branches import branch_key
from pml.schemas.catalog import BranchStats, CatalogRecord, ThresholdOverride
from tests.processors.session_world import SessionWorld, catalog, data_of

DECISIONS = ("d1", "d2", "d3")
COUNTS = st.fixed_dictionaries({name: st.tuples(st.integers(0, 40), st.integers(0, 3)) for name in DECISIONS})


def world(counts: dict[str, tuple[int, int]], threshold: float | None = None, **policy: Any) -> SessionWorld:
    """What was learned of three decisions: how often each was true and false."""
    known = catalog(**policy)
    for name, (true, false) in counts.items():
        stats = BranchStats(
            tenant="local",
            workflow_type="default",
            decision_id=name,
            counts={"true": true, "false": false},
        )
        known = known.with_record(
            CatalogRecord(kind=stats.KIND, id=branch_key("local", "default", name), data=stats)
        )
    if threshold is not None:
        override = ThresholdOverride(
            tenant="local", level="default", value=threshold, changed_at="2023-11-14T22:13:20Z"
        )
        known = known.with_record(CatalogRecord(kind=override.KIND, id="local/default", data=override))
    return SessionWorld(catalog=known)


def workflow(wanted: dict[str, str]) -> dict[str, Any]:
    """`late` runs where each of these decisions has this outcome; all of them read a slow task."""
    return {
        "tasks": [
            {"id": "quick", "tool": "files:list_dir", "arguments": {"path": "docs"}},
            {"id": "slow", "tool": "files:search", "arguments": {"text": "todo"}},
            {
                "id": "late",
                "tool": "files:read_file",
                "arguments": {"path": "a.md"},
                "depends_on": ["quick"],
                "condition": [{"node": name, "outcome": outcome} for name, outcome in wanted.items()],
            },
        ],
        "decisions": [{"id": name, "expression": "slow.count > 0"} for name in wanted],
    }


@given(
    counts=COUNTS,
    wanted=st.dictionaries(st.sampled_from(DECISIONS), st.sampled_from(["true", "false"]), min_size=1),
    threshold=st.floats(0, 1),
)
@settings(max_examples=100, deadline=None)
def test_a_branch_runs_early_where_the_product_reaches_the_threshold(
    counts: dict[str, tuple[int, int]], wanted: dict[str, str], threshold: float
) -> None:
    found = world(counts, threshold)
    found.start(workflow(wanted))
    step = found.answer(found.call_of("quick"), {"first": "a.md"})
    index = {"true": 0, "false": 1}
    shares = [(counts[name][index[wanted[name]]] + 1) / (sum(counts[name]) + 2) for name in sorted(wanted)]
    expected = prod(shares)
    began = [event.type for event in step.events if event.type.startswith("speculation.")]
    if expected >= threshold:
        assert began == ["speculation.started"]
        told = data_of(step, "speculation.started")
        assert (told.kind, told.threshold) == ("branch", threshold)
    elif expected >= threshold - 0.05:
        assert began == ["speculation.planned"]
        told = data_of(step, "speculation.planned")
        assert not told.shadow
    else:
        assert began == []
        return
    assert told.confidence == pytest.approx(expected)


def test_a_decision_that_two_tasks_of_a_chain_wait_for_counts_once() -> None:
    """A deeper call runs where the one that it reads runs: their common condition is one chance."""
    found = world({"d1": (8, 0)}, threshold=0.8, speculation_depth=2)
    condition = [{"node": "d1", "outcome": "true"}]
    plan = workflow({"d1": "true"})
    plan["tasks"].append(
        {
            "id": "later",
            "tool": "files:parse",
            "arguments": {"text": {"type": "reference", "expression": "late.text"}},
            "condition": condition,
        }
    )
    found.start(plan)
    found.answer(found.call_of("quick"), {"first": "a.md"})
    step = found.answer(found.call_of("late"), {"text": "a"})
    told = data_of(step, "speculation.started")
    assert (told.task_id, told.kind) == ("later", "branch")
    assert told.confidence == pytest.approx(0.9)
    assert told.sources


def test_a_task_behind_one_that_failed_is_not_begun_however_deep() -> None:
    found = SessionWorld(catalog=catalog(speculation_depth=3))
    read = {"tool": "files:read_file", "arguments": {"path": "a.md"}}
    tasks: list[dict[str, Any]] = [
        {"id": "a", "tool": "files:list_dir", "arguments": {"path": "docs"}},
        {"id": "b", "tool": "files:search"},
        {"id": "c", **read, "depends_on": ["a"]},
        {"id": "d", **read, "depends_on": ["c"]},
        {"id": "e", "tool": "files:parse", "arguments": {"text": "x"}, "depends_on": ["b"]},
    ]
    found.start({"tasks": tasks})
    step = found.answer(found.call_of("a"), code="NOT_FOUND")
    started = [event.data for event in step.events if event.type == "speculation.started"]
    assert [getattr(data, "task_id", "") for data in started] == ["e"]
