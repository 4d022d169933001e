"""What is begun early, and what the budget alone holds back."""

from __future__ import annotations

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
