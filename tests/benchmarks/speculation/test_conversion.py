"""Recorded workflows as PML runs them."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.datasets import datasets_place
from benchmarks.speculation.conversion import SERVER, UNSAFE_SHARE, convert, is_safe, steps_of, workflow_of
from benchmarks.speculation.sample import DATASETS, Sizes, datasets_folder, draw, read_workflows, sample
from pml.processors.workflow.check import checked_graph
from pml.schemas.catalog import ServerTools, Tool, ToolHints
from pml.schemas.workflow import Workflow

REPLAY = ServerTools(
    server=SERVER,
    status="listed",
    tools=tuple(Tool(name=name, hints=ToolHints(), definition=name) for name in ("read", "write")),
)


def record() -> dict[str, Any]:
    reference = {"type": "reference", "expression": "$t1 $t2 .{a}", "from": ["t1", "t2"]}
    return {
        "id": "w1",
        "tasks": [
            {"id": "t1", "tool": "look", "arguments": {"q": {"type": "literal", "value": {"type": "x"}}}},
            {"id": "t2", "tool": "look", "arguments": {"k": {"type": "parameter", "name": "key word"}}},
            {"id": "t3", "tool": "send", "arguments": {"body": reference}},
            {"id": "t4", "tool": "look", "arguments": {"late": {"type": "reference", "from": ["t4", "t3"]}}},
            {"id": "t5", "tool": "look", "arguments": {}},
        ],
        "edges": [["t2", "t3"], ["t3", "t5"]],
    }


def test_a_converted_workflow_is_one_that_pml_takes_with_the_same_dag() -> None:
    source = convert("d", record(), {"look": True, "send": False})
    graph = checked_graph(Workflow.model_validate(workflow_of(source, [0.1] * 5)), {SERVER: REPLAY})
    assert graph.layers == (("t1", "t2"), ("t3",), ("t4", "t5"))
    assert source.layers == 3
    assert [set(graph.nodes[name].references) for name in ("t3", "t4", "t5")] == [{"t1", "t2"}, {"t3"}, set()]
    assert [graph.nodes[f"t{number}"].tool for number in (2, 3)] == ["replay:read", "replay:write"]


def test_arguments_keep_their_kinds_and_say_what_the_tool_takes() -> None:
    source = convert("d", record(), {"look": True, "send": False})
    workflow = workflow_of(source, [0.1, 0.2, 0.3, 0.4, 0.5])
    first, second, third, *_ = (task["arguments"] for task in workflow["tasks"])
    assert first["q"] == {"type": "literal", "value": {"type": "x"}}
    assert second["k"] == {"type": "parameter", "parameter_name": "key word"}
    assert workflow["context"] == {"key word": "the key word"}
    assert [third[name]["expression"] for name in ("body", "body_2")] == ["t1.value", "t2.value"]
    assert (third["_tool"], third["_latency_ms"]) == ("send", 300.0)


def test_the_model_has_the_same_steps() -> None:
    source = convert("d", record(), {"look": True, "send": False})
    steps = steps_of(source, [0.1, 0.2, 0.3, 0.4, 0.5])
    assert [step.layer for step in steps] == [0, 0, 1, 2, 2]
    assert [step.safe for step in steps] == [True, True, False, True, True]
    assert [set(step.needs) for step in steps] == [set(), set(), {0, 1}, {2}, set()]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="wait for each other"):
        convert("d", record() | {"edges": [["t3", "t1"]]}, {})


def test_labels_of_the_data_set_win_and_the_rest_is_drawn_by_name() -> None:
    assert is_safe("d", "anything", True)
    assert not is_safe("d", "anything", False)
    drawn = [is_safe("d", f"tool {number}", None) for number in range(4_000)]
    assert drawn == [is_safe("d", f"tool {number}", None) for number in range(4_000)]
    assert abs(drawn.count(False) / len(drawn) - UNSAFE_SHARE) < 0.03


def test_a_round_draws_the_same_times_for_every_side() -> None:
    source = convert("d", record(), {})
    assert draw(source, 0.2, 7) == draw(source, 0.2, 7)
    assert draw(source, 0.2, 7) != draw(source, 0.2, 8)
    assert all(1 <= each <= 3 for each in draw(source, 0.2, 7).decisions_s)


@pytest.mark.skipif(datasets_place() is None, reason="no data sets here, and PML_DATASETS names none")
@pytest.mark.parametrize("dataset", DATASETS)
def test_every_recorded_workflow_is_one_that_pml_takes(dataset: str) -> None:
    found = read_workflows(datasets_folder(), dataset)
    for source in found:
        workflow = Workflow.model_validate(workflow_of(source, [0.1] * len(source.tasks)))
        nodes = checked_graph(workflow, {SERVER: REPLAY}).nodes
        assert {name: node.layer for name, node in nodes.items()} == {t.id: t.layer for t in source.tasks}
    chosen = sample(found, Sizes(12, 8, 20), 1)
    assert len(chosen) == 12
    assert chosen == sample(found, Sizes(12, 8, 20), 1)
    assert all(2 <= source.layers <= 8 and len(source.tasks) <= 20 for source in chosen)
