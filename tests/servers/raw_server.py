"""An MCP server of hand-written JSON lines, for answers that no SDK would send."""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NAMES = (
    "good",
    "wrong_structure",
    "no_structure",
    "lone_surrogate",
    "big_integer",
    "wrong_shape",
    "long_id_last",
    "sampling",
    "audio",
    "list_structure",
)


def result(request: dict[str, Any]) -> str:
    match request["params"]["name"]:
        case "good":
            return '{"content": [{"type": "text", "text": "{}"}], "structuredContent": {"n": 1}}'
        case "wrong_structure":
            return '{"content": [], "structuredContent": {"n": "the secret word"}}'
        case "no_structure":
            return '{"content": [{"type": "text", "text": "no structure"}]}'
        case "lone_surrogate":
            return '{"content": [{"type": "text", "text": "\\ud800"}]}'
        case "big_integer":
            return '{"content": [], "structuredContent": {"n": 340282366920938463463374607431768211456}}'
        case "wrong_shape":
            return '{"content": "text"}'
        case "audio":
            sound = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
            note = {"uri": "file:///a", "text": "b", "mimeType": "text/plain"}
            return json.dumps({"content": [sound, {"type": "resource", "resource": note}]})
        case "list_structure":
            return '{"content": [], "structuredContent": {"n": 2, "items": [1, 2]}}'
    raise AssertionError


def tool(name: str) -> dict[str, Any]:
    plain = {"name": name, "description": name, "inputSchema": {"type": "object"}}
    structured = name in {"good", "wrong_structure", "no_structure_", "big_integer"}
    return {**plain, "outputSchema": SCHEMA} if structured or name == "no_structure" else plain


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(request: dict[str, Any]) -> None:
    match request["method"]:
        case "initialize":
            body: Any = {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "raw", "version": "1"},
            }
        case "tools/list":
            body = {"tools": [tool(name) for name in NAMES]}
        case "tools/call":
            call(request)
            return
        case _:
            error = {"code": -32601, "message": "Method not found"}
            say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            return
    say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": body}))


def call(request: dict[str, Any]) -> None:
    name = request["params"]["name"]
    if name == "long_id_last":
        text = "y" * int(request["params"]["arguments"]["size"])
        content = json.dumps({"content": [{"type": "text", "text": text}]})
        say('{"result": ' + content + ', "jsonrpc": "2.0", "id": ' + str(request["id"]) + "}")
    elif name == "sampling":
        say(
            json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": 99,
                    "method": "sampling/createMessage",
                    "params": {
                        "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
                        "maxTokens": 5,
                    },
                }
            )
        )
        refusal = json.loads(sys.stdin.readline())
        text = json.dumps(refusal["error"])
        body = {"content": [{"type": "text", "text": text}], "isError": True}
        say(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": body}))
    else:
        say(f'{{"jsonrpc": "2.0", "id": {request["id"]}, "result": {result(request)}}}')


if __name__ == "__main__":
    sys.stdout.write("this line is printed by mistake\n")
    sys.stderr.write("a line for the log\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            answer(message)
