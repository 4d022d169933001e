"""`pml:analyse` as a service of the bridge: a program and the listed tools in, a structure out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from pml.processors.capabilities.inlining import Find, inlined
from pml.schemas.analysis import ANALYSE_TOOL, AnalyseAnswer
from pml.schemas.catalog import Capability, ServerTools, Tool
from pml.schemas.errors import SourceError, WorkflowInvalid
from pml.schemas.workflow import Task, Workflow
from pml.streams.bridge.analyse import Analyse
from tests.streams.bridge.running import run

PEEK = Capability(
    tenant="local", name="peek", capability_id="cap_1", tasks=(Task(id="n1", tool="s:read", arguments={}),)
)
PROGRAM = "found = await mcp.s.find(name='a')\nawait mcp.s.read(path=found.path)"


def tool(name: str, takes: str, gives: str) -> Tool:
    return Tool(
        name=name,
        input_schema={"type": "object", "properties": {takes: {}}, "required": [takes]},
        output_schema={"type": "object", "properties": {gives: {}}},
    )


SERVERS = [
    ServerTools(server="s", status="listed", tools=(tool("find", "name", "path"), tool("read", "path", "x")))
]


COUNT = Capability(
    tenant="local",
    name="count",
    capability_id="cap_2",
    mode="sandbox",
    language="python",
    code="while True: pass",
)


class Known:
    """One tenant has two capabilities."""

    async def workflow(self, tenant: str, workflow: Workflow) -> Workflow:
        """As the bridge inlines it."""
        return await self.look(tenant, lambda find: inlined(workflow, find))

    async def look(self, tenant: str, question: Callable[[Find], Any]) -> Any:
        """As the bridge looks them up."""
        return question({"peek": PEEK, "count": COUNT}.get if tenant == "local" else lambda name: None)


async def answered(source: str, **fields: str) -> AnalyseAnswer:
    analyse = Analyse(lambda: SERVERS, Known())
    try:
        given = await analyse(run(ANALYSE_TOOL, arguments={"source": source, **fields}))
    finally:
        analyse.close()
    return AnalyseAnswer.model_validate(given)


async def test_a_program_is_answered_with_its_structure_and_its_workflow() -> None:
    answer = await answered(PROGRAM, language="python")
    assert (answer.mode, answer.reasons) == ("dag", ())
    assert answer.workflow is not None
    assert [task.tool for task in answer.workflow.tasks] == ["s:find", "s:read"]
    (provides,) = (edge for edge in answer.structure.edges if edge.type == "provides")
    assert provides.coverage == "strict"


@pytest.mark.parametrize(
    ("source", "language"),
    [
        (PROGRAM, "python"),
        ("await mcp.s.read({ path: args.p })", "typescript"),
        ('const a = await mcp.s.find({ name: "x" });', "typescript"),
        ("a = 1", "python"),
        ("await mcp.sh.run(command='cd a && ls; echo =>')", "python"),
        ("texts.append({'a': 1})", "python"),
        ("await mcp['s']['read']({})", "typescript"),
        ("// note\nmcp.s.read()", "typescript"),
        ("if (a) { b }", "typescript"),
        ("x: int = 2", "python"),
        ("enum A { B }", "typescript"),
    ],
)
async def test_a_language_that_is_not_named_is_told_by_the_text(source: str, language: str) -> None:
    assert (await answered(source)).language == language


async def test_capabilities_that_a_program_calls_are_tasks_of_its_workflow() -> None:
    answer = await answered("await mcp.s.find(name='a')\nawait capabilities.peek()", language="python")
    assert answer.workflow is not None
    calls = {task.id: task.tool for task in answer.workflow.tasks}
    assert calls == {"n1": "s:find", "c1__n1": "s:read"}
    with pytest.raises(WorkflowInvalid, match="there is no nothing"):
        await answered("await capabilities.nothing()", language="python")


async def test_a_program_that_is_no_dag_says_why_and_has_no_workflow() -> None:
    answer = await answered("while x:\n    await mcp.s.read(path=x)", language="python")
    assert (answer.mode, answer.workflow) == ("sandbox", None)
    assert answer.reasons[0] == "line 1: `while`"


async def test_what_is_no_program_is_an_error_of_the_call() -> None:
    with pytest.raises(SourceError, match="line 1"):
        await answered("await mcp.s.read(", language="python")
    with pytest.raises(ValidationError):
        await answered("a = 1", language="cobol")


async def test_a_program_that_calls_one_of_the_sandbox_goes_there_with_it() -> None:
    answer = await answered("a = await capabilities.count()\nawait capabilities.peek()")
    assert (answer.mode, answer.workflow) == ("sandbox", None)
    assert answer.program is not None
    assert [each.source for each in answer.program.linked] == ["while True: pass"]


async def test_a_program_of_the_sandbox_is_told_at_once_of_what_there_is_not() -> None:
    with pytest.raises(WorkflowInvalid) as found:
        await answered("while True:\n    await capabilities.nobody()")
    assert found.value.code == "UNKNOWN_CAPABILITY"
