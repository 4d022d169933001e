"""The door for agents in front of a whole stack: the official client over both transports."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project, project
from tests.fixtures.project import shared_guest as shared_project

__all__ = ["project", "shared_project"]

pytestmark = [pytest.mark.integration]

PERMISSIONS = """\
tools:
  "files:delete_file": {scope: filesystem, approval: hil, effect: write, touches: ["files:{path}"]}
  "files:*": {scope: readonly, approval: auto, touches: ["files:{path}"]}
  "gate:*": {scope: readonly, approval: auto}
"""
GATE = Path(__file__).parents[2] / "servers" / "gate_server.py"
LARGE = "".join(f"line {number} of a large file é\n" for number in range(2_500))
JOB = """\
page = await mcp.files.read_file(path=args.path)
listed = await mcp.files.list_dir(path=".")
return {"text": page.text, "count": listed.count}
"""
COMPARE = """\
page = await mcp.files.read_file(path=args.path)
listed = await mcp.files.list_dir(path=".")
other = await mcp.files.read_file(path="a.txt")
return {"text": page.text, "other": other.text, "count": listed.count}
"""
READ = {"id": "read", "tool": "files:read_file", "arguments": {"path": "a.txt"}}
DELETE = {"id": "gone", "tool": "files:delete_file", "arguments": {"path": "b.txt"}}


@pytest.fixture(scope="module")
def stack(shared_project: Project) -> Project:
    """A stack that runs, with a tool that only a person lets run; all tests share it."""
    project = shared_project
    (project.folder / "mcp-permissions.yaml").write_text(PERMISSIONS)
    (project.files / "large.txt").write_text(LARGE)
    for name in ("b.txt", "c.txt"):
        (project.files / name).write_text("to be deleted\n")
    project.add_program("gate", [str(GATE), str(project.folder)])
    project.pml("up", "--detach")
    return project


@lru_cache(maxsize=1)
def address(project: Project) -> str:
    """Where a project's gateway answers agents; it keeps its address while the stack runs."""
    part = next(part for part in project.json("status")["parts"] if part["name"] == "gateway")
    return f"{part['address']}/mcp"


def over_stdio(project: Project) -> StdioServerParameters:
    variables = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), **project.environment}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "pml.streams.cli", "mcp"], cwd=project.folder, env=variables
    )


@asynccontextmanager
async def over_http(project: Project, token: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(address(project), http_client=http)) as client,
    ):
        yield client


async def called(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers that does not fail."""
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.structured_content
    told: dict[str, Any] = answer.structured_content
    return told


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """The code of the error that a tool answers with."""
    answer = await client.call_tool(name, arguments)
    assert answer.is_error, answer.structured_content
    code: str = answer.structured_content["code"]
    return code


async def until(client: Client, run: dict[str, Any], status: str) -> dict[str, Any]:
    """The run once it has this status."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            told = await called(client, "pml_get_run", run_id=run["run_id"], session=run["session_id"])
            if told["status"] == status:
                return told
            assert told["status"] in ("queued", "running", "waiting"), told
            await asyncio.sleep(0.1)


async def test_an_agent_runs_reads_and_decides_over_every_transport(stack: Project) -> None:
    for server in (over_stdio(stack), address(stack)):
        for mode in ("auto", "legacy"):
            await an_agent(stack, server, mode)


async def an_agent(stack: Project, server: StdioServerParameters | str, mode: str) -> None:
    """All that one does, and then another one that finds it."""
    async with Client(server, mode=mode) as client:
        await runs_a_program(client)
        await pages_a_large_result(client)
        await learns_and_runs_it_again(client)
        await waits_at_checkpoints(client, stack)
        await is_run_once(client)
        await waits_for_a_person(client, stack)
        await detaches(client, stack)
        await is_refused(client)
        run = await called(client, "pml_execute", dag={"tasks": [READ]}, wait_s=50)
    async with Client(server, mode=mode) as client:
        found = await until(client, run, "completed")
        assert found["tasks"] == run["tasks"]
        async with asyncio.timeout(PATIENCE_S):
            while run["run_id"] not in await listed(client):
                await asyncio.sleep(0.1)


async def listed(client: Client) -> list[str]:
    return [row["run_id"] for row in (await called(client, "pml_list_runs", limit=50))["items"]]


async def runs_a_program(client: Client) -> None:
    steps: list[float] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)
        assert message is not None
        assert "served early" in message

    answer = await client.call_tool(
        "pml_execute",
        {"code": JOB, "context": {"path": "a.txt"}, "wait_s": 50},
        progress_callback=told,
    )

    run = answer.structured_content
    assert (run["status"], run["result"]["text"]) == ("completed", "a file\n")
    assert run["dag"].pop("speedup") > 0
    assert run["dag"] == {
        "mode": "dag",
        "reason": None,
        "tasks_count": 2,
        "layers_count": 2,
        "tools_discovered": ["files:read_file", "files:list_dir"],
    }
    assert answer.content[0].text.startswith(f"{run['run_id']} ")
    assert steps == sorted(set(steps))
    assert steps[-1] == 2
    again = await called(client, "pml_get_run", run_id=run["run_id"], session=run["session_id"])
    assert again["dag"].pop("speedup") > 0
    assert (again["status"], again["dag"], again["tasks"]) == ("completed", run["dag"], run["tasks"])


