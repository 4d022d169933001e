"""One MCP server: started, listed, called, cancelled, killed and started again, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from structlog.testing import capture_logs

from pml.schemas.catalog import ServerTools
from pml.streams.bridge.results import answer_of, failure_of
from pml.streams.bridge.server import Server
from pml.streams.bridge.server_specs import ServerSpec, StdioServer
from pml.streams.bridge.session import reason
from pml.streams.bridge.unavailable import ServerUnavailable
from tests.fixtures.patience import PATIENCE_S
from tests.streams.bridge.conftest import SERVERS, EventLog, NewServer, spec

MAX_BYTES = 64 * 1024


async def until(condition: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.01)


async def ask(server: Server, tool: str, **arguments: Any) -> Any:
    async with server.session("t", "s") as session:
        try:
            return answer_of(await session.call(tool, arguments, {"pml/call-id": f"call_{tool}"}), MAX_BYTES)
        except ServerUnavailable:
            raise
        except Exception as error:
            return failure_of(error, server.name)


async def test_mcp_server_time_is_listed_and_answers_with_structure(new_server: NewServer) -> None:
    server = new_server(spec("-m", "mcp_server_time"), "time")
    record = await server.start()
    assert (record.status, [tool.name for tool in record.tools]) == (
        "listed",
        ["convert_time", "get_current_time"],
    )
    tool = record.tools[1]
    assert tool.hints.read_only is True
    assert len(tool.definition) == 64
    status, result, error = await ask(server, "get_current_time", timezone="Asia/Tokyo")
    assert (status, error) == ("ok", None)
    assert result.structured["timezone"] == "Asia/Tokyo"
    assert result.content[0]["type"] == "text"
    await server.close()


async def test_mcp_server_git_reads_this_repository(new_server: NewServer) -> None:
    server = new_server(spec("-m", "mcp_server_git"), "git")
    await server.start()
    repository = str(Path(__file__).parents[3])
    status, result, _ = await ask(server, "git_log", repo_path=repository, max_count=1)
    assert status == "ok"
    assert "Commit" in str(result.content)
    status, _, error = await ask(server, "git_log", repo_path="/nowhere/at/all")
    assert (status, error.code) == ("error", "TOOL_ERROR")
    await server.close()


async def test_a_definition_hash_follows_description_and_schemas(
    new_server: NewServer, raw: ServerSpec
) -> None:
    first, second = new_server(raw, "raw"), new_server(raw, "raw")
    assert (await first.start()).tools == (await second.start()).tools
    assert len({tool.definition for tool in first.record.tools}) == len(first.record.tools)
    await first.close()
    await second.close()


@pytest.mark.parametrize(
    ("broken", "words", "start_timeout_s"),
    [
        (spec(command="/no/such/command"), "does not exist", PATIENCE_S),
        (spec("-c", "raise SystemExit(3)"), "ended or answered wrongly", PATIENCE_S),
        (spec("-c", "import time; time.sleep(60)"), "did not answer within", 1),
    ],
)
async def test_a_server_that_cannot_be_started_is_unavailable_with_the_reason(
    new_server: NewServer,
    listings: list[ServerTools],
    broken: ServerSpec,
    words: str,
    start_timeout_s: float,
) -> None:
    server = new_server(broken, "broken", start_timeout_s=start_timeout_s)
    record = await server.start()
    assert record.status == "unavailable"
    assert words in str(record.error)
    assert listings == [record]
    await server.close()


async def test_all_content_kinds_are_kept(
    new_server: NewServer, trouble: ServerSpec, raw: ServerSpec
) -> None:
    server, other = new_server(trouble), new_server(raw, "raw")
    _, result, _ = await ask(server, "kinds")
    assert [block["type"] for block in result.content] == ["text", "image", "resource_link"]
    assert result.content[1]["mimeType"] == "image/png"
    _, result, _ = await ask(other, "audio")
    assert [block["type"] for block in result.content] == ["audio", "resource"]
    assert result.content[1]["resource"]["text"] == "b"
    await server.close()
    await other.close()


@pytest.mark.parametrize(
    ("tool", "code", "kind"),
    [
        ("wrong_structure", "RESULT_INVALID", "VALIDATION"),
        ("no_structure", "RESULT_INVALID", "VALIDATION"),
        ("lone_surrogate", "RESULT_UNREADABLE", "VALIDATION"),
        ("big_integer", "RESULT_UNREADABLE", "VALIDATION"),
        ("wrong_shape", "RESULT_UNREADABLE", "VALIDATION"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error_and_the_session_goes_on(
    new_server: NewServer, raw: ServerSpec, tool: str, code: str, kind: str
) -> None:
    server = new_server(raw, "raw")
    async with asyncio.timeout(PATIENCE_S):
        status, result, error = await ask(server, tool)
        assert (status, result, error.code, error.type) == ("error", None, code, kind)
        assert (await ask(server, "good"))[0] == "ok"
    await server.close()


async def test_requests_of_the_server_are_declined_clearly(new_server: NewServer, raw: ServerSpec) -> None:
    server = new_server(raw, "raw")
    _, _, error = await ask(server, "sampling")
    assert "not supported" in error.message
    await server.close()


async def test_tool_errors_carry_the_contracts_types(new_server: NewServer, connected: ServerSpec) -> None:
    server = new_server(connected)
    for message, kind, retryable in [
        ("Connection refused", "NETWORK", True),
        ("it timed out", "TIMEOUT", True),
        ("permission denied", "PERMISSION", False),
        ("no such file", "NOT_FOUND", False),
    ]:
        _, _, error = await ask(server, "fail", message=message)
        assert (error.type, error.retryable) == (kind, retryable)
    _, _, error = await ask(server, "not_there")
    assert (error.code, error.type) == ("TOOL_ERROR", "NOT_FOUND")
    _, _, error = await ask(server, "echo", wrong=1)
    assert error.type == "VALIDATION"
    await server.close()


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 300_000, 100_000_000])
async def test_a_result_too_large_is_an_error_and_the_session_goes_on(
    new_server: NewServer, connected: ServerSpec, size: int
) -> None:
    server = new_server(connected)
    async with server.session("t", "s") as session:
        first = session
    _, result, error = await ask(server, "big", size=size)
    assert (result, error.code) == (None, "RESULT_TOO_LARGE")
    assert (await ask(server, "echo", text="still here"))[0] == "ok"
    async with server.session("t", "s") as session:
        assert session is first
    await server.close()


async def test_a_long_answer_with_its_id_at_the_end_is_matched_too(
    new_server: NewServer, raw: ServerSpec
) -> None:
    server = new_server(raw, "raw")
    async with asyncio.timeout(PATIENCE_S):
        _, _, error = await ask(server, "long_id_last", size=1_000_000)
    assert error.code == "RESULT_TOO_LARGE"
    await server.close()


async def test_cancelling_a_call_tells_the_server_and_the_session_survives(
    new_server: NewServer, connected: ServerSpec, events: EventLog
) -> None:
    server = new_server(connected)
    call = asyncio.create_task(ask(server, "slow", seconds=60))
    await until(lambda: events.entries("slow"))
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await until(lambda: events.entries("slow cancelled"))
    assert (await ask(server, "echo", text="x"))[0] == "ok"
    assert len({entry["pid"] for entry in events.entries()}) == 1
    await server.close()


async def test_a_server_that_dies_fails_its_calls_and_is_started_again(
    new_server: NewServer, trouble: ServerSpec, events: EventLog
) -> None:
    server = new_server(trouble)
    slow = asyncio.create_task(ask(server, "slow", seconds=60))
    await until(lambda: events.entries("slow"))
    _, _, error = await ask(server, "die")
    assert (error.code, error.type, error.retryable) == ("CONNECTION_LOST", "NETWORK", True)
    assert (await slow)[2].code == "CONNECTION_LOST"
    assert (await ask(server, "echo", text="x"))[0] == "ok"
    assert len({entry["pid"] for entry in events.entries()}) == 2
    await server.close()


async def test_a_server_that_keeps_dying_is_left_alone_for_a_while(
    new_server: NewServer, trouble: ServerSpec
) -> None:
    server = new_server(spec("-c", "raise SystemExit(1)"), "broken")
    for _ in range(5):
        with pytest.raises(ServerUnavailable, match="ended or answered wrongly"):
            await ask(server, "echo")
    with pytest.raises(ServerUnavailable, match="again and again"):
        await ask(server, "echo")
    await server.close()


async def test_isolation_says_who_shares_a_process(
    new_server: NewServer, trouble: ServerSpec, events: EventLog
) -> None:
    for isolation, processes in (("shared", 1), ("tenant", 2), ("session", 3)):
        events.path.unlink(missing_ok=True)
        server = new_server(trouble.model_copy(update={"isolation": isolation}))
        await server.start()
        for tenant, session_id in (("a", "1"), ("a", "2"), ("b", "1"), ("a", "1")):
            async with server.session(tenant, session_id) as session:
                await session.call("echo", {"text": "x"}, {})
        assert len({entry["pid"] for entry in events.entries("echo")}) == processes
        await server.close()


async def test_many_callers_share_one_start(
    new_server: NewServer, trouble: ServerSpec, events: EventLog
) -> None:
    server = new_server(trouble)
    await asyncio.gather(*(ask(server, "echo", text="x") for _ in range(10)))
    assert len({entry["pid"] for entry in events.entries("echo")}) == 1
    await server.close()


async def test_what_the_server_says_on_stderr_is_in_its_log_and_nowhere_else(
    new_server: NewServer, raw: ServerSpec, tmp_path: Path
) -> None:
    server = new_server(raw, "raw")
    assert (await ask(server, "good"))[0] == "ok", "a line printed by mistake does no harm"
    path = tmp_path / "log" / "mcp" / "raw.log"
    await until(lambda: path.exists() and "for the log" in path.read_text())
    assert "printed by mistake" in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    await server.close()


async def test_a_hanging_server_is_ended_with_everything_it_started(
    new_server: NewServer, trouble: ServerSpec, events: EventLog
) -> None:
    server = new_server(trouble)
    call = asyncio.create_task(ask(server, "hang"))
    await until(lambda: events.entries("hang"))
    await server.close()
    status, _, error = await call
    assert (status, error.code) == ("error", "CONNECTION_LOST")
    with pytest.raises(ProcessLookupError):
        os.kill(events.entries("hang")[0]["pid"], 0)


HOLDER = """
import os, subprocess, sys, time
from pml.streams.bridge.reaper import Reaper
reaper = Reaper()
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
reaper.hold(sleeper.pid)
print(sleeper.pid, flush=True)
time.sleep(600)
"""


async def test_servers_die_with_a_bridge_that_is_killed() -> None:
    bridge = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLDER, stdout=PIPE)
    assert bridge.stdout is not None
    pid = int(await bridge.stdout.readline())
    bridge.kill()
    await bridge.wait()
    await until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


async def test_an_error_of_the_protocol_keeps_its_words() -> None:
    status, _, error = failure_of(MCPError(-32603, "database connection lost"), "x")
    assert error is not None
    assert (status, error.type, error.code) == ("error", "NETWORK", "TOOL_ERROR")


async def test_a_server_that_says_that_its_tools_changed_is_listed_again(
    new_server: NewServer, listings: list[ServerTools], tmp_path: Path
) -> None:
    """One of 2026-07-28 says it only to who listens."""
    grow = tmp_path / "grow"
    server = new_server(spec(str(SERVERS / "kinds_server.py"), str(grow)), "kinds")
    await server.start()
    assert "grown" not in [tool.name for tool in listings[-1].tools]
    grow.touch()
    async with server.session("t", "s") as session:
        async with asyncio.timeout(PATIENCE_S):
            while "grown" not in [tool.name for tool in listings[-1].tools]:
                await session.call("empty", {}, {})
                await asyncio.sleep(0.05)
    await server.close()


REPEATS_ITS_TOKEN = """
import json, os, sys
error = {"code": -32000, "message": f"level {os.environ['DEBUG']}: bad credentials {os.environ['TOKEN']}"}
for line in sys.stdin:
    answer = {"jsonrpc": "2.0", "id": json.loads(line).get("id"), "error": error}
    print(json.dumps(answer), flush=True)
"""


async def test_nobody_is_told_what_a_server_was_started_with(new_server: NewServer) -> None:
    """A server that repeats its token when it refuses to start: the catalog is for every tenant."""
    given = {"command": sys.executable, "args": ["-c", REPEATS_ITS_TOKEN]}
    server = new_server(
        StdioServer.model_validate(given | {"env": {"TOKEN": "tulip-meadow-7", "DEBUG": "1"}})
    )
    with capture_logs() as logged:
        record = await server.start()
    assert record.error is not None
    assert "bad credentials [REDACTED]" in record.error
    assert "level 1" in record.error, "what is short is no secret"
    with pytest.raises(ServerUnavailable) as refused:
        await ask(server, "add", a=1)
    assert "server not started" in [line["event"] for line in logged]
    assert "tulip-meadow-7" not in f"{record} {refused.value.message} {logged}"


def test_what_a_server_said_is_without_what_looks_like_a_secret() -> None:
    said = reason(RuntimeError("level 1, Authorization: Bearer abcdef0123456789abcdef"))
    assert "abcdef0123456789" not in said
    assert "level 1" in said
