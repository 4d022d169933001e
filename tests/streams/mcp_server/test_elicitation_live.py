"""A person at the client is asked: a whole stack, the official client, both transports, both eras."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestFormParams, ElicitResult

from pml.streams.local_person import local_person
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project
from tests.fixtures.project import guest as project
from tests.streams.mcp_server.test_live import PERMISSIONS, address, over_stdio, until

__all__ = ["project"]

pytestmark = [pytest.mark.integration]

LIST = {"id": "seen", "tool": "files:list_dir", "arguments": {"path": "."}}
DELETE = {"id": "gone", "tool": "files:delete_file", "arguments": {"path": "b.txt"}}
FIRST = {"type": "reference", "expression": "seen.entries[1].path"}
COMPUTED = {"id": "gone", "tool": "files:delete_file", "arguments": {"path": FIRST}}
SCOPES = ("--scope", "runs:read", "--scope", "runs:write")
NEW, OLD = "auto", "legacy"


class Somebody:
    """Who sits at a client; answers in this order, and remembers what was shown."""

    def __init__(self, *answers: ElicitResult) -> None:
        self.answers = list(answers)
        self.shown: list[ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        self.shown.append(params)
        return self.answers.pop(0)


def says(decision: str, **more: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"decision": decision, **more})


@pytest.fixture
def stack(project: Project) -> Project:
    """A stack whose operator lets clients over HTTP ask people, too."""
    (project.folder / "mcp-permissions.yaml").write_text(PERMISSIONS)
    project.environment["PML_MCP__ELICITATION"] = "on"
    project.pml("up", "--detach")
    return project


def put_back(stack: Project) -> None:
    (stack.files / "b.txt").write_text("to be deleted\n")


def there(stack: Project) -> bool:
    return (stack.files / "b.txt").exists()


@asynccontextmanager
async def stdio(stack: Project, mode: str, somebody: Somebody) -> AsyncIterator[Client]:
    async with Client(over_stdio(stack), mode=mode, elicitation_callback=somebody) as client:
        yield client


def http(token: str) -> Callable[..., Any]:
    @asynccontextmanager
    async def connect(stack: Project, mode: str, somebody: Somebody) -> AsyncIterator[Client]:
        async with httpx2.AsyncClient(
            headers={"authorization": f"Bearer {token}"}, timeout=PATIENCE_S
        ) as web:
            server = streamable_http_client(address(stack), http_client=web)
            async with Client(server, mode=mode, elicitation_callback=somebody) as client:
                yield client

    return connect


async def execute(client: Client, *tasks: dict[str, Any]) -> dict[str, Any]:
    answer = await client.call_tool("pml_execute", {"dag": {"tasks": list(tasks)}, "wait_s": 50})
    told: dict[str, Any] = answer.structured_content
    return told


def settled(stack: Project, run_id: str, session: str) -> list[tuple[str, str, str]]:
    rows = stack.json("approvals", "list", "--all", "--session", session)
    return [(row["status"], row["decided_by"], row["via"]) for row in rows if row["run_id"] == run_id]


async def test_a_person_at_the_client_decides_over_every_transport(stack: Project) -> None:
    token = stack.json("token", "create", "person:ada", *SCOPES, "--scope", "approvals:write")["token"]
    for connect, who in ((stdio, local_person()), (http(token), "person:ada")):
        for mode in (NEW, OLD):
            await approves(stack, connect, mode, who)
            if (connect, mode) == (stdio, OLD):
                continue  # each client is a process of its own; over HTTP both eras are tried whole
            await rejects(stack, connect, mode)
            await declines(stack, connect, mode)
            await is_asked_again_or_not(stack, connect, mode)
            await approves_a_proxied_call(stack, connect, mode)
            await is_overtaken(stack, connect, mode)


async def approves(stack: Project, connect: Any, mode: str, who: str) -> None:
    put_back(stack)
    somebody = Somebody(says("approve", comment="it is old"))
    async with connect(stack, mode, somebody) as client:
        run = await execute(client, LIST, DELETE)
    assert (run["status"], there(stack)) == ("completed", False)
    (form,) = somebody.shown
    assert '- gone: write files:delete_file {"path":"b.txt"}' in form.message
    assert "files:b.txt" in form.message
    assert list(form.requested_schema["properties"]) == ["decision", "comment"]
    assert settled(stack, run["run_id"], run["session_id"]) == [("granted", who, "elicitation")]


async def rejects(stack: Project, connect: Any, mode: str) -> None:
    put_back(stack)
    async with connect(stack, mode, Somebody(says("reject", comment="not that one"))) as client:
        told = await execute(client, LIST, DELETE)
    assert told["code"] == "APPROVAL_REJECTED"
    assert "not that one" in told["message"]
    assert there(stack)


async def declines(stack: Project, connect: Any, mode: str) -> None:
    """Nothing is decided: the run waits, and somebody else may still say it."""
    put_back(stack)
    async with connect(stack, mode, Somebody(ElicitResult(action="decline"))) as client:
        run = await execute(client, LIST, DELETE)
        assert (run["status"], run["waits_for"][0]["kind"]) == ("waiting", "approval")
        stack.pml("approvals", "approve", run["waits_for"][0]["id"], "--session", run["session_id"])
        await until(client, run, "completed")
    assert not there(stack)


async def is_asked_again_or_not(stack: Project, connect: Any, mode: str) -> None:
    """Arguments that nobody knows yet: a yes to them, or another question once they are known."""
    for somebody in (Somebody(says("approve"), says("approve")), Somebody(says("approve", computed=True))):
        put_back(stack)
        async with connect(stack, mode, somebody) as client:
            run = await execute(client, LIST, COMPUTED)
        assert (run["status"], there(stack), somebody.answers) == ("completed", False, [])
        assert "path from seen.entries[1].path" in somebody.shown[0].message
        assert all('"path":"b.txt"' in form.message for form in somebody.shown[1:])


async def approves_a_proxied_call(stack: Project, connect: Any, mode: str) -> None:
    put_back(stack)
    answers = (says("approve"), says("reject"), ElicitResult(action="cancel"))
    async with connect(stack, mode, Somebody(*answers[:2])) as client:
        answer = await client.call_tool("files__delete_file", {"path": "b.txt"})
        assert (answer.is_error, answer.structured_content["path"]) == (False, "b.txt")
        put_back(stack)
        refused = await client.call_tool("files__delete_file", {"path": "b.txt"})
        assert (refused.is_error, refused.structured_content["code"]) == (True, "APPROVAL_REJECTED")
    assert there(stack)
    if mode == NEW:
        async with connect(stack, mode, Somebody(answers[2])) as client:
            pending = await client.call_tool("files__delete_file", {"path": "b.txt"})
        assert pending.structured_content["code"] == "APPROVAL_PENDING"


class Overtaken(Somebody):
    """Looks at the form while somebody else decides."""

    def __init__(self, stack: Project) -> None:
        super().__init__(says("reject"))
        self.stack = stack

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        approval_id, _, run_id = params.message.splitlines()[-1].split(",")[0].split()
        session = await self._session(run_id)
        await asyncio.to_thread(self.stack.pml, "approvals", "approve", approval_id, "--session", session)
        return await super().__call__(context, params)

    async def _session(self, run_id: str) -> str:
        rows: list[dict[str, Any]] = []
        async with asyncio.timeout(PATIENCE_S):
            while not rows:
                found = await asyncio.to_thread(self.stack.json, "approvals", "list", "--all")
                rows = [row for row in found if row["run_id"] == run_id]
        return str(rows[0]["session_id"])


async def is_overtaken(stack: Project, connect: Any, mode: str) -> None:
    """What somebody else has said holds, and the call is answered all the same."""
    put_back(stack)
    async with connect(stack, mode, Overtaken(stack)) as client:
        run = await execute(client, LIST, DELETE)
        assert run["status"] in {"completed", "running"}
        await until(client, run, "completed")
        assert not there(stack)
        put_back(stack)
    async with connect(stack, mode, Overtaken(stack)) as client:
        answer = await client.call_tool("files__delete_file", {"path": "b.txt"})
        assert answer.structured_content.get("path") == "b.txt" or mode == NEW
    assert not there(stack) or mode == NEW


async def test_an_agents_token_asks_nobody(stack: Project) -> None:
    put_back(stack)
    token = stack.json("token", "create", "agent:a", *SCOPES)["token"]
    for mode in (NEW, OLD):
        somebody = Somebody()
        async with http(token)(stack, mode, somebody) as client:
            run = await execute(client, LIST, DELETE)
        assert (run["status"], somebody.shown) == ("waiting", [])
    assert there(stack)
