"""Recorded workflows as sessions with arguments and results, as far as the data has them.

Where the data names a value instead of showing it (a reference, a parameter, text that was taken out), a
symbol stands for it: digits that say nothing, equal where the data says that the value is the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson

from benchmarks.learning.ways import WAYS
from pml.processors.learning.argument_sources import Past
from pml.processors.learning.duplicates import Groups
from pml.streams.learning.data_sets import OPEN_PART, Row, recorded, rows_of

NUMBERS = ("integer", "int", "number", "float")
FIELDS_MOST = 24


@dataclass(frozen=True, slots=True)
class ArgumentSet:
    """Sessions, the text visible before each of their elements and after the last, input schemas, and
    near-duplicates. What the user gave, a client can tell beside each call.
    """

    name: str
    visible: str
    sessions: tuple[tuple[Past, ...], ...]
    requests: tuple[tuple[str, ...], ...]
    end_texts: tuple[str, ...]
    schemas: Mapping[str, Mapping[str, Any]]
    groups: Groups


def argument_set(folder: Path, name: str) -> ArgumentSet:
    """The open part of a data set, read in one of `WAYS`."""
    way = WAYS[name]
    rows = [row for row in rows_of(folder / way.folder, OPEN_PART) if row["tools"]]
    tools = {tool["tool_id"]: tool for tool in rows_of(folder / way.folder, "tools.jsonl")}
    schemas = {name: tool["input_schema"] for name, tool in tools.items() if "input_schema" in tool}
    fields = _fields(rows, tools)
    read = [_session(row, schemas, fields) for row in rows]
    told = [[way.visible.before(row, place) for place in range(len(row["tools"]))] for row in rows]
    return ArgumentSet(
        name=name,
        visible=way.visible.told,
        sessions=tuple(map(tuple, read)),
        requests=tuple(map(tuple, told)),
        end_texts=tuple(way.visible.before(row, len(row["tools"])) for row in rows),
        schemas=schemas,
        groups=recorded(folder, way.folder).sessions.traces.groups,
    )


def _fields(rows: Sequence[Row], tools: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """What results of each tool have: its declared outputs, and what most workflows took of it."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for name, tool in tools.items():
        found[name].update(dict.fromkeys(tool.get("outputs") or tool.get("output") or (), len(rows)))
    for row in rows:
        called = {task["id"]: task["tool"] for task in row["tasks"]}
        for task in row["tasks"]:
            for argument in task["arguments"].values():
                source = _source(argument)
                if source is not None and source[0] in called:
                    found[called[source[0]]][source[1]] += 1
    return {name: sorted(_most(each)) for name, each in found.items()}


def _most(counted: Counter[str]) -> list[str]:
    return sorted(counted, key=lambda field: (-counted[field], field))[:FIELDS_MOST]


def _source(argument: Mapping[str, Any]) -> tuple[str, str] | None:
    """The task and field that a reference names; None of a computed one, or one of several tasks."""
    if argument["type"] != "reference" or "value" in argument or len(argument.get("from", ())) != 1:
        return None
    head, task = argument["expression"], argument["from"][0]
    if not head.startswith(f"${task}") or head.count("$") != 1:
        return None
    return task, head.removeprefix(f"${task}").strip(" .") or "value"


def _session(row: Row, schemas: Mapping[str, Any], fields: Mapping[str, list[str]]) -> list[Past]:
    symbol = partial(_symbol, row["id"])
    taken = _taken(row)
    elements = [
        Past(
            task["tool"],
            {
                name: value
                for name, argument in task["arguments"].items()
                for value in [_value(task, name, argument, schemas, symbol)]
            },
            task["output"] if "output" in task else _result(task, fields, taken[task["id"]], symbol),
        )
        for task in row["tasks"]
    ]
    given = {
        argument["name"]: _value(task, name, argument, schemas, symbol)
        for task in row["tasks"]
        for name, argument in task["arguments"].items()
        if argument["type"] == "parameter"
    }
    return [replace(each, context=given) for each in elements]


def _taken(row: Row) -> dict[str, set[str]]:
    """The fields that a workflow takes of each of its tasks: its results surely have them."""
    found: dict[str, set[str]] = defaultdict(set)
    for task in row["tasks"]:
        for argument in task["arguments"].values():
            source = _source(argument)
            if source is not None:
                found[source[0]].add(source[1])
    return found


def _result(
    task: Mapping[str, Any], fields: Mapping[str, list[str]], taken: set[str], symbol: Callable[..., str]
) -> dict[str, Any] | None:
    found = {field: symbol(task["id"], field) for field in sorted({*fields.get(task["tool"], ()), *taken})}
    return found or None


def _value(
    task: Mapping[str, Any], name: str, argument: Mapping[str, Any], schemas: Mapping[str, Any], symbol: Any
) -> Any:
    if argument.get("redacted"):
        return _symbol("redacted", task["tool"], name, str(argument["chars"]))
    if "value" in argument:
        return argument["value"]
    source = _source(argument)
    if argument["type"] == "parameter":
        found = symbol("given", argument["name"])
    else:
        found = symbol(*source) if source else symbol("computed", argument["expression"])
    kind = schemas.get(task["tool"], {}).get("properties", {}).get(name, {}).get("type")
    if kind in ("boolean", "bool"):
        return int(found) % 2 == 0
    return int(found) if kind in NUMBERS else [found] if kind in ("array", "list") else found


def _symbol(*parts: str) -> str:
    """Twelve digits that stand for a value."""
    return str(10**11 + int.from_bytes(blake2b(orjson.dumps(parts), digest_size=6).digest()) % 10**11)
