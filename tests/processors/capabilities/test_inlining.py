"""Capabilities in the place of their calls: what runs is what their authors wrote, with the call's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities import inlining
from pml.processors.capabilities.analysing import structure_of
from pml.processors.capabilities.conversion import workflow_of
from pml.processors.capabilities.identity import parameterised
from pml.processors.capabilities.inlining import Find, inlined
from pml.schemas.catalog import Capability
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.workflow import Reference, Workflow
from tests.processors.session_world import SessionWorld

Calls = list[tuple[str, dict[str, Any]]]
RESULTS: dict[str, Any] = {
    "files:list_dir": {"names": ["a.md", "b.md"], "count": 2, "a-b": "odd"},
    "files:read_file": {"text": "hello", "count": 5},
    "files:search": {"count": 0, "matches": []},
}


def learned(name: str, code: str, **fields: Any) -> Capability:
    """What a program is remembered as."""
    general = parameterised(structure_of(code, "python"))
    workflow = workflow_of(general)
    return Capability(
        tenant="local",
        name=name,
        capability_id=f"cap_{name}",
        parameters=general.parameters,
        tasks=workflow.tasks,
        decisions=workflow.decisions,
        result=workflow.result,
        **fields,
    )


def known(*capabilities: Capability) -> Find:
    by_name = {item.name: item for item in capabilities}
    return by_name.get


def program(code: str) -> Workflow:
    return workflow_of(structure_of(code, "python"))


def run(workflow: Workflow, context: dict[str, Any] | None = None) -> tuple[Calls, Any]:
    """Every call in its order, and what the run came to."""
    world = SessionWorld()
    given = {**workflow.context, **(context or {})}
    world.start(workflow.model_copy(update={"context": given}).model_dump(mode="json"))
    made: Calls = []
    while world.open_calls:
        call = next(iter(world.open_calls.values()))
        made.append((call.tool, call.arguments))
        world.answer(call.call_id, RESULTS[call.tool])
    (ended,) = world.of_type("run.completed")
    return made, ended.data.result


READ = learned("read", 'page = await mcp.files.read_file(path="a.md")\nreturn page.text')
COUNT = learned(
    "count",
    "found = await mcp.files.list_dir(path=folder)\n"
    "if found.count > least:\n"
    "    await mcp.files.search(query=found.names[0], least=least)\n"
    "n = found.count\n"
    "return {'n': n, 'first': found.names[0], 'twice': n + n, 'l': [folder, 7]}",
)
TWICE = learned(
    "twice", "a = await capabilities.read(path=path)\nb = await capabilities.read()\nreturn [a, b]"
)


def test_a_capability_runs_with_the_values_of_its_call_and_its_own_defaults() -> None:
    workflow = inlined(program("x = await capabilities.read(path='b.md')\nreturn x"), known(READ))
    assert not workflow.calls_capabilities
    assert [task.id for task in workflow.tasks] == ["c1__n1"]
    assert run(workflow) == ([("files:read_file", {"path": "b.md"})], "hello")
    plain = inlined(program("return await capabilities.read()"), known(READ))
    assert run(plain)[0] == [("files:read_file", {"path": "a.md"})]


@pytest.mark.parametrize(
    ("used", "value"),
    [
        ("x", {"n": 2, "first": "a.md", "twice": 4, "l": ["docs", 7]}),
        ("x.n", 2),
        ("x.first", "a.md"),
        ("x.twice + x.n", 6),
        ("x.l[0]", "docs"),
        ("x.l[1] + 1", 8),
        ("[x.n, {'f': x.first}]", [2, {"f": "a.md"}]),
    ],
)
def test_the_value_of_a_call_is_the_result_of_its_capability(used: str, value: Any) -> None:
    code = f"x = await capabilities.count(folder='docs', least=args.least)\nreturn {used}"
    made, result = run(inlined(program(code), known(COUNT)), {"least": 1})
    assert made == [
        ("files:list_dir", {"path": "docs"}),
        ("files:search", {"query": "a.md", "least": 1}),
    ]
    assert result == value


def test_a_branch_inside_asks_for_the_values_of_the_call() -> None:
    code = "await capabilities.count(folder='docs', least=9)"
    assert run(inlined(program(code), known(COUNT)))[0] == [("files:list_dir", {"path": "docs"})]


def test_a_call_in_a_branch_runs_only_there() -> None:
    code = (
        "a = await mcp.files.list_dir(path='x')\n"
        "if a.count > {}:\n"
        "    b = await capabilities.count(folder=a.names[1], least=0)\n"
        "    await mcp.files.read_file(path=b.first)"
    )
    taken = run(inlined(program(code.format(1)), known(COUNT)))[0]
    assert taken[1:] == [
        ("files:list_dir", {"path": "b.md"}),
        ("files:search", {"query": "a.md", "least": 0}),
        ("files:read_file", {"path": "a.md"}),
    ]
    assert run(inlined(program(code.format(5)), known(COUNT)))[0] == [("files:list_dir", {"path": "x"})]


def test_a_decision_may_ask_for_the_value_of_a_call() -> None:
    code = (
        "a = await capabilities.count(folder='docs', least=9)\n"
        "if a.n == 2:\n"
        "    await mcp.files.read_file(path='yes')"
    )
    made = run(inlined(program(code), known(COUNT)))[0]
    assert made[-1] == ("files:read_file", {"path": "yes"})


def test_capabilities_call_capabilities() -> None:
    made, result = run(inlined(program("return await capabilities.twice(path='z')"), known(READ, TWICE)))
    assert made == [("files:read_file", {"path": "z"}), ("files:read_file", {"path": "a.md"})]
    assert result == ["hello", "hello"]


def test_what_stands_before_and_after_a_call_keeps_its_place() -> None:
    code = (
        "await mcp.files.read_file(path='before')\n"
        "await capabilities.count(folder='docs', least=1)\n"
        "await mcp.files.read_file(path='after')"
    )
    made = [arguments.get("path") for _, arguments in run(inlined(program(code), known(COUNT)))[0]]
    assert made == ["before", "docs", None, "after"]


def test_options_that_name_a_call_name_its_tasks() -> None:
    workflow = program("await capabilities.read()").model_dump(mode="json")
    asked = Workflow.model_validate({**workflow, "options": {"decision_points": ["c1", "on_error"]}})
    assert inlined(asked, known(READ)).options.decision_points == ("c1__n1", "on_error")


SELF = learned("self", "await mcp.files.list_dir(path='.')\nawait capabilities.self()")
SILENT = learned("silent", "await mcp.files.list_dir(path='.')")
SECRET = learned("secret", "await mcp.files.list_dir(path='.')", not_learned="it has a secret")
EITHER = learned(
    "either",
    "if args.x:\n    a = await mcp.files.list_dir(path='.')\n"
    "else:\n    a = await mcp.files.read_file(path='.')\nreturn a.count",
)


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("await capabilities.nothing()", "UNKNOWN_CAPABILITY", "pml capability list"),
        ("await capabilities.secret()", "UNKNOWN_CAPABILITY", "it has a secret"),
        ("await capabilities.self()", "CAPABILITY_CYCLE", "calls itself"),
        ("await capabilities.count()", "CAPABILITY_ARGUMENT", "it takes folder, least, which is not given"),
        ("await capabilities.read(file='x')", "CAPABILITY_ARGUMENT", "it takes no file; it takes path"),
        ("return await capabilities.silent()", "CAPABILITY_ARGUMENT", "comes to no value"),
        (
            "x = await capabilities.silent()\nif x.a:\n    await mcp.files.list_dir()",
            "CAPABILITY_ARGUMENT",
            "comes to no value",
        ),
        ("x = await capabilities.count(folder='d', least=0)\nreturn x.none", "CAPABILITY_ARGUMENT", "'none'"),
        ("x = await capabilities.either(x=True)\nreturn x + 1", "CAPABILITY_ARGUMENT", "alternatives"),
        (
            "await capabilities.count(folder='d', least={'a': 1})",
            *("CAPABILITY_ARGUMENT", "an expression has no objects"),
        ),
    ],
)
def test_a_call_that_does_not_fit_is_refused_with_the_reason(code: str, error: str, said: str) -> None:
    with pytest.raises(WorkflowInvalid, match=said) as refused:
        inlined(program(code), known(READ, COUNT, SELF, SILENT, SECRET, EITHER))
    assert refused.value.code == error
    assert "task c1" in str(refused.value)


def test_a_value_of_alternatives_stays_a_reference_of_alternatives() -> None:
    workflow = inlined(program("x = await capabilities.either(x=True)\nreturn x"), known(EITHER))
    assert workflow.result == Reference(expression="c1__n1.count|c1__n2.count")


def chain(depth: int) -> list[Capability]:
    calls = [learned("l0", "return await mcp.files.read_file(path='deep')")]
    return [*calls, *(learned(f"l{n}", f"return await capabilities.l{n - 1}()") for n in range(1, depth))]


@pytest.mark.parametrize("depth", [1, inlining.DEPTH_MAX, inlining.DEPTH_MAX + 1])
def test_capabilities_lie_in_each_other_as_deep_as_the_design_says(depth: int) -> None:
    def at_once() -> Workflow:
        return inlined(program(f"return await capabilities.l{depth - 1}()"), known(*chain(depth)))

    if depth <= inlining.DEPTH_MAX:
        assert run(at_once())[0] == [("files:read_file", {"path": "deep"})]
        return
    with pytest.raises(WorkflowInvalid, match="deeper") as refused:
        at_once()
    assert refused.value.code == "CAPABILITY_TOO_DEEP"


def test_a_workflow_never_grows_beyond_what_a_run_may_have() -> None:
    wide = learned("wide", "\n".join(f"await mcp.files.list_dir(path='{n}')" for n in range(60)))
    code = "\n".join("await capabilities.wide()" for _ in range(9))
    with pytest.raises(WorkflowInvalid) as refused:
        inlined(program(code), known(wide))
    assert refused.value.code == "TOO_MANY_TASKS"


NAMES = st.sampled_from(["docs", "a b", 'quo"te', "ü"])


@given(folder=NAMES, least=st.integers(-1, 3), extra=st.booleans())
def test_a_call_makes_the_calls_of_the_program_it_is_from(folder: str, least: int, extra: bool) -> None:
    """The twin: the program itself with the same values."""
    after = "\nawait mcp.files.read_file(path=x.first)" if extra else ""
    body = (
        "found = await mcp.files.list_dir(path=args.folder)\n"
        "if found.count > args.least:\n"
        "    await mcp.files.search(query=found.names[0], least=args.least)\n"
    )
    by_hand = body + ("await mcp.files.read_file(path=found.names[0])" if extra else "")
    called = f"x = await capabilities.count(folder=args.folder, least=args.least){after}"
    context = {"folder": folder, "least": least}
    assert run(inlined(program(called), known(COUNT)), context)[0] == run(program(by_hand), context)[0]


def test_finding_is_asked_once_for_each_call() -> None:
    asked: list[str] = []

    def find(name: str) -> Capability | None:
        asked.append(name)
        return {"read": READ, "twice": TWICE}.get(name)

    finding: Callable[[str], Capability | None] = find
    inlined(program("await capabilities.twice(path='z')"), finding)
    assert asked == ["twice", "read", "read"]
