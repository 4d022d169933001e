"""PML's own core, on a clock that moves only while tools work, comes to the bound."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from benchmarks.speculation.conversion import SERVER, SourceWorkflow, steps_of, workflow_of
from benchmarks.speculation.model import ideal
from pml.processors.workflow import Catalog, Policy
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool, ToolHints
from pml.schemas.permissions import PermissionFile
from tests.benchmarks.speculation.strategies import workflows
from tests.processors.session_world import KEY, SessionWorld


def catalog(**policy: Any) -> Catalog:
    """The replay server as the benchmark's permissions have it."""
    tools = tuple(Tool(name=name, hints=ToolHints(), definition=name) for name in ("read", "write"))
    entries = {
        f"{SERVER}:read": {"scope": "readonly", "approval": "auto"},
        f"{SERVER}:write": {"scope": "filesystem", "approval": "auto"},
    }
    server = ServerTools(server=SERVER, status="listed", tools=tools)
    file = PermissionRecord(file=PermissionFile.model_validate({"tools": entries}), hash="h")
    found = Catalog(Policy(hash_key=KEY, run_timeout_ms=3_600_000, task_timeout_ms=3_600_000, **policy))
    for kind, name, data in (("tool", SERVER, server), ("permission", "file", file)):
        found = found.with_record(CatalogRecord(kind=kind, id=name, data=data))
    return found


def played_s(source: SourceWorkflow, latencies_s: tuple[float, ...], speculation: str) -> float:
    """How long the core says the run took when nothing but tools takes time."""
    world = SessionWorld(catalog(), checked_every=1_000)
    began_ms = world.time_ms
    world.start(workflow_of(source, latencies_s, speculation=speculation), context=dict(source.context))
    length = {task.id: round(each * 1_000) for task, each in zip(source.tasks, latencies_s, strict=True)}
    ends: dict[str, int] = {}
    while world.types()[-1] not in {"run.completed", "run.failed"}:
        for call_id, call in world.open_calls.items():
            ends.setdefault(call_id, world.time_ms + length[call.task_id])
        call_id = min(world.open_calls, key=ends.__getitem__)
        world.time_ms = ends[call_id]
        world.answer(call_id, {"value": "x"}, duration_ms=1.0)
    assert world.types()[-1] == "run.completed"
    return (world.time_ms - began_ms) / 1_000


@settings(max_examples=40, deadline=None)
@given(workflows())
def test_the_core_is_as_quick_as_the_bound(drawn: tuple[SourceWorkflow, tuple[float, ...]]) -> None:
    source, latencies_s = drawn
    steps = steps_of(source, latencies_s)
    assert played_s(source, latencies_s, "on") == pytest.approx(ideal(steps, 1).total_s)
    assert played_s(source, latencies_s, "off") == pytest.approx(ideal(steps, 0).total_s)
