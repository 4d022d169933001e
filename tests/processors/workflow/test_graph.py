"""Layers: a task lies one below the longest way to it."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.graph import build, layer_numbers
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
