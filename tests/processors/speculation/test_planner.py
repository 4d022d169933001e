"""What is begun early, and what the budget alone holds back."""

from __future__ import annotations

from typing import Any

from pml.schemas.catalog import CatalogRecord, SpeculationMode, SpeculationSwitch
from tests.processors.session_world import SessionWorld, catalog, data_of
from tests.processors.speculation.test_candidates import LIST, READ, SEARCH, begun, workflow, world


def test_what_is_held_back_is_told_with_the_nearest_layer_that_it_is_of() -> None:
    found = SessionWorld(catalog=catalog(budget_name="low", speculation_depth=2))
    tasks = [{"id": "a", **LIST}, {"id": "slow", **SEARCH}]
    for name, before in (("b1", "slow"), ("b2", "slow"), ("c", "b1")):
        tasks.append({"id": name, **READ, "arguments": {"path": name}, "depends_on": [before]})
    found.start({"tasks": tasks})
    step = found.answer(found.call_of("a"), {"first": "x"})
    assert begun(step) == ["b1"]
    held = data_of(step, "speculation.held")
    assert (held.layer, held.task_ids) == (1, ("b2", "c"))


def test_what_is_held_back_tells_each_confidence_where_one_of_them_is_not_sure() -> None:
    found = world({"d1": (8, 0)}, threshold=0.8, budget_name="low")
    plan = workflow({"d1": "true"})
    for name in ("first", "sure"):
        plan["tasks"].insert(2, {"id": name, **READ, "arguments": {"path": name}, "depends_on": ["slow"]})
    found.start(plan)
    held = data_of(found.answer(found.call_of("quick"), {"first": "x"}), "speculation.held")
    assert dict(zip(held.task_ids, held.confidences, strict=True)) == {"first": 1, "late": 0.9}


def switched(scope: str, mode: SpeculationMode, **policy: Any) -> SessionWorld:
    """Somebody has set a switch."""
    switch = CatalogRecord(kind="switch", id=scope, data=SpeculationSwitch(mode=mode))
    return SessionWorld(catalog=catalog(**policy).with_record(switch))


def test_a_switch_for_one_tool_leaves_the_others_alone() -> None:
    late = [{"id": "read", **READ}, {"id": "parse", "tool": "files:parse", "arguments": {"text": "x"}}]
    tasks = [{"id": "a", **LIST}, {"id": "slow", **SEARCH}]
    tasks += [{**task, "depends_on": ["a", "slow"]} for task in late]
    for mode, types in (("off", []), ("shadow", ["speculation.planned"])):
        found = switched(f"tool={READ['tool']}", mode)
        found.start({"tasks": tasks})
        step = found.answer(found.call_of("a"))
        assert begun(step) == ["parse"]
        seen = [event.type for event in step.events if event.type.startswith("speculation.")]
        assert seen == [*types, "speculation.started"]


def test_what_is_new_is_held_back_behind_what_was_before() -> None:
    """`second` is named as soon as its argument is known, though `first` was named already."""
    found = SessionWorld(catalog=catalog(budget_name="low"))
    path = {"type": "reference", "expression": "b.first"}
    late = {"tool": READ["tool"], "depends_on": ["a", "slow"]}
    reads = {"early": "e.md", "first": "f.md", "second": path}
    tasks = [{"id": "a", **LIST}, {"id": "b", **LIST, "arguments": {"path": "src"}}, {"id": "slow", **SEARCH}]
    found.start(
        {
            "tasks": [
                *tasks,
                *({"id": name, **late, "arguments": {"path": one}} for name, one in reads.items()),
            ]
        }
    )
    assert begun(found.answer(found.call_of("a"))) == ["early"]
    found.answer(found.call_of("b"), {"first": "x"})
    held: list[Any] = [event.data for event in found.of_type("speculation.held")]
    assert [data.task_ids for data in held] == [("first",), ("second",)]


def test_shadow_mode_tells_how_sure_it_was_of_what_it_had_no_budget_for() -> None:
    for counts, expected in (((8, 0), (0.9,)), (None, None)):
        found = world({"d1": counts} if counts else {}, 0.8, budget_name="low", speculation_mode="shadow")
        plan = workflow({"d1": "true"})
        first = {"id": "first", **READ, "arguments": {"path": "first"}, "depends_on": ["slow"]}
        plan["tasks"].insert(2, first)
        if counts is None:
            plan["tasks"][3] = {"id": "late", **READ, "depends_on": ["slow"]}
        found.start(plan)
        held = data_of(found.answer(found.call_of("quick"), {"first": "x"}), "speculation.held")
        assert (held.task_ids, held.confidences) == (("late",), expected)
