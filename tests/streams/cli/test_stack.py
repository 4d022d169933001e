"""A whole stack as a person uses it: real broker, store, workers and MCP server, by the command line."""

from __future__ import annotations

import json
import signal
from collections import Counter
from typing import Any

import pytest

from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project, gone, project, wait_until

__all__ = ["project"]

PROGRAM = """
async def main(path, folder="."):
    page = await mcp.files.read_file(path=path)
    if page.path == args.path:
        await mcp.files.list_dir(path=folder)
    return {"read": page.path}
"""
DISK = """
name: disk
tasks:
  - id: listing
    tool: disk:list_dir
    arguments: {path: .}
"""
pytestmark = [pytest.mark.integration]


def agreed(project: Project, run_id: str) -> None:
    """What status, metrics, lists, queries and the log say of the same runs, once nothing lags."""
    metrics = project.json("metrics", "--wait")
    wait_until(lambda: all(not p["lag"] for p in project.json("status")["parts"]), "the sink")
    (run,) = (run for run in project.json("run", "list") if run["run_id"] == run_id)
    logged = [run for run in project.json("run", "list", "--session", run_id) if run["run_id"] == run_id]
    assert [run] == logged
    assert (metrics["hits"], metrics["misses"], metrics["wasted"]) == (
        run["hits"],
        run["misses"],
        run["wasted"],
    )
    events = [json.loads(line) for line in project.pml("events", "dump", "--json").splitlines()]
    assert project.json("query", "SELECT count() AS events FROM events") == [{"events": len(events)}]
    agreed_by_tool(project, metrics["tools"], events)
    stored = project.json("run", "trace", run_id)
    assert stored == project.json("run", "trace", run_id, "--session", run_id)


def agreed_by_tool(project: Project, tools: dict[str, dict[str, int]], events: list[dict[str, Any]]) -> None:
    """The same of each tool, by metrics, store and log."""
    rates = project.json("query", "hit_rate_by_tool_and_hour")
    for name in ("hits", "misses"):
        stored: Counter[str] = Counter()
        for row in rates:
            stored[row["tool"]] += row[name]
        assert Counter({tool: numbers[name] for tool, numbers in tools.items()}) == stored
    ended = (event["data"] for event in events if event["type"] == "speculation.ended")
    logged = Counter(data["tool"] for data in ended if data["fate"] == "served")
    assert logged == Counter({tool: numbers["hits"] for tool, numbers in tools.items()})
    assert logged


def only_planned(project: Project) -> None:
    """Shadow mode: no early call in the log of the server; the metrics tell what there would have been."""
    log = project.folder / "calls.jsonl"
    before = len(log.read_text().splitlines())
    project.pml("speculation", "shadow")

    def planned() -> bool:
        done = project.json("submit", "chain.yaml", "--wait")
        assert {task["served_by"] for task in done["results"].values()} == {"call"}
        return bool(project.json("metrics", "--wait")["shadow"]["planned"])

    wait_until(planned, "a plan")
    calls = [json.loads(line) for line in log.read_text().splitlines()[before:]]
    assert calls
    assert not any(call["speculative"] for call in calls)


def listed(project: Project, run_id: str, *options: str) -> list[dict[str, Any]]:
    """An ended run in the list of runs."""
    runs = project.json("run", "list", *options)
    return [run for run in runs if run["run_id"] == run_id and run["status"] == "completed"]


def a_program_runs(project: Project) -> None:
    """As a workflow does; the list has its capability as its type, from the store as from the log."""
    (project.folder / "job.py").write_text(PROGRAM)
    ran = project.json("submit", "job.py", "--wait", "--context", "path=a.txt", "--intent", "look at a file")
    assert (ran["status"], list(ran["results"])) == ("completed", ["n1", "n2"])
    assert "a file" in ran["results"]["n1"]["preview"]
    assert ran["result"] == {"read": "a.txt"}
    wait_until(lambda: listed(project, ran["run_id"]), "the sink")
    assert listed(project, ran["run_id"]) == listed(project, ran["run_id"], "--session", ran["run_id"])
    (row,) = listed(project, ran["run_id"])
    assert (row["workflow_type"][:4], row["tasks"], row["layers"]) == ("cap_", 2, 2)
    refused = project.json("submit", "job.py", "--wait", code=1)
    assert refused["error"]["code"] == "MISSING_PARAMETER"


