"""What a client of the official SDK sees, as far as nothing has to run behind it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp.shared.exceptions import MCPError

from pml.schemas.workflow import Decision, Task, Workflow
from pml.streams.client import IntentProducer
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.tokens import SCOPES
from pml.streams.mcp_server.door import LOCAL_AGENT, traceparent
from pml.streams.mcp_server.execute import ExecuteAsked, what_to_run
from pml.streams.mcp_server.shapes import DAG, DECISION, TASK
from pml.streams.mcp_server.tools import TOOLS
from tests.docs import pages
from tests.streams.mcp_server.clients import Taken, connected, settings_in

T, F = True, False
# CONTRACT.md: read-only, destructive, idempotent, open world.
HINTS = {
    "pml_discover": (T, F, T, F),
    "pml_execute": (F, T, F, T),
    "pml_get_run": (T, F, T, F),
    "pml_list_runs": (T, F, T, F),
    "pml_get_task_result": (T, F, T, F),
    "pml_continue": (F, T, T, T),
    "pml_replan": (F, T, F, T),
    "pml_abort": (F, T, T, F),
}
READS = {"pml_discover", "pml_get_run", "pml_list_runs", "pml_get_task_result"}
DAG_GIVEN = {"tasks": [{"id": "n1", "tool": "files:read_file", "arguments": {"path": "a.txt"}}]}
GIVEN: dict[str, dict[str, Any]] = {
    "pml_discover": {"intent": "read a file", "filter": {"type": "tool", "min_score": 0.1}, "limit": 50},
    "pml_execute": {"dag": DAG_GIVEN},
    "pml_get_run": {"run_id": "run_1"},
    "pml_list_runs": {},
    "pml_get_task_result": {"run_id": "run_1", "task_id": "n1"},
    "pml_continue": {"run_id": "run_1"},
    "pml_replan": {"run_id": "run_1", "tasks": DAG_GIVEN["tasks"]},
    "pml_abort": {"run_id": "run_1"},
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_tools_with_their_hints_schemas_and_instructions(tmp_path: Path, mode: str) -> None:
    async with connected(tmp_path, mode=mode) as client:
        listed = (await client.list_tools()).tools
        assert client.instructions is not None
        assert "pml_get_task_result" in client.instructions

    found = {}
    for tool in listed:
        hints = tool.annotations
        assert hints is not None
        assert tool.output_schema is not None
        found[tool.name] = (
            *(hints.read_only_hint, hints.destructive_hint),
            *(hints.idempotent_hint, hints.open_world_hint),
        )
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        Draft202012Validator(tool.input_schema).validate(GIVEN[tool.name])
    assert found == HINTS


def test_what_the_specification_calls_otherwise_is_told_by_names_that_there_are() -> None:
    rows = pages.table("docs/guide/mcp.md", "specification")
    named = {name for row in rows for name in pages.codes(row["specification"])}
    instead = {name for row in rows for name in pages.codes(row["instead"])}
    assert {"pml_search_tools", "pml_search_capabilities", "pml_find_capabilities"} <= named
    assert {"pml_execute_dag", "pml_execute_code", "pml_explore"} <= named
    assert not named & set(TOOLS)
    assert instead
    assert instead <= set(TOOLS)


def test_written_schemas_name_the_fields_that_there_are() -> None:
    for schema, model in ((DAG, Workflow), (TASK, Task), (DECISION, Decision)):
        assert set(schema["properties"]) == set(model.model_fields)


@pytest.mark.parametrize("name", HINTS)
async def test_every_tool_needs_its_scope(tmp_path: Path, name: str) -> None:
    needed = "runs:read" if name in READS else "runs:write"
    others = Caller("acme", "agent:a", frozenset(SCOPES) - {needed})
    async with connected(tmp_path, others) as client:
        answer = await client.call_tool(name, GIVEN[name])

    assert answer.is_error
    assert answer.structured_content["code"] == "NOT_ALLOWED"
    assert needed in answer.structured_content["message"]


@pytest.mark.parametrize("name", sorted(READS))
async def test_what_is_away_is_told_as_an_error(tmp_path: Path, name: str) -> None:
    async with connected(tmp_path) as client:
        answer = await client.call_tool(name, GIVEN[name])

    assert answer.is_error
    assert answer.structured_content.keys() == {"code", "message", "retryable", "run_id", "details"}
    code = "BROKER_UNAVAILABLE" if name == "pml_discover" else "STORE_UNAVAILABLE"
    assert (answer.structured_content["code"], answer.structured_content["retryable"]) == (code, True)
    assert answer.structured_content["run_id"] == GIVEN[name].get("run_id")
    assert answer.content[0].text.startswith(f"{code}: ")


async def test_a_broker_that_is_away_is_told_within_the_wait(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        answer = await client.call_tool("pml_abort", {"run_id": "run_1", "session": "s1"})

    assert answer.structured_content["code"] == "BROKER_UNAVAILABLE"


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("pml_execute", {}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": DAG_GIVEN, "code": "pass"}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": DAG_GIVEN, "language": "python"}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"code": "pass", "language": "cobol"}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": DAG_GIVEN, "wait_s": 51}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": DAG_GIVEN, "more": 1}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": DAG_GIVEN, "run_id": "a/b"}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"intent": ""}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"context": {"path": "."}}, "INVALID_ARGUMENTS"),
        ("pml_discover", {}, "INVALID_ARGUMENTS"),
        ("pml_discover", {"intent": "x", "limit": 51}, "INVALID_ARGUMENTS"),
        ("pml_discover", {"intent": "x", "offset": -1}, "INVALID_ARGUMENTS"),
        ("pml_discover", {"intent": "x", "filter": {"type": "run"}}, "INVALID_ARGUMENTS"),
        ("pml_discover", {"intent": "x", "filter": {"min_score": 2}}, "INVALID_ARGUMENTS"),
        ("pml_execute", {"dag": {"tasks": [{"id": "n1"}]}}, "WORKFLOW_INVALID"),
        ("pml_execute", {"dag": {**DAG_GIVEN, "options": 1}, "timeout_s": 5}, "WORKFLOW_INVALID"),
        ("pml_replan", {"run_id": "run_1", "tasks": [{"id": "n1"}]}, "WORKFLOW_INVALID"),
        ("pml_continue", {"run_id": "run_1", "reason": "x" * 2_001}, "INVALID_ARGUMENTS"),
        ("pml_abort", {}, "INVALID_ARGUMENTS"),
        ("pml_list_runs", {"limit": 101}, "INVALID_ARGUMENTS"),
        ("pml_list_runs", {"status": "gone"}, "INVALID_ARGUMENTS"),
        ("pml_get_task_result", {"run_id": "run_1", "task_id": "n1", "limit": 20_001}, "INVALID_ARGUMENTS"),
        ("pml_get_task_result", {"run_id": "run_1", "task_id": "n1", "offset": -1}, "INVALID_ARGUMENTS"),
        ("pml_get_task_result", {"run_id": "run_1", "task_id": "no name"}, "INVALID_ARGUMENTS"),
    ],
)
async def test_arguments_of_the_wrong_shape_are_told_so(
    tmp_path: Path, name: str, arguments: dict[str, Any], code: str
) -> None:
    producer = IntentProducer(settings_in(tmp_path))
    async with connected(tmp_path, producer=producer) as client:
        answer = await client.call_tool(name, arguments)

    assert answer.is_error
    assert answer.structured_content["code"] == code


async def test_a_tool_that_there_is_not(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        with pytest.raises(MCPError, match="no tool 'pml_approve'"):
            await client.call_tool("pml_approve", {"approval_id": "apr_1"})


async def test_a_defect_tells_nothing_of_itself(tmp_path: Path) -> None:
    class Broken:
        async def start_run(self, *arguments: Any, **fields: Any) -> None:
            raise KeyError("secret")

    async with connected(tmp_path, producer=Broken()) as client:
        answer = await client.call_tool("pml_execute", GIVEN["pml_execute"])

    assert answer.structured_content["code"] == "INTERNAL"
    assert "secret" not in str(answer)


async def test_a_run_is_begun_for_the_caller_in_the_session_that_the_host_names(tmp_path: Path) -> None:
    taken = Taken()
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    caller = Caller("acme", "agent:a", LOCAL_AGENT.scopes)
    async with connected(tmp_path, caller, taken) as client:
        arguments = {
            **GIVEN["pml_execute"],
            "session": "mine",
            "run_id": "run_9",
            "intent": "read",
            "wait_s": 0,
        }
        await client.call_tool("pml_execute", arguments)
        await client.call_tool("pml_execute", arguments, meta={"pml/session": "hosts", "traceparent": trace})
        wrong = await client.call_tool("pml_execute", arguments, meta={"pml/session": "a/b"})

    assert [fields["session_id"] for _, fields in taken.started] == ["mine", "hosts"]
    traces = [fields["traceparent"] for _, fields in taken.started]
    assert traces == [None, trace]
    given = taken.started[0][1]
    assert (given["tenant"], given["principal"], given["run_id"]) == ("acme", "agent:a", "run_9")
    assert wrong.structured_content["code"] == "INVALID_ARGUMENTS"


async def test_nothing_waits_longer_than_it_may(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        answer = await client.call_tool("pml_execute", {**GIVEN["pml_execute"], "wait_s": 0})

    assert not answer.is_error
    told = answer.structured_content
    assert (told["run_id"], told["status"], told["poll_after_ms"]) == ("run_1", "queued", 1_000)


async def test_an_answer_that_does_not_come_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        async def decide(self, *arguments: Any, **fields: Any) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("pml.streams.mcp_server.failures.ANSWER_S", 0.01)
    async with connected(tmp_path, producer=Silent()) as client:
        answer = await client.call_tool("pml_abort", {"run_id": "run_1", "session": "run_1"})

    assert (answer.is_error, answer.structured_content["code"]) == (True, "WAITED_TOO_LONG")
    assert answer.structured_content["run_id"] == "run_1"


async def test_an_error_after_a_run_was_sent_names_it(tmp_path: Path) -> None:
    async with connected(tmp_path) as client:
        answer = await client.call_tool("pml_execute", GIVEN["pml_execute"])

    assert answer.structured_content["code"] == "BROKER_UNAVAILABLE"
    assert answer.structured_content["run_id"] == "run_1"


def test_a_trace_that_is_badly_written_is_passed_over() -> None:
    assert traceparent({"traceparent": "00-xyz"}) is None
    assert traceparent({"traceparent": 1}) is None
    assert traceparent(None) is None


async def test_an_intent_with_a_context_begins_a_run_and_alone_it_does_not(tmp_path: Path) -> None:
    taken = Taken()
    async with connected(tmp_path, producer=taken) as client:
        alone = await client.call_tool("pml_execute", {"intent": "tidy up"})
        for context in ({}, {"path": "."}):
            asked = {"intent": "tidy up", "context": context, "timeout_s": 5, "wait_s": 0}
            await client.call_tool("pml_execute", asked)

    assert alone.structured_content["code"] == "BROKER_UNAVAILABLE"

    given = [(workflow, fields["intent"], fields["context"]) for workflow, fields in taken.started]
    assert given == [(None, "tidy up", {}), (None, "tidy up", {"path": "."})]
    assert taken.started[0][1]["options"].timeout_s == 5


def test_options_of_the_call_come_before_those_of_the_dag() -> None:
    dag = {**DAG_GIVEN, "options": {"timeout_s": 9, "speculation": "off"}}
    asked = ExecuteAsked(dag=dag, timeout_s=5, per_layer_validation=True)

    told = what_to_run(asked)["workflow"]["options"]

    assert told == {"timeout_s": 5, "speculation": "off", "per_layer_validation": True}
    assert what_to_run(ExecuteAsked(dag=dag))["workflow"] == dag


def test_a_program_has_its_options_beside_it() -> None:
    asked = ExecuteAsked(code="return 1", language="typescript", timeout_s=5)

    told = what_to_run(asked)

    assert (told["workflow"].source, told["workflow"].language) == ("return 1", "typescript")
    assert (told["options"].timeout_s, told["options"].per_layer_validation) == (5, False)
    assert what_to_run(ExecuteAsked(code="return 1"))["options"] is None


def test_no_tool_approves() -> None:
    assert not [name for name in TOOLS if "appro" in name]
    assert "approvals:write" not in LOCAL_AGENT.scopes
    assert not LOCAL_AGENT.principal.startswith("person:")