async def pages_a_large_result(client: Client) -> None:
    task = {**READ, "arguments": {"path": "large.txt"}}
    run = await called(client, "pml_execute", dag={"tasks": [task]}, wait_s=50)
    asked = {"run_id": run["run_id"], "session": run["session_id"], "task_id": "read"}
    pages = [await called(client, "pml_get_task_result", **asked, format="raw")]
    while (offset := pages[-1]["next_offset"]) is not None:
        pages.append(await called(client, "pml_get_task_result", **asked, format="raw", offset=offset))

    whole = "".join(page["text"] for page in pages)
    assert len(pages) > 3
    assert len(whole) == pages[0]["total"]
    assert yaml.safe_load(whole)["structured"]["text"] == LARGE
    assert await refused(client, "pml_get_task_result", **{**asked, "task_id": "x"}) == "NO_SUCH_TASK"
    assert await refused(client, "pml_get_task_result", **asked, offset=10**6) == "INVALID_ARGUMENTS"


async def learns_and_runs_it_again(client: Client) -> None:
    """Discover, execute, and the same intent once more with other values: served early, and paged."""
    found = await called(client, "pml_discover", intent="read a text file", filter={"type": "tool"})
    assert "files:read_file" in [item["id"] for item in found["items"]]
    intent = "compare a page with its neighbours"
    first = await called(
        client, "pml_execute", code=COMPARE, intent=intent, context={"path": "a.txt"}, wait_s=50
    )
    assert (first["status"], first["result"]["text"]) == ("completed", "a file\n")

    capability = await until_learned(client, intent)
    assert [item["name"] for item in capability["parameters"] if item["required"]] == ["path"]
    # A session of its own: in that of the connection everything might have been served before.
    given = {"intent": intent, "context": {"path": "large.txt"}, "session": f"again{id(client)}"}
    again = await called(client, "pml_execute", **given, wait_s=50)
    assert (again["status"], again["result"]["_truncated"]) == ("completed", True)
    # In one session the neighbour that ran early for the first run is there for the second as well.
    assert {"speculation", "joined", "repeat"} & {task["served_by"] for task in again["tasks"]}
    asked = {"run_id": again["run_id"], "session": again["session_id"], "task_id": "n1", "format": "raw"}
    page = await called(client, "pml_get_task_result", **asked)
    assert page["next_offset"] is not None
    assert page["total"] > len(LARGE)
    missing = await client.call_tool(
        "pml_execute", {"intent": intent, "context": {"file": "a"}, "wait_s": 50}
    )
    assert missing.structured_content["code"] == "MISSING_PARAMETER"
    assert "path" in missing.structured_content["message"]
    alone = await called(client, "pml_execute", intent=intent)
    assert (alone["status"], alone["run_id"], alone["suggestions"][0]["id"]) == (
        *("suggestions", None),
        capability["id"],
    )
    unmet = await client.call_tool(
        "pml_execute", {"intent": "translate a poem into French", "context": {"path": "a"}, "wait_s": 50}
    )
    assert (unmet.is_error, unmet.structured_content["code"]) == (True, "NO_CAPABILITY")
    assert unmet.structured_content["details"]["run"]["suggestions"]


