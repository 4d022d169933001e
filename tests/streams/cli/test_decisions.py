"""Runs that wait for somebody, over a real stack, as a person and an agent use it."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from pml.schemas.commands import ApprovalDecide
from pml.schemas.errors import Refused
from pml.streams.client import IntentProducer, wait_for_answer
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project, wait_until
from tests.fixtures.project import guest as project

__all__ = ["project"]

pytestmark = [pytest.mark.integration]
# `read` is safe and runs early while the run waits after the first layer; `write` is not and does not.
LAYERS = """\
name: layers
tasks:
  - {id: list, tool: "files:list_dir", arguments: {path: .}}
  - {id: read, tool: "files:read_file", arguments: {path: a.txt}, depends_on: [list]}
  - {id: write, tool: "files:write_file", arguments: {path: out.txt, content: done}, depends_on: [list]}
"""
PLAN = """\
tasks:
  - id: again
    tool: files:read_file
    arguments: {path: {type: reference, expression: "list.entries[0].path"}}
"""
WRITE = """\
name: write
options: {approval_timeout_s: 3600}
tasks:
  - {id: write, tool: "files:write_file", arguments: {path: out.txt, content: approved}}
"""
PERMISSIONS = """\
tools:
  "files:write_file": {scope: filesystem, approval: hil, effect: write, touches: ["files:{path}"]}
  "files:*": {scope: readonly, approval: auto, touches: ["files:{path}"]}
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

    third = waiting_run(project)
    (project.folder / "plan.yaml").write_text(PLAN)
    planned = project.json("run", "replan", third, "plan.yaml", "--session", third, "--wait")
    assert (planned["status"], sorted(planned["results"])) == ("completed", ["again", "list"])
    assert discarded(project, third) == ["replanned"]
    assert not (project.files / "out.txt").exists()
    agreed_on(project, third)


def test_an_approval_survives_a_restart_and_is_a_persons(project: Project) -> None:
    (project.folder / "mcp-permissions.yaml").write_text(PERMISSIONS)
    (project.folder / "write.yaml").write_text(WRITE)
    project.pml("up", "--detach")

    run_id = submitted_by_an_agent(project)
    wait_until(lambda: project.json("approvals", "list", "--session", run_id) != [], "the request")
    (asked,) = project.json("approvals", "list", "--session", run_id)
    assert (asked["tool"], asked["arguments"]) == (
        "files:write_file",
        {"path": "out.txt", "content": "approved"},
    )
    assert answered_by_an_agent(project, run_id, asked["approval_id"]) == "PERSON_NEEDED"

    project.pml("down")
    project.pml("up", "--detach")
    assert not (project.files / "out.txt").exists()
    wait_until(lambda: project.json("approvals", "list") == [asked], "the store")
    assert project.json("run", "show", run_id, "--session", run_id)["status"] == "waiting"
    done = project.json("approvals", "approve", asked["approval_id"], "--reason", "fine", "--wait")
    assert done["status"] == "completed"
    assert (project.files / "out.txt").read_text() == "approved"
    twice = project.json("approvals", "approve", asked["approval_id"], "--session", run_id, code=3)
    assert twice["error"]["code"] == "NOT_WAITING"
    agreed_on(project, run_id)


def agreed_on(project: Project, run_id: str) -> None:
    """The store and the log say the same of a run and of its approvals."""
    wait_until(lambda: all(not part["lag"] for part in project.json("status")["parts"]), "the sink")
    stored = [run for run in project.json("run", "list") if run["run_id"] == run_id]
    assert stored == project.json("run", "list", "--session", run_id)
    everything = ("approvals", "list", "--all")
    logged = project.json(*everything, "--session", run_id)
    assert [row for row in project.json(*everything) if row["run_id"] == run_id] == logged


def submitted_by_an_agent(project: Project) -> str:
    """A run that an agent asked for; its id."""

    async def submit() -> str:
        async with IntentProducer(settings_of(project)) as producer:
            workflow = yaml.safe_load(WRITE)
            return (await producer.start_run(workflow, principal="agent:planner")).run_id

    return asyncio.run(submit())


def answered_by_an_agent(project: Project, run_id: str, approval_id: str) -> str:
    """The code with which the agent's own approval is refused."""

    async def approve() -> str:
        said = ApprovalDecide(approval_id=approval_id, decision="approve")
        async with IntentProducer(settings_of(project)) as producer:
            sent = await producer.decide(run_id, said, principal="agent:planner")
        with pytest.raises(Refused) as refused:
            await wait_for_answer(settings_of(project), sent, timeout_s=PATIENCE_S)
        return refused.value.code

    return asyncio.run(approve())


def settings_of(project: Project) -> Settings:
    """Where the stack's broker listens, and what its topics are called."""
    prefix = project.environment["PML_KAFKA__TOPIC_PREFIX"]
    return Settings.load(kafka={"bootstrap_servers": project.stack.broker, "topic_prefix": prefix})