def a_program_is_a_capability(project: Project) -> None:
    """It is learned by its success, told in the catalog and in ClickHouse, and may be called otherwise."""

    def learned() -> list[dict[str, Any]]:
        found = project.json("capability", "list")["items"]
        return [item for item in found if (item["name"], item["status"]) == ("look-at-a-file", "learned")]

    wait_until(lambda: bool(learned()), "the capability")
    (item,) = learned()
    assert (item["source"], item["language"], item["approval"], item["effect"]) == (
        *("code", "python"),
        *("auto", "read"),
    )
    assert {each["name"]: each["required"] for each in item["parameters"]} == {"path": True, "folder": False}
    shown = project.json("capability", "show", "look-at-a-file")
    assert [(path["path"], path["runs"]) for path in shown["paths"]] == [(["n1", "d1", "n2"], 1)]
    assert shown["decisions"] == [{"decision": "d1", "outcome": "true", "runs": 1}]
    assert project.pml("capability", "show", "look-at-a-file", "--code").strip() == PROGRAM.strip()
    edges = {(edge["type"], edge["source"], edge["target"]): edge for edge in shown["edges"]}
    assert edges["sequence", "files:read_file", "files:list_dir"]["weight"] == 0.55
    assert edges["contains", item["capability_id"], "files:read_file"]["runs"] == 1
    assert "neighbours" in project.pml("capability", "show", "look-at-a-file")
    pairs = project.json("query", "tool_pairs")
    assert ("files:list_dir", "files:read_file") in {(row["tool"], row["other_tool"]) for row in pairs}
    project.pml("capability", "rename", "look-at-a-file", "peek")
    (run,) = project.json("capability", "runs", "peek")["items"]
    assert (run["status"], run["executed_path"]) == ("completed", ["n1", "d1", "n2"])
    (project.files / "b.txt").write_text("another file\n")
    meant = project.json("submit", "--intent", "look at a file", "--context", "path=b.txt", "--wait")
    assert (meant["status"], meant["result"]) == ("completed", {"read": "b.txt"})
    asked_otherwise(project)
    (project.folder / "outer.py").write_text("x = await capabilities.peek(path='a.txt')\nreturn x.read")
    outer = project.json("submit", "outer.py", "--wait")
    assert (list(outer["results"]), outer["result"]) == (["c1__n1", "c1__n2"], "a.txt")
    unknown = project.json("submit", "--intent", "book a flight to Tokyo", "--wait", code=1)
    assert unknown["error"]["code"] == "NO_CAPABILITY"
    refused = project.json("capability", "rename", "peek", "Not A Name", code=2)
    assert "not-a-name" in refused["error"]["message"]


def what_was_approved_runs(project: Project) -> None:
    """A tool of a server that was added while all was up; the same run again calls nothing twice."""
    (project.folder / "disk.yaml").write_text(DISK)
    calls = project.folder / "calls.jsonl"
    ran = project.json("submit", "disk.yaml", "--wait", "--run-id", "run_disk")
    listing = ran["results"]["listing"]
    assert (ran["run_id"], ran["status"], listing["status"]) == ("run_disk", "completed", "completed")
    assert "a.txt" in listing["preview"]
    before = calls.read_text()
    assert project.json("submit", "disk.yaml", "--wait", "--run-id", "run_disk") == ran
    assert calls.read_text() == before
    wait_until(lambda: bool(listed(project, "run_disk")), "the sink")
    assert "disk:list_dir" in project.pml("run", "trace", "run_disk")
    asked = "SELECT tool_server, tool_name, status FROM tasks WHERE run_id = 'run_disk'"
    assert project.json("query", asked) == [
        {"tool_server": "disk", "tool_name": "list_dir", "status": "completed"}
    ]


