"""Each mistake of a workflow is its own clear error."""

from __future__ import annotations

from typing import Any

import pytest

from pml.processors.workflow.check import Kept, check_calls, check_plan, check_prediction, checked_graph
from pml.schemas.catalog import ServerTools, Tool
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.workflow import Workflow

SERVERS = {
    "web": ServerTools(server="web", status="unavailable", error="it does not start"),
    "files": ServerTools(server="files", status="listed", tools=(Tool(name="read_file"),)),
}


def task(task_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": task_id, "tool": "files:read_file", **fields}


def inside(expression: str, name: str = "part") -> dict[str, Any]:
    """An argument in which a reference lies deep."""
    leaf = {"type": "reference", "expression": expression}
    return {"path": {"type": "list_of", "items": [1, {"type": "object_of", "fields": {name: leaf}}]}}


def reference(expression: str) -> dict[str, Any]:
    return {"path": {"type": "reference", "expression": expression}}


def chain(length: int) -> list[dict[str, Any]]:
    return [task(f"n{i}", depends_on=[f"n{i - 1}"] if i else []) for i in range(length)]


def check(tasks: list[dict[str, Any]], **fields: Any) -> Any:
    return checked_graph(Workflow.model_validate({"tasks": tasks, **fields}), SERVERS)


A = task("a")
HARMLESS = task("a", arguments={"path": "a.md"})
KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
CUT_OFF = "<password>hunter2…"
ASKS = {"condition": {"node": "d", "outcome": "true"}}


def decision(expression: str) -> dict[str, Any]:
    return {"decisions": [{"id": "d", "expression": expression}]}


@pytest.mark.parametrize(
    ("code", "says", "tasks", "fields"),
    [
        ("NO_TASKS", "no tasks", [], {}),
        ("TOO_MANY_TASKS", "501 tasks; at most 500", [task(f"n{i}") for i in range(501)], {}),
        ("DUPLICATE_ID", "used more than once: a, b", [task("b"), A, task("b"), A], {}),
        ("DUPLICATE_ID", "used more than once: a", [A], {"decisions": [{"id": "a", "expression": "a.x"}]}),
        ("NOT_SUPPORTED", "a capability is named by: a", [{"id": "a", "capability": "notes"}], {}),
        ("UNKNOWN_DECISION_POINT", "b; name per_layer", [A], {"options": {"decision_points": ["a", "b"]}}),
        (
            "UNKNOWN_DECISION_POINT",
            "decision_points: b, c, d, e, f, g; name",
            [A],
            {"options": {"decision_points": list("gfedcba")}},
        ),
        ("UNKNOWN_DECISION_POINT", "manual; name", [A], {"options": {"decision_points": "manual"}}),
        ("SECRET_IN_WORKFLOW", "task b: a name", [HARMLESS, task("b", arguments={KEY: 1})], {}),
        ("SECRET_IN_WORKFLOW", "task b: a name", [A, task("b", arguments=reference(f"a['{KEY}']"))], {}),
        ("SECRET_IN_WORKFLOW", "task a: a name", [task("a", arguments={KEY: 1})], {}),
        ("SECRET_IN_WORKFLOW", "task a: a name", [task("a", arguments={CUT_OFF: 1, "path": 2})], {}),
        (
            "SECRET_IN_WORKFLOW",
            "task b: a name",
            [A, task("b", condition={"node": "d", "outcome": f"case:{KEY}"})],
            decision("a.x"),
        ),
        ("BAD_EXPRESSION", "task b, argument path", [A, task("b", arguments=reference("a..x"))], {}),
        ("BAD_EXPRESSION", "task b, argument path", [A, task("b", arguments=inside("a..x"))], {}),
        ("MISSING_DEPENDENCY", "task b depends on zz", [A, task("b", arguments=inside("zz"))], {}),
        ("SECRET_IN_WORKFLOW", "task b: a name", [A, task("b", arguments=inside(f"a['{KEY}']"))], {}),
        ("SECRET_IN_WORKFLOW", "task b: a name", [A, task("b", arguments=inside("a", name=KEY))], {}),
        ("BAD_EXPRESSION", "decision d: 'a.x >' is not", [A], decision("a.x >")),
        ("BAD_EXPRESSION", "Call is not allowed", [A], decision("len(a.x) > 1")),
        ("BAD_EXPRESSION", "reads no task's result and nothing of args", [A], decision("1 < 2")),
        ("MISSING_DEPENDENCY", "task b depends on zz", [task("b", depends_on=["zz"])], {}),
        ("MISSING_DEPENDENCY", "depends on c, d, e, f, g, h,", [task("b", depends_on=list("hgfedc"))], {}),
        ("MISSING_DEPENDENCY", "task b depends on zz", [task("b", arguments=reference("zz.x"))], {}),
        ("MISSING_DEPENDENCY", "task b depends on zz", [A, task("b", arguments=reference("a|zz"))], {}),
        ("MISSING_DEPENDENCY", "decision d reads zz", [A], decision("zz.x > 1")),
        ("MISSING_DEPENDENCY", "the condition of task b names d", [A, task("b", **ASKS)], {}),
        (
            "BAD_OUTCOME",
            "true, false or case:<value>, not 'yes'",
            [A, task("b", condition={"node": "d", "outcome": "yes"})],
            decision("a.x > 1"),
        ),
        ("UNKNOWN_TOOL", "called 'nope' (configured: files, web)", [{"id": "a", "tool": "nope:x"}], {}),
        ("UNKNOWN_TOOL", "has no tool 'x'; see: pml tools list", [{"id": "a", "tool": "files:x"}], {}),
        ("CYCLE", "a -> a", [task("a", depends_on=["a"])], {}),
        ("CYCLE", "a -> b -> a", [task("a", depends_on=["b"]), task("b", arguments=reference("a"))], {}),
        ("CYCLE", "a -> a", [task("a", **ASKS)], decision("a.x > 1")),
        ("TOO_DEEP", "101 layers; at most 100", chain(101), {}),
        ("LAYER_TOO_WIDE", "201 tasks; at most 200", [task(f"n{i}") for i in range(201)], {}),
    ],
)
def test_each_mistake_has_its_own_error(
    code: str, says: str, tasks: list[dict[str, Any]], fields: dict[str, Any]
) -> None:
    with pytest.raises(WorkflowInvalid) as caught:
        check(tasks, **fields)
    assert caught.value.code == code
    assert says in caught.value.message


def computed(code: str) -> dict[str, Any]:
    return {"path": {"type": "expression", "code": code}}


def test_a_task_waits_for_what_its_computed_arguments_read() -> None:
    graph = check([A, task("b", arguments=computed("a.n + args.more"))])

    assert graph.layers == (("a",), ("b",))
    assert graph.nodes["b"].references == {"a"}


@pytest.mark.parametrize(
    ("code", "said"),
    [("len(a)", "BAD_EXPRESSION"), ("x.n + 1", "MISSING_DEPENDENCY"), ("a +", "BAD_EXPRESSION")],
)
def test_a_computed_argument_is_checked_before_it_runs(code: str, said: str) -> None:
    with pytest.raises(WorkflowInvalid) as caught:
        check([A, task("b", arguments=computed(code))])
    assert caught.value.code == said


def test_a_decision_may_read_the_context_alone() -> None:
    graph = check([A, task("b", **ASKS)], **decision("args.mode == 'fast'"))

    assert graph.layers == (("a", "b"),)
    assert graph.decisions["d"].references == frozenset()


def test_in_what_became_of_capabilities_a_decision_may_read_nothing() -> None:
    """They were called with literals, and decide about a parameter."""
    workflow = Workflow.model_validate({"tasks": [task("b", **ASKS)], **decision("'fast' == 'fast'")})
    assert checked_graph(workflow, SERVERS, constants=True).layers == (("b",),)
    check_calls(workflow, SERVERS, check([A]))
    check_prediction(workflow)
    with pytest.raises(WorkflowInvalid, match="reads no task's result"):
        checked_graph(workflow, SERVERS)


def test_a_task_that_is_called_args_is_read_as_a_task() -> None:
    graph = check([task("args"), task("b", **ASKS)], **decision("args.mode == 'fast'"))

    assert graph.layers == (("args",), ("b",))


def test_a_task_waits_for_what_any_part_of_its_arguments_reads() -> None:
    assert check([A, task("b", arguments=inside("a.x"))]).layers == (("a",), ("b",))


def test_a_cycle_behind_other_tasks_is_named_alone() -> None:
    tasks = [A, task("b", depends_on=["a", "d"]), task("c", depends_on=["b"]), task("d", depends_on=["c"])]
    with pytest.raises(WorkflowInvalid) as caught:
        check([*tasks, task("e", depends_on=["d"])])
    assert caught.value.details == {"cycle": ["b", "d", "c", "b"]}


def test_a_tool_of_an_unavailable_server_is_not_unknown() -> None:
    assert check([{"id": "a", "tool": "web:get"}]).layers == (("a",),)


def test_what_is_at_the_limits_is_allowed() -> None:
    assert len(check(chain(100)).layers) == 100
    wide = [task(f"n{i}", depends_on=[f"n{i - 200}"] if i >= 200 else []) for i in range(500)]
    assert [len(layer) for layer in check(wide).layers] == [200, 200, 100]


@pytest.mark.parametrize(
    ("code", "says", "tasks", "expression"),
    [
        ("NO_TASKS", "no tasks", [], ""),
        ("TOO_MANY_TASKS", "501 tasks; at most 500", [task("n")], ""),
        ("DUPLICATE_ID", "choose others: a, b, c, d", [task(name) for name in "dcab"], ""),
        ("SECRET_IN_WORKFLOW", "task n: a name", [task("n", arguments={KEY: 1})], ""),
        ("BAD_EXPRESSION", "task n, argument path", [task("n", arguments=reference("a..x"))], ""),
        ("BAD_EXPRESSION", "decision d2: 'a.x >' is not", [task("n")], "a.x >"),
        ("MISSING_DEPENDENCY", "task n depends on b", [task("n", depends_on=["a", "b"])], ""),
        ("UNKNOWN_TOOL", "no MCP server is called 'nope'", [{"id": "n", "tool": "nope:x"}], ""),
        ("CYCLE", "n -> n", [task("n", depends_on=["n"])], ""),
        ("TOO_DEEP", "101 layers; at most 100", [task("n"), task("o", depends_on=["n"])], ""),
    ],
)
def test_a_plan_is_checked_as_a_whole_workflow_is(
    code: str, says: str, tasks: list[dict[str, Any]], expression: str
) -> None:
    """It may build on `a`, which has completed; 99 layers stay, and 500 tasks where it is about them."""
    decisions = [{"id": "d2", "expression": expression}] if expression else []
    plan = Workflow.model_validate({"tasks": tasks, "decisions": decisions})
    kept = Kept(frozenset("abcd"), frozenset("a"), 500 if code == "TOO_MANY_TASKS" else 4, 99)
    with pytest.raises(WorkflowInvalid) as caught:
        check_plan(plan, SERVERS, kept)
    assert caught.value.code == code
    assert says in caught.value.message


def test_a_plan_may_build_on_what_has_completed_up_to_the_limits() -> None:
    plan = Workflow.model_validate({"tasks": [task("n", depends_on=["a"], arguments=reference("a.path"))]})
    check_plan(plan, SERVERS, Kept(frozenset("ab"), frozenset("a"), 499, 99))


def test_where_no_server_is_configured_that_is_said() -> None:
    with pytest.raises(WorkflowInvalid, match=r"configured: none\)"):
        checked_graph(Workflow.model_validate({"tasks": [A]}), {})
