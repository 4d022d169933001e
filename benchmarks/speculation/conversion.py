"""Recorded workflows as PML runs them: the same DAG, the same data flow, tools that only take their time.

A record of `PML_DATASETS` names tools that do not run here. Each of its tasks becomes a call of one real MCP
server, which is told the tool's name and how long it takes. Who reads and who writes comes from the data set;
where it does not say, a share of the tools is drawn as writes, by a hash of their names: the same every time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from benchmarks.speculation.model import Step
from pml.processors.workflow.graph import layer_numbers

UNSAFE_SHARE = 0.3
SERVER = "replay"
READ, VOLATILE, WRITE = f"{SERVER}:read", f"{SERVER}:volatile", f"{SERVER}:write"
# What the server is told beside the tool's own arguments.
TOOL_ARGUMENT, LATENCY_ARGUMENT = "_tool", "_latency_ms"


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A task of a record. `needs` are the tasks whose results it takes, `after` those it only follows."""

    id: str
    tool: str
    safe: bool
    arguments: Mapping[str, Any]
    needs: tuple[str, ...]
    after: tuple[str, ...]
    layer: int


@dataclass(frozen=True, slots=True)
class SourceWorkflow:
    """A record of a data set."""

    dataset: str
    id: str
    tasks: tuple[SourceTask, ...]
    context: Mapping[str, Any]

    @property
    def layers(self) -> int:
        """How many layers its DAG has."""
        return 1 + max(task.layer for task in self.tasks)


def is_safe(dataset: str, tool: str, read_only: bool | None) -> bool:
    """Whether a tool only reads: as its data set says, else by the hash of its name."""
    if read_only is not None:
        return read_only
    digest = blake2b(f"{dataset}/{tool}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >= UNSAFE_SHARE * 2**64


def convert(dataset: str, record: Mapping[str, Any], read_only: Mapping[str, bool | None]) -> SourceWorkflow:
    """A record with the layer of each task.

    Args:
        read_only: of each tool, None where the data set does not say.

    Raises:
        ValueError: its tasks wait for each other.
    """
    position = {task["id"]: number for number, task in enumerate(record["tasks"])}
    needs = {task["id"]: _sources(task, position) for task in record["tasks"]}
    after: dict[str, set[str]] = {name: set() for name in position}
    for before, name in record["edges"]:
        after[name].add(before)
    layers = layer_numbers({name: frozenset(after[name] | needs[name]) for name in position})
    if layers is None:
        raise ValueError(f"{record['id']}: its tasks wait for each other")
    tasks = tuple(
        SourceTask(
            id=task["id"],
            tool=task["tool"],
            safe=is_safe(dataset, task["tool"], read_only.get(task["tool"])),
            arguments=_arguments(task, needs[task["id"]]),
            needs=tuple(sorted(needs[task["id"]], key=position.__getitem__)),
            after=tuple(sorted(after[task["id"]] - needs[task["id"]], key=position.__getitem__)),
            layer=layers[task["id"]],
        )
        for task in record["tasks"]
    )
    return SourceWorkflow(dataset, record["id"], tasks, _context(record["tasks"]))


def workflow_of(
    source: SourceWorkflow, latencies_s: Sequence[float], read: str = READ, **options: Any
) -> dict[str, Any]:
    """The workflow as it is submitted; `read` is the tool that the reads call."""
    return {
        "name": source.id[:200],
        "workflow_type": source.dataset,
        "context": dict(source.context),
        "options": options,
        "tasks": [
            {
                "id": task.id,
                "tool": read if task.safe else WRITE,
                "arguments": {**task.arguments, **timing(task, latency_s)},
                "depends_on": task.after,
            }
            for task, latency_s in zip(source.tasks, latencies_s, strict=True)
        ],
    }


def timing(task: SourceTask, latency_s: float) -> dict[str, Any]:
    """The arguments that tell the server which tool it is and how long it takes."""
    return {TOOL_ARGUMENT: task.tool, LATENCY_ARGUMENT: round(latency_s * 1_000, 1)}


def steps_of(source: SourceWorkflow, latencies_s: Sequence[float]) -> tuple[Step, ...]:
    """The workflow as the model knows it. All tools belong to one server and declare no `touches`, so a
    write holds up every read after it: what an operator gets who writes nothing down."""
    position = {task.id: number for number, task in enumerate(source.tasks)}
    return tuple(
        Step(task.layer, latency_s, task.safe, frozenset(position[name] for name in task.needs))
        for task, latency_s in zip(source.tasks, latencies_s, strict=True)
    )


def _sources(task: Mapping[str, Any], position: Mapping[str, int]) -> set[str]:
    """The tasks before this one that its arguments name; a loop back to a later one is no data flow here."""
    return {
        name
        for argument in task["arguments"].values()
        for name in argument.get("from", ())
        if position[name] < position[task["id"]]
    }


def _arguments(task: Mapping[str, Any], needs: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, argument in task["arguments"].items():
        if argument["type"] == "reference":
            found |= _references(name, [source for source in argument["from"] if source in needs])
        elif argument["type"] == "parameter":
            found[name] = {"type": "parameter", "parameter_name": argument["name"]}
        else:
            found[name] = {"type": "literal", "value": argument.get("value")}
    return found


def _references(name: str, sources: Sequence[str]) -> dict[str, Any]:
    """One argument for each task that an argument is put together from."""
    names = [name, *(f"{name}_{number}" for number in range(2, len(sources) + 1))]
    return {
        each: {"type": "reference", "expression": f"{source}.value"}
        for each, source in zip(names, sources, strict=False)
    }


def _context(tasks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A value for each parameter: the records hold their names only."""
    named = (argument for task in tasks for argument in task["arguments"].values())
    return {item["name"]: f"the {item['name']}" for item in named if item["type"] == "parameter"}
