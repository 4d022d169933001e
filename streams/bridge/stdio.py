"""The stdio transport under the MCP SDK's client: bounded lines, a guarded process, its log in a file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

import anyio
import mcp_types as types
from anyio.abc import ByteReceiveStream, ByteSendStream, Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from pml.streams.bridge.lines import EDGE_BYTES, LineReader, LongLine, answered_id
from pml.streams.bridge.reaper import Reaper
from pml.streams.bridge.secret_values import NO_SECRETS, Passage, SecretValues
from pml.streams.bridge.server_log import ServerLog
from pml.streams.bridge.server_specs import StdioServer

# Outside the range that JSON-RPC reserves: nobody else's error is taken for ours.
RESULT_TOO_LARGE = 31_001
RESULT_UNREADABLE = 31_002
# A server that has read the end of its input has this long to tidy up, as in the SDK's own client.
EXIT_GRACE_S = 2.0
KILL_GRACE_S = 2.0
EXIT_POLL_S = 0.02

Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
_BROKEN = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@dataclass(frozen=True, slots=True)
class StdioOptions:
    """What a transport needs besides the server's command."""

    line_max_bytes: int
    log: ServerLog
    reaper: Reaper
    secrets: SecretValues = NO_SECRETS


@asynccontextmanager
async def stdio_transport(
    spec: StdioServer, options: StdioOptions, gone: anyio.Event
) -> AsyncGenerator[Streams, None]:
    """Start the server and connect to it; `gone` is set when its output ends.

    Raises:
        OSError: the command cannot be started.
    """
    options = replace(options, secrets=spec.secrets())
    process = await anyio.open_process(
        spec.command_line(),
        env=get_default_environment() | spec.environment(),
        cwd=spec.cwd,
        start_new_session=True,
    )
    received, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbox, to_send = anyio.create_memory_object_stream[SessionMessage](0)
    assert process.stdin
    assert process.stdout
    assert process.stderr
    async with anyio.create_task_group() as tasks, received, inbox, outbox, to_send:
        try:
            options.reaper.hold(process.pid)
            tasks.start_soon(_read, process.stdout, received, options, gone)
            tasks.start_soon(_write, to_send, process.stdin, gone)
            tasks.start_soon(_keep_log, process.stderr, options)
            yield inbox, outbox
        finally:
            with anyio.CancelScope(shield=True):
                inbox.close()
                await _end(process)
                options.reaper.release(process.pid)
            tasks.cancel_scope.cancel()


async def _read(
    stdout: ByteReceiveStream,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    options: StdioOptions,
    gone: anyio.Event,
) -> None:
    """Deliver messages; once the session is closed, read on, so that a server with a full pipe can end."""
    lines = LineReader(options.line_max_bytes)
    try:
        with suppress(*_BROKEN):
            while True:
                for line in lines.feed(await stdout.receive()):
                    await _deliver(line, received, options)
    finally:
        received.close()
        gone.set()


async def _deliver(
    line: bytes | LongLine,
    received: MemoryObjectSendStream[SessionMessage | Exception],
    options: StdioOptions,
) -> None:
    message = _told(message_of(line), line, options.secrets)
    if message is None:
        options.log.write(b"[no JSON-RPC message] " + _beginning(line, options.secrets))
        return
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await received.send(SessionMessage(message))


def _told(
    message: types.JSONRPCMessage | None, line: bytes | LongLine, secrets: SecretValues
) -> types.JSONRPCMessage | None:
    """What no call is answered with, without secrets: the SDK logs the news that it cannot read."""
    if isinstance(message, (types.JSONRPCNotification, types.JSONRPCRequest)) and isinstance(line, bytes):
        clean = secrets.taken_from_bytes(line)
        return message if clean == line else message_of(clean)
    return message


def _beginning(line: bytes | LongLine, secrets: SecretValues) -> bytes:
    """As much of a line as a log needs; where it is cut, no secret is told in part."""
    if isinstance(line, bytes) and len(line) <= EDGE_BYTES:
        return secrets.taken_from_bytes(line)
    head = line[:EDGE_BYTES] if isinstance(line, bytes) else line.head
    return Passage(secrets).feed(head)


def message_of(line: bytes | LongLine) -> types.JSONRPCMessage | None:
    """The message of a line; a response that cannot be read becomes an error response to its request.

    None: no message at all, for instance what a server printed by mistake.
    """
    if isinstance(line, LongLine):
        return _error_response(
            answered_id(line.head, line.tail),
            RESULT_TOO_LARGE,
            f"the server answered with {line.size_bytes} bytes",
        )
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _error_response(
            answered_id(line[:EDGE_BYTES], line[-EDGE_BYTES:]),
            RESULT_UNREADABLE,
            "the server's answer is no valid JSON-RPC message",
        )


def _error_response(request_id: int | None, code: int, message: str) -> types.JSONRPCError | None:
    if request_id is None:
        return None
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))


async def _write(
    to_send: MemoryObjectReceiveStream[SessionMessage], stdin: ByteSendStream, gone: anyio.Event
) -> None:
    try:
        async for item in to_send:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")
    except _BROKEN:
        gone.set()


async def _keep_log(stderr: ByteReceiveStream, options: StdioOptions) -> None:
    passage = Passage(options.secrets)
    try:
        with suppress(*_BROKEN):
            while True:
                options.log.write(passage.feed(await stderr.receive()))
    finally:
        options.log.write(passage.rest())


async def _end(process: Process) -> None:
    """Close the input, wait, then end the whole process group; every wait is bounded."""
    with suppress(*_BROKEN):
        assert process.stdin
        await process.stdin.aclose()
    with anyio.move_on_after(EXIT_GRACE_S):
        # Not process.wait(): it also waits for pipes that a grandchild may hold open.
        while process.returncode is None:
            await anyio.sleep(EXIT_POLL_S)
    await terminate_posix_process_tree(process, KILL_GRACE_S)
    with anyio.move_on_after(KILL_GRACE_S):
        while process.returncode is None:
            await anyio.sleep(EXIT_POLL_S)
