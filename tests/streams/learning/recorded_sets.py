"""Small data sets as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson


def written(folder: Path, name: str, rows: list[dict[str, Any]], tools: list[str]) -> None:
    place = folder / name
    place.mkdir()
    told = [{"tool_id": tool, "description": f"does {tool}"} for tool in tools]
    (place / "tools.jsonl").write_bytes(b"\n".join(map(orjson.dumps, told)))
    (place / "workflows.dev.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (place / "workflows.holdout.jsonl").write_bytes(b"nobody may read this")


def row(number: int, tools: list[str], **more: Any) -> dict[str, Any]:
    tasks = [
        {"id": f"t{place}", "tool": tool, "arguments": {}, "turn": place} for place, tool in enumerate(tools)
    ]
    found: dict[str, Any] = {"id": f"x-{number}", "intent": f"all of {number}"}
    return found | {"tools": tools, "tasks": tasks, "edges": []} | more
