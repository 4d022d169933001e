"""An MCP server that repeats the variable TOKEN wherever a server can say something."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TOKEN = os.environ["TOKEN"]
WORDS = f"level {os.environ['DEBUG']}: bad credentials {TOKEN}"
NAMES = ("tell", "fail", "refuse", "give_up", "grown")
NUMBER = {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}, "required": ["n"]}
TEXT = {"type": "object", "properties": {"key": {"type": "string", "default": TOKEN}}}
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
NEWS = {"level": {"wrong": WORDS}, "data": WORDS}

seen: set[str] = set()


def tools() -> list[dict[str, Any]]:
    given = {"description": WORDS, "title": WORDS, "annotations": {"title": WORDS, "readOnlyHint": True}}
    plain = [{"name": name, "inputSchema": TEXT, **given} for name in NAMES]
    return [*plain, {"name": "misread", "inputSchema": TEXT, "outputSchema": NUMBER, **given}]


def called(name: str) -> dict[str, Any]:
    text = [{"type": "text", "text": WORDS}]
    match name:
        case "tell" | "grown":
            return {"result": {"content": text}}
        case "fail":
            return {"result": {"content": text, "isError": True}}
        case "misread":
            return {"result": {"content": [], "structuredContent": {"n": WORDS}}}
        case "give_up":  # as PML's own transport says that nothing was sent
            return {"error": {"code": 31_003, "message": WORDS}}
    return {"error": {"code": -32_603, "message": WORDS}}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    match request["method"]:
        case "initialize":
            version = request["params"]["protocolVersion"]
            about = {"name": "telling", "version": "1"}
            can = {"tools": {"listChanged": True}}
            return {"result": {"protocolVersion": version, "serverInfo": about, "capabilities": can}}
        case "tools/list":
            return called("refuse") if "grown" in seen else {"result": {"tools": tools()}}
        case "tools/call":
            seen.add(request["params"]["name"])
            return called(request["params"]["name"])
    return {"error": {"code": -32_601, "message": "Method not found"}}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def log(text: str) -> None:
    """At once, whatever it ends with."""
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    log(f"a line for the log: {WORDS}\nand half of it: {TOKEN[:9]}")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            log(f"{TOKEN[9:]}\n")
            say(f"printed by mistake: {WORDS}")
            say(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": NEWS}))
        else:
            say(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}))
            if message.get("params", {}).get("name") == "grown":
                say(json.dumps(CHANGED))
