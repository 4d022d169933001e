"""A session in which it is asked what comes next, and what is answered."""

from __future__ import annotations

from typing import Any

from pml.processors.workflow import Step
from pml.schemas.catalog import CatalogRecord, ThresholdOverride
from pml.schemas.prediction import PREDICT_TOOL
from tests.processors.session_world import SessionWorld, catalog, data_of

READ = {"path": "b.md"}


def world(threshold: float | None = None, **policy: Any) -> SessionWorld:
    """A session in which it is asked what comes next."""
    known = catalog(**{"predictions": "on", **policy})
    if threshold is not None:
        override = ThresholdOverride(
            tenant="local", level="default", value=threshold, changed_at="2023-11-14T22:13:20Z"
        )
        known = known.with_record(CatalogRecord(kind=override.KIND, id="local/default", data=override))
    return SessionWorld(catalog=known)


def call(world: SessionWorld, run_id: str, path: str = "a.md", tool: str = "files:read_file") -> Step:
    """A run of one call, which is not answered yet."""
    task = {"id": "n1", "tool": tool, "arguments": {"path": path}}
    return world.start({"tasks": [task], "intent": f"look at {path}"}, run_id)


def done(world: SessionWorld, run_id: str, path: str = "a.md", **fields: Any) -> Step:
    """A run of one call that completed."""
    call(world, run_id, path, **fields)
    world.time_ms += 10
    return world.answer(world.call_of("n1", run_id), {"text": f"see {path}"})


def predicted(*candidates: tuple[str, dict[str, Any], float]) -> dict[str, Any]:
    """What `pml:predict` answers: tools with arguments, each with its confidence."""
    tasks = [
        {
            "id": f"p{number}",
            "tool": tool,
            "arguments": {name: {"type": "literal", "value": value} for name, value in arguments.items()},
        }
        for number, (tool, arguments, _) in enumerate(candidates, start=1)
    ]
    told = [
        {"name": tool, "likelihood": confidence, "confidence": confidence, "tasks": [f"p{number}"]}
        for number, (tool, _, confidence) in enumerate(candidates, start=1)
    ]
    return {"learner": "discounting", "candidates": told, "workflow": {"tasks": tasks}}


def foretell(world: SessionWorld, *candidates: tuple[str, dict[str, Any], float]) -> Step:
    """Answer the open question."""
    return world.answer(world.call_of(PREDICT_TOOL), predicted(*candidates))


def outcomes(step: Step) -> list[str]:
    """What was done about each candidate."""
    return [each.outcome for each in data_of(step, "prediction.made").candidates]


def started(world: SessionWorld) -> SessionWorld:
    """A predicted read of b.md is under way."""
    done(world, "run_1")
    assert outcomes(foretell(world, ("files:read_file", READ, 0.95))) == ["begun"]
    return world
