"""The proxy in front of a whole stack: a client that pointed to servers points to PML instead.

All tests share one stack, each with sessions of its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types as types
import orjson
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from pml.deploy.examples import world
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project
from tests.fixtures.project import shared_guest as shared_project
from tests.streams.mcp_server.test_live import address, called, over_http, over_stdio

__all__ = ["shared_project"]

pytestmark = [pytest.mark.integration]

SERVERS = Path(__file__).parents[3] / "servers"
PERMISSIONS = """\
tools:
  "files:delete_file": {scope: filesystem, approval: hil, effect: write, touches: ["files:{path}"]}
  "files:write_file": {scope: filesystem, approval: auto, effect: write, touches: ["files:{path}"]}
  "files:*": {scope: readonly, approval: auto, touches: ["files:{path}"]}
  "git:git_log": {scope: readonly, approval: auto, touches: ["git:{repo_path}"]}
  "git:git_show": {scope: readonly, approval: auto, touches: ["git:{repo_path}"]}
  "kinds:*": {scope: readonly, approval: auto}
  "trouble:*": {scope: readonly, approval: auto}
"""
LARGE = "".join(f"line {number} of a large file é\n" for number in range(2_500))
LOOKS_LIKE_A_REFERENCE = {"type": "reference", "expression": "n1.x"}
# What an agent asks of its servers: server, tool, arguments.
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("files", "read_file", {"path": "a.txt"}),
    ("files", "read_file", {"path": "large.txt"}),
    ("files", "read_file", {"path": "missing.txt"}),
    ("files", "read_file", {"path": ["wrong"]}),
    ("files", "list_dir", {"path": ".", "recursive": True}),
    ("files", "format", {"data": {"b": None, "a": [1, "é"]}, "syntax": "json", "sort_keys": True}),
    ("files", "format", {"data": LOOKS_LIKE_A_REFERENCE, "syntax": "json"}),
    ("git", "git_log", {"repo_path": "repository", "max_count": 2}),
    ("git", "git_show", {"repo_path": "repository", "revision": "nothing"}),
    *(("kinds", name, {}) for name in ("kinds", "structure", "empty", "fails", "bad")),
    ("kinds", "echo", {"password": "hunter2", "deep": {"type": "parameter", "parameter_name": "x"}}),
]
Direct = dict[str, Client]


@pytest.fixture(scope="module")
def stack(shared_project: Project) -> Project:
    """A stack that runs, with four servers."""
    project = shared_project
    (project.folder / "mcp-permissions.yaml").write_text(PERMISSIONS)
    (project.files / "large.txt").write_text(LARGE)
    (project.files / "b.txt").write_text("to be deleted\n")
    world.build_repository(project.folder / "repository")
    git = ["-m", "mcp_server_git", "--repository", "repository"]
    project.servers["git"] = {"command": sys.executable, "args": git, "cwd": str(project.folder)}
    for name, file in (("kinds", "grow"), ("trouble", "trouble.log")):
        arguments = [str(SERVERS / f"{name}_server.py"), str(project.folder / file)]
        project.servers[name] = {"command": sys.executable, "args": arguments}
    (project.folder / "mcp-servers.yaml").write_bytes(orjson.dumps({"mcpServers": project.servers}))
    project.pml("up", "--detach")
    return project


async def directly(project: Project, name: str, opened: AsyncExitStack, mode: str) -> Client:
    """The official client at the server itself."""
    server = StdioServerParameters(**project.servers[name])
    return await opened.enter_async_context(Client(server, mode=mode))


async def answer_of(client: Client, tool: str, arguments: dict[str, Any]) -> Any:
    """All that a client learns of a call."""
    try:
        answer = await client.call_tool(tool, arguments)
    except MCPError as error:
        return "MCPError", error.error.code, error.error.message
    meta = {name: value for name, value in (answer.meta or {}).items() if "modelcontextprotocol" not in name}
    blocks = [block.model_dump(by_alias=True) for block in answer.content]
    return blocks, answer.structured_content, answer.is_error, meta


async def test_everything_is_as_at_the_servers_themselves_and_the_runs_are_listed(stack: Project) -> None:
    for server in (over_stdio(stack), address(stack)):
        for mode in ("auto", "legacy"):
            async with AsyncExitStack() as opened:
                direct = {
                    name: await directly(stack, name, opened, mode) for name in ("files", "git", "kinds")
                }
                proxied = await opened.enter_async_context(Client(server, mode=mode))
                await lists_the_same(direct, proxied)
                for name, tool, arguments in CALLS:
                    expected = await answer_of(direct[name], tool, arguments)
                    assert await answer_of(proxied, f"{name}__{tool}", arguments) == expected, (name, tool)
                bare = (await proxied.call_tool("kinds__bare")).structured_content
                assert bare == ([1, None, "three"] if mode == "auto" else {"result": [1, None, "three"]})
                missing = await proxied.call_tool("files__read_file", {"wrong": 1})
                assert (missing.is_error, missing.structured_content["code"]) == (True, "UNRESOLVED_ARGUMENT")

    asked = {f"{name}:{tool}" for name, tool, _ in CALLS} | {"kinds:bare"}
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < 4 * (len(CALLS) + 2):
            runs = await asyncio.to_thread(stack.json, "run", "list", "--limit", "500")
            found = [run for run in runs if run["workflow_type"] in asked]
    assert {run["workflow_type"] for run in found} == asked
    assert {run["status"] for run in found} == {"completed", "failed"}
    log = stack.pml("events", "dump")
    assert "kinds:echo" in log
    assert "hunter2" not in log


async def lists_the_same(direct: Direct, proxied: Client) -> None:
    """Each tool as its server lists it; what nobody allowed is not there."""
    listed = {tool.name: tool for tool in (await proxied.list_tools()).tools}
    for name, client in direct.items():
        for tool in (await client.list_tools()).tools:
            found = listed.pop(f"{name}__{tool.name}", None)
            if name == "git" and tool.name not in ("git_log", "git_show"):
                assert found is None
            else:
                assert found is not None
                fields = {"title", "description", "input_schema", "output_schema", "annotations"}
                assert found.model_dump(include=fields) == tool.model_dump(include=fields)
    assert {name.partition("_")[0] for name in listed} == {"pml", "trouble"}


async def test_what_a_client_sees_is_chosen(stack: Project) -> None:
    for choice, seen in (("proxy", {False}), ("pml", {True}), ("both", {True, False})):
        parameters = over_stdio(stack)
        parameters.args += ["--tools", choice]
        for server in (parameters, f"{address(stack)}?tools={choice}"):
            async with Client(server) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                assert {name.startswith("pml_") for name in names} == seen
                for name, arguments in (("pml_list_runs", {}), ("files__read_file", {"path": "a.txt"})):
                    if name in names:
                        assert not (await client.call_tool(name, arguments)).is_error
                    else:
                        with pytest.raises(MCPError, match="there is no tool"):
                            await client.call_tool(name, arguments)
    async with Client(f"{address(stack)}?tools=all") as client:
        with pytest.raises(MCPError, match="is one of proxy, pml, both"):
            await client.list_tools()


async def test_what_was_run_early_in_the_session_is_served(stack: Project) -> None:
    before = len(calls_of(stack))
    async with Client(over_stdio(stack)) as client:
        run = await called(client, "pml_execute", dag=CHAIN, per_layer_validation=True, wait_s=50)
        assert run["status"] == "waiting"
        answer = await client.call_tool("files__read_file", {"path": "a.txt"})
        assert answer.structured_content["text"] == "a file\n"
        runs = (await called(client, "pml_list_runs", session=run["session_id"]))["items"]
        found = next(row for row in runs if row["workflow_type"] == "files:read_file")
        assert found["hits"] == 1
        told = await called(client, "pml_get_run", run_id=found["run_id"], session=run["session_id"])
        assert told["tasks"][0]["served_by"] in ("speculation", "joined")
    reads = [line for line in calls_of(stack)[before:] if line["tool"] == "read_file"]
    assert len({line["call"] for line in reads}) == 1


async def test_a_person_approves_while_the_call_waits(stack: Project) -> None:
    async with Client(over_stdio(stack)) as client:
        waiting = asyncio.create_task(client.call_tool("files__delete_file", {"path": "b.txt"}))
        asked: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while not asked:
                asked = await asyncio.to_thread(stack.json, "approvals", "list")
        assert not waiting.done()
        assert (stack.files / "b.txt").exists()
        await asyncio.to_thread(
            stack.pml, "approvals", "approve", asked[0]["approval_id"], "--session", asked[0]["session_id"]
        )
        answer = await asyncio.wait_for(waiting, PATIENCE_S)

    assert (answer.is_error, answer.structured_content["path"]) == (False, "b.txt")
    assert not (stack.files / "b.txt").exists()


async def test_who_stops_to_wait_stops_nothing(stack: Project) -> None:
    def happened(what: str) -> bool:
        log = stack.folder / "trouble.log"
        return log.exists() and f'"what": "{what}"' in log.read_text()

    async with Client(over_stdio(stack)) as client:
        waiting = asyncio.create_task(client.call_tool("trouble__slow", {"seconds": 2}))
        await until(lambda: happened("slow"))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        steps: list[float] = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        many = [client.call_tool("trouble__echo", {"text": str(number)}) for number in range(8)]
        answers = await asyncio.gather(*many)
        assert [answer.content[0].text for answer in answers] == [str(number) for number in range(8)]
        await client.call_tool("trouble__echo", {"text": "x"}, progress_callback=told)
        assert steps == [1]
        await until(lambda: happened("slow ended"))
        assert not happened("slow cancelled")


def written(file: Path, text: str) -> None:
    """In one step: who watches it sees no half of it."""
    aside = file.with_suffix(".aside")
    aside.write_text(text)
    aside.replace(file)


async def test_clients_hear_that_the_tools_have_changed(stack: Project) -> None:
    """Both what an operator allows and what a server has."""
    permissions = stack.folder / "mcp-permissions.yaml"
    for server in (over_stdio(stack), address(stack)):
        written(permissions, PERMISSIONS)
        heard: list[Any] = []

        async def hear(message: Any, heard: list[Any] = heard) -> None:
            heard.append(message)

        def told(heard: list[Any] = heard) -> bool:
            return any(isinstance(message, types.ToolListChangedNotification) for message in heard)

        async with Client(server, mode="legacy", message_handler=hear) as client:
            assert client.server_capabilities.tools.list_changed
            await until_listed(client, "git__git_show")
            written(permissions, PERMISSIONS.replace('"git:git_show"', '"git:git_diff"'))
            await until(told)
            names = await names_of(client)
            assert ("git__git_diff" in names, "git__git_show" in names) == (True, False)
            refused = await client.call_tool("git__git_show", {"repo_path": ".", "revision": "HEAD"})
            assert refused.structured_content["code"] == "TOOL_NOT_APPROVED"
            assert "pml tools approve git:git_show" in refused.content[0].text
        async with Client(server) as client:
            assert client.server_capabilities.tools.list_changed
            async with client.listen(tools_list_changed=True) as changes:
                written(permissions, PERMISSIONS)
                # The change before may still be told: each is heard, and after the last the list is right.
                async with asyncio.timeout(PATIENCE_S):
                    await anext(changes)
                    while "git__git_show" not in await names_of(client):
                        await anext(changes)


async def test_a_tenant_gets_nothing_of_another_through_the_proxy(stack: Project) -> None:
    scopes = ("--scope", "runs:read", "--scope", "runs:write")
    mine, theirs, reader = (
        stack.json("token", "create", "agent:a", *allowed, "--tenant", tenant)["token"]
        for tenant, allowed in (("local", scopes), ("other", scopes), ("local", scopes[:2]))
    )
    meta = {"pml/session": "s1"}
    async with over_http(stack, mine) as client:
        assert not (await client.call_tool("trouble__echo", {"text": "a"}, meta=meta)).is_error
        runs = (await called(client, "pml_list_runs", session="s1"))["items"]
        assert [run["workflow_type"] for run in runs] == ["trouble:echo"]
    async with over_http(stack, theirs) as client:
        assert (await called(client, "pml_list_runs", session="s1"))["items"] == []
        asked = {"run_id": runs[0]["run_id"], "session": "s1", "task_id": "call"}
        assert (await client.call_tool("pml_get_task_result", asked)).is_error
        assert not (await client.call_tool("trouble__echo", {"text": "a"}, meta=meta)).is_error
        assert len((await called(client, "pml_list_runs", session="s1"))["items"]) == 1
    async with over_http(stack, reader) as client:
        answer = await client.call_tool("trouble__echo", {"text": "a"}, meta=meta)
        assert (answer.is_error, answer.structured_content["code"]) == (True, "NOT_ALLOWED")


CHAIN = {
    "name": "chain",
    "tasks": [
        {"id": "list", "tool": "files:list_dir", "arguments": {"path": "."}},
        {
            "id": "read",
            "tool": "files:read_file",
            "arguments": {"path": "a.txt"},
            "depends_on": ["list"],
        },
    ],
}


def calls_of(project: Project) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (project.folder / "calls.jsonl").read_text().splitlines()]


async def names_of(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def until_listed(client: Client, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while name not in await names_of(client):
            await asyncio.sleep(0.1)


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not happened():
            await asyncio.sleep(0.05)
