"""An MCP server over a world that several servers share: `python -m tests.servers.world_server NAME FOLDER`.

`FOLDER` has the tools (`tools.json`), how often a call goes wrong (`troubles.json`; empty once faults stop)
and the journal. It speaks the protocol by hand, because eight of them start with each bridge.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import orjson

from tests.chaos.journal import Journal
from tests.chaos.toolbox import read_tools
from tests.simulation.tools import ToolFailed, ToolSpec

# Longer than any time-out of a task; whatever the call does happens then, when nobody waits for it.
HANG_S = 8.0
LATENCY_S = (0.01, 0.3)
SLOWER = 6


class Server:
    """One named server of the world."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.random = Random()
        self.tools = {spec.name.partition(":")[2]: spec for spec in read_tools(folder, name)}
        self.journal = Journal(folder / "journal.jsonl")
        self.running: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer requests until the client closes the pipe."""
        reader = asyncio.StreamReader(limit=16 * 1024 * 1024)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            message = orjson.loads(line)
            if "id" in message and "method" in message:
                task = asyncio.create_task(self._answer(message))
                self.running.add(task)
                task.add_done_callback(self.running.discard)

    async def _answer(self, request: dict[str, Any]) -> None:
        match request["method"]:
            case "initialize":
                version = request["params"]["protocolVersion"]
                server = {"name": self.name, "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
            case "tools/list":
                result = {"tools": [described(name, spec) for name, spec in self.tools.items()]}
            case "tools/call":
                result = await self._call(request["params"])
            case "ping":
                result = {}
            case _:
                say({"id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
                return
        say({"id": request["id"], "result": result})

    async def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        spec, arguments, meta = self.tools[params["name"]], params["arguments"], params["_meta"]
        call_id = meta["pml/call-id"]
        self.journal.reached(spec, arguments, call_id, meta["pml/speculative"])
        trouble = self._trouble()
        await asyncio.sleep(HANG_S if trouble == "hangs" else self._seconds(trouble))
        if trouble == "fails":
            self.journal.failed(spec, call_id)
            return failure(self.random.choice(["network is down", "invalid input", "boom"]))
        try:
            run = self.journal.change if spec.writes(arguments) else self.journal.read
            value = run(spec, arguments, call_id)
        except ToolFailed as error:
            self.journal.failed(spec, call_id)
            return failure(str(error))
        await asyncio.sleep(self._seconds(None))
        if trouble == "lost":
            os._exit(3)
        return {"content": [], "structuredContent": value}

    def _trouble(self) -> str | None:
        dice = self.random.random()
        for name, likely in orjson.loads((self.folder / "troubles.json").read_bytes()).items():
            dice -= likely
            if dice < 0:
                return str(name)
        return None

    def _seconds(self, trouble: str | None) -> float:
        return self.random.uniform(*LATENCY_S) * (SLOWER if trouble == "slow" else 1)


def described(name: str, spec: ToolSpec) -> dict[str, Any]:
    """A tool as `tools/list` shows it."""
    schema: dict[str, Any] = {"type": "object"}
    if spec.required:
        schema["required"] = list(spec.required)
    said: dict[str, Any] = {"name": name, "description": f"{spec.kind} {spec.root}", "inputSchema": schema}
    if spec.hints.read_only is not None:
        said["annotations"] = {"readOnlyHint": spec.hints.read_only}
    return said


def failure(message: str) -> dict[str, Any]:
    """An answer that says that the tool failed."""
    return {"content": [{"type": "text", "text": message}], "isError": True}


def say(body: dict[str, Any]) -> None:
    """One line to the client, whole."""
    line = orjson.dumps({"jsonrpc": "2.0", **body}) + b"\n"
    while line:
        line = line[os.write(sys.stdout.fileno(), line) :]


if __name__ == "__main__":
    asyncio.run(Server(sys.argv[1], Path(sys.argv[2])).serve())
