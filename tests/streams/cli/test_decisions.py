"""Runs that wait for somebody, over a real stack, as a person and an agent use it."""

from __future__ import annotations

import pytest

from tests.fixtures.project import PATIENCE_S, Project, project, wait_until

__all__ = ["project"]

pytestmark = [pytest.mark.integration, pytest.mark.timeout(6 * PATIENCE_S)]
# `read` is safe and runs early while the run waits after the first layer; `write` is not and does not.
LAYERS = """\
name: layers
tasks:
  - {id: list, tool: "files:list_dir", arguments: {path: .}}
  - {id: read, tool: "files:read_file", arguments: {path: a.txt}, depends_on: [list]}
  - {id: write, tool: "files:write_file", arguments: {path: out.txt, content: done}, depends_on: [list]}
"""


def waiting_run(project: Project) -> str:
    """A run that waits after its first layer, with `read` ready in the cache."""
    found = project.json("submit", "layers.yaml", "--per-layer", "--wait", code=6)
    assert (found["status"], list(found["waits_for"])) == ("waiting", ["k1"])
    run_id: str = found["run_id"]

    def ready() -> bool:
        events = project.json("run", "trace", run_id, "--session", run_id)["events"]
        return any(event["type"] == "speculation.ready" for event in events)

    wait_until(ready, "the early call")
    return run_id


def discarded(project: Project, run_id: str) -> list[str]:
    """Why speculations of a run were discarded, as the trace has it; ClickHouse agrees."""
    events = project.json("run", "trace", run_id, "--session", run_id)["events"]
    reasons = [event["data"]["reason"] for event in events if event["type"] == "speculation.ended"]
    sql = f"SELECT reason FROM speculations WHERE run_id = '{run_id}' ORDER BY seq"
    wait_until(lambda: [row["reason"] for row in project.json("query", sql)] == reasons, "the sink")
    return reasons


def test_decisions_at_checkpoints(project: Project) -> None:
    (project.folder / "layers.yaml").write_text(LAYERS)
    project.pml("up", "--detach")

    first = waiting_run(project)
    wait_until(lambda: project.json("run", "list", "--status", "waiting") != [], "the sink")
    done = project.json("run", "continue", first, "--session", first, "--wait")
    assert (done["status"], done["counts"]["hits"]) == ("completed", 1)
    assert done["results"]["read"]["served_by"] == "speculation"
    assert discarded(project, first) == ["hit"]
    refused = project.json("run", "continue", first, "--session", first, code=3)
    assert refused["error"]["code"] == "NOT_WAITING"

    second = waiting_run(project)
    (project.files / "out.txt").unlink()
    wait_until(lambda: project.json("run", "list", "--status", "waiting") != [], "the sink")
    stopped = project.json("run", "abort", second, "--reason", "not now", "--wait", code=1)
    assert (stopped["status"], stopped["error"]["code"]) == ("aborted", "ABORTED")
    assert discarded(project, second) == ["aborted"]
    assert not (project.files / "out.txt").exists()
