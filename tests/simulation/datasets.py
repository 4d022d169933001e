"""Real workflows: the structure of recorded ones, with tools of their own over the simulated world.

A tool without a label in its source writes in three of ten cases, which its name decides. Its resource is
one of eight of its data set's server, so that tools meet; its result has every field that any workflow reads.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.datasets import datasets_place
from tests.simulation.tools import Toolbox, ToolSpec, digest

FOLDERS = ("n8n", "galaxy_iwc", "nestful", "toollinkos", "api_bank")
UNSAFE_TENTHS = 3
RESOURCES = 8
# Longer ones take a seed's whole time.
TASKS_MAX = 16
_PLACE = re.compile(r"\$(t\d+)\W*(\w*)")


@lru_cache(maxsize=1)
def recorded() -> tuple[tuple[str, dict[str, Any]], ...]:
    """Every workflow of a size that a seed can play, with the name of its data set."""
    place = datasets_place()
    if place is None:
        return ()
    return tuple((name, item) for name in FOLDERS for item in _read(place / name))


def _read(place: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(place.glob("workflows.dev.jsonl*")):
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for item in map(json.loads, data.splitlines()):
            if 2 <= len(item["tasks"]) <= TASKS_MAX:
                yield item


@lru_cache(maxsize=1)
def labels() -> dict[tuple[str, str], bool]:
    """Which tools their source labels as read-only, or as not."""
    place = datasets_place()
    found: dict[tuple[str, str], bool] = {}
    for name in FOLDERS if place is not None else ():
        with (place / name / "tools.jsonl").open() as lines:  # type: ignore[operator]
            for tool in map(json.loads, lines):
                if tool.get("read_only") is not None:
                    found[name, tool["tool_id"]] = tool["read_only"]
    return found


def real_workflow(random: Random, toolbox: Toolbox) -> dict[str, Any] | None:
    """One recorded workflow over tools that it brings along; None where there are no data sets."""
    if not recorded():
        return None
    data_set, item = random.choice(recorded())
    known = {task["id"] for task in item["tasks"]}
    tasks = [_task(data_set, task, known, item["edges"]) for task in item["tasks"]]
    for task, source in zip(tasks, item["tasks"], strict=True):
        spec = _spec(data_set, source["tool"], _fields(item))
        before = toolbox.specs.get(spec.name)
        if before is None:
            toolbox.add(spec)
        else:
            toolbox.change(spec.name, fields=tuple(sorted({*before.fields, *spec.fields})))
        task["tool"] = spec.name
    context = {"where": "a", **{name: f"given {name}" for name in _parameters(item)}}
    return {"name": item["id"][:80], "context": context, "options": {"timeout_s": 40}, "tasks": tasks}


def _task(data_set: str, task: dict[str, Any], known: set[str], edges: list[list[str]]) -> dict[str, Any]:
    arguments = {_named(name): _argument(value, known) for name, value in task["arguments"].items()}
    before = sorted({first for first, second in edges if second == task["id"] and first in known})
    return {"id": task["id"], "arguments": arguments, "depends_on": before, "safe_to_fail": False}


def _argument(value: dict[str, Any], known: set[str]) -> Any:
    if value["type"] == "parameter":
        return {"type": "parameter", "parameter_name": value["name"]}
    place = _PLACE.match(value["expression"]) if value["type"] == "reference" else None
    if place is not None and place.group(1) in known:
        name = f".{place.group(2)}" if place.group(2) else ""
        return {"type": "reference", "expression": place.group(1) + name}
    return {"type": "literal", "value": str(value.get("value"))[:100]}


def _named(name: str) -> str:
    """`path` and `method` mean something to the tools of the simulation."""
    return f"{name}_" if name in {"path", "method"} else name


def _fields(item: dict[str, Any]) -> tuple[str, ...]:
    places = (
        _PLACE.match(value["expression"])
        for task in item["tasks"]
        for value in task["arguments"].values()
        if value["type"] == "reference"
    )
    return tuple(sorted({place.group(2) for place in places if place is not None and place.group(2)}))


def _parameters(item: dict[str, Any]) -> set[str]:
    """One parameter in ten is not given."""
    named = {
        value["name"]
        for task in item["tasks"]
        for value in task["arguments"].values()
        if value["type"] == "parameter"
    }
    return {name for name in named if int(digest(name), 16) % 10}


def _spec(data_set: str, tool: str, fields: tuple[str, ...]) -> ToolSpec:
    number = int(digest([data_set, tool]), 16)
    labelled = labels().get((data_set, tool))
    writes = number % 10 < UNSAFE_TENTHS if labelled is None else not labelled
    resource = f"{data_set}:r{number % RESOURCES}"
    scope = {"scope": "admin"} if writes else {"scope": "readonly"}
    entry = {**scope, "approval": "auto", "touches": (resource,)}
    name = f"{data_set}:{re.sub(r'[^A-Za-z0-9_.-]', '_', tool)}"
    return ToolSpec(name, "bump" if writes else "read", resource, entry, fields=fields, fixed=True)