async def until_learned(client: Client, intent: str) -> dict[str, Any]:
    """The capability that was learned for an intent."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = await called(client, "pml_discover", intent=intent, filter={"type": "capability"})
            for item in found["items"]:
                if item["name"] == "compare-a-page-with-its-neighbours":
                    return dict(item)
            await asyncio.sleep(0.2)


async def waits_at_checkpoints(client: Client, project: Project) -> None:
    chain = yaml.safe_load((project.folder / "chain.yaml").read_text())
    waiting = [
        await called(client, "pml_execute", dag=chain, per_layer_validation=True, wait_s=50) for _ in range(3)
    ]
    for run in waiting:
        assert (run["status"], run["waits_for"][0]["kind"]) == ("waiting", "checkpoint")
    first, second, third = ({"run_id": run["run_id"], "session": run["session_id"]} for run in waiting)

    went_on = await called(client, "pml_continue", **first, reason="fine", wait_s=50)
    assert went_on["status"] == "completed"
    assert await refused(client, "pml_continue", **first) == "NOT_WAITING"
    replaced = await called(client, "pml_replan", **second, tasks=[{**READ, "id": "other"}], wait_s=50)
    assert replaced["status"] == "completed"
    assert "other" in [task["task_id"] for task in replaced["tasks"]]
    stopped = await called(client, "pml_abort", **third, reason="enough", wait_s=50)
    assert stopped["status"] == "aborted"


async def is_run_once(client: Client) -> None:
    same = {"dag": {"tasks": [READ]}, "session": f"s{id(client)}", "wait_s": 50}
    same["run_id"] = f"mine{id(client)}"
    first, second = [await called(client, "pml_execute", **same) for _ in range(2)]

    assert (first["run_id"], first["status"]) == (same["run_id"], "completed")
    assert second == first
    other = {**same, "dag": {"tasks": [{**READ, "id": "x"}]}}
    assert await refused(client, "pml_execute", **other) == "CONFLICT"


async def waits_for_a_person(client: Client, project: Project) -> None:
    run = await called(client, "pml_execute", dag={"tasks": [DELETE]}, wait_s=50)
    wait = run["waits_for"][0]
    assert (run["status"], wait["kind"], wait["tool"]) == ("waiting", "approval", "files:delete_file")
    assert (project.files / "b.txt").exists()

    words = next(part for part in wait["how"].split("`") if part.startswith("pml approvals approve"))
    project.pml(*words.split()[1:])
    done = await until(client, run, "completed")
    assert done["tasks"][0]["status"] == "completed"
    assert not (project.files / "b.txt").exists()
    (project.files / "b.txt").write_text("to be deleted\n")


async def detaches(client: Client, stack: Project) -> None:
    """Whoever stops to wait, by its patience or by cancelling, stops nothing."""
    queued = await called(client, "pml_execute", dag={"tasks": [READ]}, wait_s=0)
    assert queued["status"] == "queued"
    assert queued["poll_after_ms"] > 0
    await until(client, queued, "completed")

    gate = f"gate{id(client)}"
    held = {"tool": "gate:wait_for_file", "arguments": {"name": gate}}
    tasks = [{**READ, "id": "n0"}, {**held, "id": "n1"}, {**READ, "id": "n2"}]
    for before, task in pairwise(tasks):
        task["depends_on"] = [before["id"]]
    begun = asyncio.Event()

    async def told(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    run = {"run_id": f"left{id(client)}", "session_id": f"left{id(client)}"}
    arguments = {"dag": {"tasks": tasks}, "run_id": run["run_id"], "session": run["run_id"], "wait_s": 50}
    waiting = asyncio.create_task(client.call_tool("pml_execute", arguments, progress_callback=told))
    await asyncio.wait_for(begun.wait(), PATIENCE_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    (stack.folder / gate).touch()
    done = await until(client, run, "completed")
    assert len(done["tasks"]) == 3


async def is_refused(client: Client) -> None:
    wrong = {"dag": {"tasks": [{"id": "a", "tool": "nope:x"}]}, "run_id": f"wrong{id(client)}"}
    wrong["session"] = wrong["run_id"]
    assert await refused(client, "pml_execute", **wrong) == "UNKNOWN_TOOL"
    asked = {"run_id": wrong["run_id"], "session": wrong["run_id"]}
    assert await refused(client, "pml_get_run", **asked) == "UNKNOWN_TOOL"
    assert await refused(client, "pml_get_run", run_id="nobody", session="nobody") == "NOT_FOUND"
    assert await refused(client, "pml_abort", run_id="nobody", session="nobody") == "NO_SUCH_RUN"


async def test_a_tenant_sees_nothing_of_another(stack: Project) -> None:
    scopes = ("--scope", "runs:read", "--scope", "runs:write")
    mine, theirs = (
        stack.json("token", "create", "agent:a", *scopes, "--tenant", tenant)["token"]
        for tenant in ("local", "other")
    )
    async with over_http(stack, mine) as client:
        run = await called(client, "pml_execute", dag={"tasks": [READ]}, session="s1", wait_s=50)
        assert run["status"] == "completed"
    named = {"run_id": run["run_id"], "session": "s1"}
    async with over_http(stack, theirs) as client:
        for asked in (named, {"run_id": run["run_id"]}):
            assert await refused(client, "pml_get_run", **asked) == "NOT_FOUND"
            assert await refused(client, "pml_get_task_result", **asked, task_id="read") == "NOT_FOUND"
            for tool in ("pml_continue", "pml_abort"):
                assert await refused(client, tool, **asked) == "NO_SUCH_RUN"
        assert await refused(client, "pml_replan", **named, tasks=[READ]) == "NO_SUCH_RUN"
        assert (await called(client, "pml_list_runs"))["items"] == []
        assert (await called(client, "pml_list_runs", session="s1"))["items"] == []
        same = await called(client, "pml_execute", dag={"tasks": [READ]}, **named, wait_s=50)
        assert same["status"] == "completed"


def test_without_a_broker_it_says_so(project: Project) -> None:
    with project.start("mcp") as process:
        output, errors = process.communicate("", timeout=PATIENCE_S)

    assert (process.returncode, output) == (4, "")
    assert errors.startswith("pml: ")
    assert "pml up" in errors
