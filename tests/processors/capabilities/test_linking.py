"""Capabilities that are no DAG, in the programs that call them."""

from __future__ import annotations

import pytest

from pml.processors.capabilities import linking
from pml.processors.capabilities.analysing import analysed
from pml.processors.capabilities.identity import program_capability_id
from pml.processors.capabilities.inlining import Find, inlined
from pml.processors.capabilities.linking import linked_with, program_of, with_linked
from pml.schemas.analysis import AnalyseAnswer, AnalyseRequest
from pml.schemas.catalog import Capability
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.structure import Language
from pml.schemas.workflow import Task, Workflow

DAG = Capability(
    tenant="local", name="peek", capability_id="cap_peek", tasks=(Task(id="n1", tool="s:read", arguments={}),)
)


def sandboxed(name: str, *calls: str, language: Language = "python", **fields: object) -> Capability:
    given = {"code": f"while {name}: pass", "reasons": ("line 1: `while`",), "calls": calls, **fields}
    return Capability.model_validate(
        {"tenant": "local", "name": name, "capability_id": f"cap_{name}", "mode": "sandbox"}
        | {"language": language}
        | given
    )


def known(*records: Capability) -> Find:
    by_name = {item.name: item for item in records} | {item.capability_id: item for item in records}
    return by_name.get


def answer(source: str, *records: Capability) -> AnalyseAnswer:
    return with_linked(analysed(AnalyseRequest(source=source)), source, known(*records))


def refused(*names: str, find: Find, language: Language = "python") -> str:
    with pytest.raises(WorkflowInvalid) as found:
        linked_with(names, language, find)
    return found.value.code


def test_a_program_that_calls_one_runs_in_the_sandbox_with_it() -> None:
    source = "a = await mcp.s.read()\nawait capabilities.total(path=a)"
    found = answer(source, sandboxed("total"))
    assert (found.mode, found.reasons) == ("sandbox", ("it calls total, which runs in the sandbox",))
    assert (found.workflow, found.capability_id) == (None, program_capability_id(source, "python"))
    assert found.program is not None
    assert [(each.names, each.source) for each in found.program.linked] == [(("total",), "while total: pass")]


def test_a_program_that_calls_only_dags_stays_what_it_is() -> None:
    source = "await capabilities.peek()"
    assert answer(source, DAG) == analysed(AnalyseRequest(source=source))
    loop = "while True:\n    await capabilities.peek()"
    found = answer(loop, DAG)
    assert (found.reasons, found.program and found.program.linked) == (("line 1: `while`",), ())


def test_a_program_knows_the_tools_of_all_that_it_calls() -> None:
    outer, inner = sandboxed("a", "b", uses=("s:one",)), sandboxed("b", "peek", uses=("s:two", "s:one"))
    found = answer("await mcp.s.own()\nawait capabilities.a()", outer, inner, DAG)
    assert found.program is not None
    assert found.program.tools == ("s:own", "s:one", "s:two", "s:read")
    assert program_of(inner, known(inner, DAG)).tools == ("s:two", "s:one", "s:read")
    alone = analysed(AnalyseRequest(source="while True:\n    await mcp.s.own()")).program
    assert alone is not None
    assert alone.tools == ("s:own",)


def test_those_that_are_called_come_before_those_that_call_them() -> None:
    find = known(sandboxed("a", "b", "c", "peek"), sandboxed("b", "c"), sandboxed("c"), DAG)
    assert [each.names for each in linked_with(["a", "c"], "python", find)] == [("c",), ("b",), ("a",)]


def test_one_that_is_called_by_name_and_by_id_is_one() -> None:
    (only,) = linked_with(["a", "cap_a", "a"], "python", known(sandboxed("a")))
    assert only.names == ("a", "cap_a")


def test_what_cannot_be_linked_is_refused() -> None:
    assert refused("a", find=known()) == "UNKNOWN_CAPABILITY"
    assert refused("a", find=known(sandboxed("a", not_learned="it has a secret"))) == "UNKNOWN_CAPABILITY"
    assert refused("a", find=known(sandboxed("a", "b"), sandboxed("b", "a"))) == "CAPABILITY_CYCLE"
    assert refused("a", find=known(sandboxed("a", language="typescript"))) == "CAPABILITY_ARGUMENT"
    deep = [sandboxed(f"a{number}", f"a{number + 1}") for number in range(9)]
    assert refused("a0", find=known(*deep)) == "CAPABILITY_TOO_DEEP"


def test_a_program_that_calls_itself_is_refused() -> None:
    source = "while True:\n    await capabilities.again()"
    own = sandboxed("again").model_copy(update={"capability_id": program_capability_id(source, "python")})
    with pytest.raises(WorkflowInvalid, match="calls itself"):
        answer(source, own)


def test_there_is_an_end_to_what_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "LINKED_MAX", 2)
    three = [sandboxed(name) for name in "abc"]
    assert len(linked_with("ab", "python", known(*three))) == 2
    assert refused(*"abc", find=known(*three)) == "TOO_MANY_TASKS"


def test_a_record_runs_as_its_program() -> None:
    record = sandboxed("a", "b")
    found = program_of(record, known(record, sandboxed("b")))
    assert (found.source, found.reasons) == ("while a: pass", ("line 1: `while`",))
    assert [each.capability_id for each in found.linked] == ["cap_b"]


def test_a_workflow_has_no_place_for_one() -> None:
    workflow = Workflow(tasks=(Task(id="c1", capability="a", arguments={}),))
    with pytest.raises(WorkflowInvalid) as found:
        inlined(workflow, known(sandboxed("a")))
    assert found.value.code == "CAPABILITY_IN_SANDBOX"
