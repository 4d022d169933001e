"""PML's own core, on a clock that moves only while tools work, comes to the bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.speculation.conversion import SERVER, SourceTask, SourceWorkflow, steps_of, workflow_of
from benchmarks.speculation.model import ideal
from pml.processors.workflow import Catalog, Policy, Session
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool, ToolHints
from pml.schemas.commands import Command, RunContinue
from pml.schemas.permissions import PermissionFile
from tests.benchmarks.speculation.strategies import workflows
from tests.processors.session_world import KEY, SessionWorld

DECISION = "a decision"


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


def played_s(
    source: SourceWorkflow,
    latencies_s: Sequence[float],
    decision_s: float | None = None,
    depth: int = 1,
    **options: Any,
) -> float:
    """How long the core says the run took when nothing but tools and decisions takes time."""
    world = SessionWorld(catalog(speculation_depth=depth), checked_every=1_000)
    began_ms = world.time_ms
    options["per_layer_validation"] = decision_s is not None
    world.start(workflow_of(source, latencies_s, **options), context=dict(source.context))
    length = {task.id: round(each * 1_000) for task, each in zip(source.tasks, latencies_s, strict=True)}
    due: dict[str, int] = {}
    while world.types()[-1] not in {"run.completed", "run.failed"}:
        for call_id, call in world.open_calls.items():
            due.setdefault(call_id, world.time_ms + length[call.task_id])
        if decision_s is not None and world.session is not None and waits(world.session):
            due.setdefault(DECISION, world.time_ms + round(decision_s * 1_000))
        following = min(due, key=due.__getitem__)
        world.time_ms = due.pop(following)
        if following == DECISION:
            number = len(world.of_type("decision.made"))
            command = Command(
                type=RunContinue.TYPE,
                command_id=f"go_{number}",
                session_id="s1",
                run_id="run_1",
                data=RunContinue(),
            )
            world.command(command)
        else:
            world.answer(following, {"value": "x"}, duration_ms=1.0)
    assert world.types()[-1] == "run.completed"
    return (world.time_ms - began_ms) / 1_000


def waits(session: Session) -> bool:
    """Whether its run waits for somebody."""
    return session.runs["run_1"].status == "waiting"


@settings(max_examples=40, deadline=None)
@given(workflows())
def test_the_core_is_as_quick_as_the_bound(drawn: tuple[SourceWorkflow, tuple[float, ...]]) -> None:
    source, latencies_s = drawn
    steps = steps_of(source, latencies_s)
    for depth in (1, 2, 3):
        found = played_s(source, latencies_s, depth=depth, speculation="on")
        assert found == pytest.approx(ideal(steps, depth).total_s)
    assert played_s(source, latencies_s, speculation="off") == pytest.approx(ideal(steps, 0).total_s)


# A task of the last layer stands before others of the one before it: the nearest layer begins first.
_PLACES = ((0, ()), (1, ("t0",)), (1, ("t0",)), (0, ()), (2, ("t1",)), (0, ()), (0, ()), (1, ("t0",)))
OUT_OF_ORDER = (
    SourceWorkflow(
        dataset="drawn",
        id="drawn",
        tasks=tuple(
            SourceTask(id=f"t{n}", tool="read", safe=True, arguments={}, needs=(), after=after, layer=layer)
            for n, (layer, after) in enumerate(_PLACES)
        ),
        context={},
    ),
    (1.001, 1.002, 1.004, 1.008, 1.016, 1.032, 1.064, 1.128),
)


@settings(max_examples=40, deadline=None)
@given(workflows(), st.floats(0.5, 30))
@example(OUT_OF_ORDER, 1.0)
def test_it_is_so_between_decisions_too(
    drawn: tuple[SourceWorkflow, tuple[float, ...]], about_s: float
) -> None:
    source, latencies_s = drawn
    steps, decision_s = steps_of(source, latencies_s), round(about_s, 2) + 0.0005
    decisions_s = [round(decision_s * 1_000) / 1_000] * (source.layers - 1)
    for depth, mode in ((0, "off"), (1, "on"), (3, "on")):
        found = played_s(source, latencies_s, decision_s, max(1, depth), speculation=mode)
        assert found == pytest.approx(ideal(steps, depth, decisions_s=decisions_s).total_s)