def asked_otherwise(project: Project) -> None:
    """What the same program was good for in other words is one more intent that finds it."""
    words = "tell me what the document contains"
    project.json("submit", "job.py", "--context", "path=a.txt", "--intent", words, "--wait")
    wait_until(lambda: project.json("capability", "show", "peek").get("intents") == [words], "the intent")
    meant = project.json("submit", "--intent", words.upper(), "--context", "path=b.txt", "--wait")
    assert (meant["status"], meant["result"]) == ("completed", {"read": "b.txt"})


def catalog(project: Project) -> dict[str, Any]:
    """The tools that the running bridge has told of, by their names."""
    return {tool["tool"]: tool for tool in project.json("tools", "list")}


def test_from_up_to_down_with_deaths_in_between(project: Project) -> None:
    project.pml("up", "--detach")
    assert project.json("status")["ready"] is True
    assert project.json("up", "--detach")["up"] is True

    submitted = project.json("submit", "chain.yaml", "--wait", "--run-id", "run_1")
    assert submitted["status"] == "completed"
    assert submitted["results"]["read"]["served_by"] in ("speculation", "joined")
    assert project.json("submit", "chain.yaml", "--wait", "--run-id", "run_1") == submitted
    calls = (project.folder / "calls.jsonl").read_text()
    agreed(project, "run_1")
    changed = project.json(
        "submit", "chain.yaml", "--run-id", "run_1", "--context", "path=b", "--wait", code=3
    )
    assert "run_1" in changed["error"]["message"]
    assert (project.folder / "calls.jsonl").read_text() == calls

    a_program_runs(project)
    a_program_is_a_capability(project)

    project.add_server("disk")
    wait_until(lambda: "disk:list_dir" in catalog(project), "the new server")
    approved = project.json("tools", "approve", "disk:list_dir", "--scope", "readonly")
    assert (approved["in_force"], len(approved["entry"]["definition"])) == (True, 64)
    tools = catalog(project)
    assert (tools["disk:list_dir"]["speculable"], tools["disk:read_file"]["allowed"]) == (True, False)
    what_was_approved_runs(project)
    project.pml("speculation", "off")
    wait_until(lambda: project.json("speculation", "status")["switch"] == "off", "the switch")
    plain = project.json("submit", "chain.yaml", "--wait")
    assert {task["served_by"] for task in plain["results"].values()} == {"call"}
    only_planned(project)
    project.pml("speculation", "on")
    assert project.json("dlq", "list") == []

    bridge, broker = project.pid("bridge"), project.pid("kafka")
    for process in project.processes():
        if process.pid in (bridge, broker):
            process.kill()
    wait_until(lambda: project.pid("bridge") not in (None, bridge) and project.ready(), "a new bridge")
    wait_until(lambda: project.json("status", code=None)["ready"], "everything to be ready again")
    assert {part["name"]: part["restarts"] > 0 for part in project.json("status")["parts"]}["bridge"]
    assert project.json("submit", "chain.yaml", "--wait")["status"] == "completed"

    below = project.processes()
    assert len(below) > 6
    below[0].kill()
    wait_until(lambda: gone(below), "the children of a supervisor that was killed")
    assert project.json("status", code=4)["up"] is False

    with project.start("up") as foreground:
        wait_until(project.ready, "the second start")
        assert project.json("run", "show", "run_1")["status"] == "completed"
        below = project.processes()
        foreground.send_signal(signal.SIGINT)
        _, said = foreground.communicate(timeout=PATIENCE_S)
    assert (foreground.returncode, gone(below)) == (0, True), said
    assert project.json("down")["stopped"] is False


@pytest.mark.parametrize("arguments", [["up"], ["up", "--detach"]], ids=" ".join)
def test_a_file_that_is_wrong_stops_the_start_before_anything_runs(
    project: Project, arguments: list[str]
) -> None:
    (project.folder / "mcp-permissions.yaml").write_text("tools: {'files:*': {approval: perhaps}}\n")
    with project.start(*arguments) as process:
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert len(said.splitlines()) == 1
    assert "mcp-permissions.yaml: tools.files:*.approval" in said
    assert project.json("status", code=4)["up"] is False
