"""Layers: a task lies one below the longest way to it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.graph import Deferred, Graph, as_task, build, layer_numbers
from pml.schemas.workflow import Workflow


@st.composite
def waits(draw: st.DrawFn) -> dict[str, frozenset[str]]:
    """A DAG: each task waits for some of those before it, in an order that the names do not show."""
    names = draw(st.permutations([f"n{i}" for i in range(draw(st.integers(1, 12)))]))
    return {
        name: draw(st.frozensets(st.sampled_from(names[:index]))) if index else frozenset()
        for index, name in enumerate(names)
    }


@given(dag=waits())
def test_a_layer_is_the_length_of_the_longest_path(dag: dict[str, frozenset[str]]) -> None:
    @cache
    def longest(name: str) -> int:
        return max((1 + longest(other) for other in dag[name]), default=0)

    assert layer_numbers(dag) == {name: longest(name) for name in dag}


@given(dag=waits(), data=st.data())
def test_a_cycle_has_no_layers(dag: dict[str, frozenset[str]], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(dag)))
    below = {name}
    for _ in dag:
        below |= {other for other, needed in dag.items() if needed & below}
    last = data.draw(st.sampled_from(sorted(below)))
    assert layer_numbers(dag | {name: dag[name] | {last}}) is None


def test_a_task_waits_for_what_it_names_what_it_reads_and_what_its_conditions_read() -> None:
    reference = {"x": {"type": "reference", "expression": "b.y|c.y"}}
    graph = build(
        Workflow.model_validate(
            {
                "tasks": [
                    *({"id": name, "tool": "files:x"} for name in "abcd"),
                    {
                        "id": "e",
                        "tool": "files:x",
                        "depends_on": ["a"],
                        "arguments": reference,
                        "condition": {"node": "q", "outcome": "true"},
                    },
                ],
                "decisions": [{"id": "q", "expression": "d.z > 1"}],
            }
        )
    )
    assert graph.nodes["e"].depends_on == {"a", "b", "c", "d"}
    assert graph.nodes["e"].references == {"b", "c"}
    assert graph.layers == (("a", "b", "c", "d"), ("e",))
    assert graph.outcomes_of("q") == {"true"}


def plan(*tasks: dict[str, Any], **decisions: str) -> Workflow:
    """Tasks of one tool, and decisions with their expressions."""
    named = [{"id": name, "expression": expression} for name, expression in decisions.items()]
    return Workflow.model_validate(
        {"tasks": [{"tool": "files:x", **task} for task in tasks], "decisions": named}
    )


def test_each_decision_has_outcomes_of_its_own() -> None:
    behind = [{"id": name, "condition": {"node": name.upper(), "outcome": name}} for name in "pq"]
    graph = build(plan({"id": "a"}, *behind, P="a.x", Q="a.y"))
    assert (graph.outcomes_of("P"), graph.outcomes_of("Q")) == ({"p"}, {"q"})


def test_what_is_new_comes_below_what_stays_and_has_the_number_of_its_plan() -> None:
    """What stays keeps its place, also where what it waited for is gone."""
    tasks = plan({"id": "a"}, {"id": "b", "depends_on": ["gone"]}, {"id": "c"}, P="a.x", Q="b.x")
    graph = build(tasks, {"a": (0, 0), "b": (2, 1), "P": (0, 1)}, 2)
    places = {node.id: (node.layer, node.plan) for node in graph.nodes.values()}
    assert places == {"a": (0, 0), "b": (2, 1), "c": (3, 2)}
    assert {item.id: item.plan for item in graph.decisions.values()} == {"P": 1, "Q": 2}


@given(dag=waits(), timeout_s=st.none() | st.integers(1, 600_000).map(lambda ms: ms / 1_000))
def test_a_node_is_written_down_as_the_task_it_came_from(
    dag: dict[str, frozenset[str]], timeout_s: float | None
) -> None:
    """What it waits for in one order, so that an event says the same in every process."""
    tasks = [
        {"id": name, "depends_on": sorted(needed), "timeout_s": timeout_s} for name, needed in dag.items()
    ]
    workflow = plan(*tasks)
    assert tuple(map(as_task, build(workflow).nodes.values())) == workflow.tasks


def test_a_deferred_graph_is_that_of_its_definition() -> None:
    definition = {
        "tasks": [{"id": "b", "tool": "files:x", "depends_on": ["a"]}, {"id": "a", "tool": "files:x"}]
    }
    deferred = Deferred(definition, {"a": (2, 0)}, 1)
    graph = build(Workflow.model_validate(definition), {"a": (2, 0)}, 1)
    assert [getattr(deferred, name) for name in Graph.__slots__] == [
        getattr(graph, name) for name in Graph.__slots__
    ]
    assert deferred == Deferred(definition, {"a": (2, 0)}, 1) != Deferred(definition)


@pytest.mark.parametrize("looked_into", [False, True])
def test_a_deferred_graph_says_the_same_of_its_tasks_before_and_after_it_is_built(looked_into: bool) -> None:
    tasks = [
        {"id": "b", "tool": "files:x", "depends_on": ["a"], "safe_to_fail": True},
        {"id": "a", "tool": "web:get"},
        {"id": "c", "capability": "mend", "safe_to_fail": False},
    ]
    graph = build(Workflow.model_validate({"tasks": tasks}))
    deferred = Deferred(Workflow.model_validate({"tasks": tasks}).model_dump(mode="json", exclude_none=True))
    if looked_into:
        assert deferred.nodes == graph.nodes
    assert [*deferred.tools().items()] == [*graph.tools().items()]
    assert [*graph.tools().items()] == [("b", "files:x"), ("a", "web:get"), ("c", "")]
    assert [deferred.tolerates(name) for name in "bac"] == [graph.tolerates(name) for name in "bac"]
    assert [graph.tolerates(name) for name in "bac"] == [True, False, False]
    for each in (graph, deferred):
        with pytest.raises(KeyError, match="absent"):
            each.tolerates("absent")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))]
)
def test_a_copy_of_a_deferred_graph_answers_as_it_does(copied: Callable[[Deferred], Deferred]) -> None:
    deferred = Deferred({"tasks": [{"id": "a", "tool": "files:x", "safe_to_fail": True}]})
    made = copied(deferred)
    assert made == deferred
    assert (made.tolerates("a"), made.tools()) == (True, {"a": "files:x"})


def test_a_deferred_graph_answers_the_fold_without_being_built() -> None:
    deferred = Deferred({"tasks": [{"id": "a", "tool": "no tool", "safe_to_fail": True}]})
    assert deferred.tolerates("a")
    assert deferred.tools() == {"a": "no tool"}
    assert Deferred({}).tools() == {}


def test_a_deferred_graph_is_built_once_and_not_before_somebody_looks() -> None:
    deferred = Deferred({"tasks": [{"id": "a", "tool": "no tool"}]})
    with pytest.raises(ValueError, match="written server:name"):
        _ = deferred.nodes
    built = Deferred({"tasks": [{"id": "a", "tool": "files:x"}]})
    assert built.nodes is built.nodes
    assert not hasattr(built, "edges")
