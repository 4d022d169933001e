"""The door in front of a whole stack: a program that knows nothing but HTTP."""

from __future__ import annotations

import json
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fixtures.patience import PATIENCE_S
from tests.fixtures.project import Project, wait_until
from tests.fixtures.project import guest as project

__all__ = ["project"]

pytestmark = [pytest.mark.integration]

READ = {"id": "read", "tool": "files:read_file", "arguments": {"path": "a.txt"}}


@pytest.fixture
def door(project: Project) -> Iterator[httpx2.Client]:
    project.environment["PML_SPECULATION__VERIFY"] = "1"
    project.pml("up", "--detach")
    part = next(part for part in project.json("status")["parts"] if part["name"] == "gateway")
    with httpx2.Client(base_url=part["address"], timeout=PATIENCE_S) as client:
        yield client


def chain(project: Project) -> dict[str, Any]:
    import yaml

    loaded: dict[str, Any] = yaml.safe_load((project.folder / "chain.yaml").read_text())
    return loaded


def events_of(door: httpx2.Client, run_id: str, **headers: str) -> list[tuple[str, str]]:
    """The id and type of every event that is told until the end."""
    found: list[tuple[str, str]] = []
    with door.stream("GET", f"/v1/runs/{run_id}/events?session={run_id}", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        event: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if name in {"id", "event", "data"}:
                event[name] = value
            elif not line and event:
                told = json.loads(event["data"])
                assert event["id"] == f"{told['epoch']}-{told['seq']}"
                found.append((event["id"], event["event"]))
                event = {}
    return found


def verified(door: httpx2.Client, run_id: str) -> list[tuple[str, str]]:
    """The same of a run whose hits have all been called again, which nobody waits for: also after its end."""
    found: list[tuple[str, str]] = []

    def settled() -> bool:
        found[:] = events_of(door, run_id)
        kinds = [kind for _, kind in found]
        return 0 < kinds.count("speculation.verifying") == kinds.count("speculation.verified")

    wait_until(settled, "the hits to be called again")
    return found


def test_a_program_runs_follows_and_decides_by_http(door: httpx2.Client, project: Project) -> None:
    workflow = chain(project)
    asked_for = {"workflow": workflow, "context": {"path": "a.txt"}, "request": "see what a.txt says"}
    done = door.post("/v1/runs?wait_s=50", json=asked_for)
    assert (done.status_code, done.json()["status"]) == (200, "completed")
    run_id = done.json()["run_id"]

    result = door.get(f"/v1/runs/{run_id}/tasks/read/result?session={run_id}").json()
    assert "a file" in json.dumps(result)
    (begun,) = project.pml(
        "events", "dump", "--session", run_id, "--type", "run.started", "--json"
    ).splitlines()
    assert json.loads(begun)["data"]["request"] == "see what a.txt says"
    told = verified(door, run_id)
    assert [int(place.partition("-")[2]) for place, _ in told] == list(range(len(told)))
    kinds = [kind for _, kind in told]
    assert (kinds[0], kinds.count("run.completed")) == ("run.started", 1)
    after = set(kinds[kinds.index("run.completed") + 1 :])
    assert after <= {"speculation.verifying", "speculation.verified"}
    middle = len(told) // 2
    assert events_of(door, run_id, **{"last-event-id": told[middle][0]}) == told[middle + 1 :]
    assert events_of(door, run_id, **{"last-event-id": str(middle)}) == told[middle + 1 :]

    same = {"json": {"workflow": {"tasks": [READ]}}, "headers": {"idempotency-key": "k1"}}
    first, second = (door.post("/v1/runs?wait_s=50", **same).json() for _ in range(2))
    assert first["run_id"] == second["run_id"]
    other = door.post(
        "/v1/runs", json={"workflow": {"tasks": [{**READ, "id": "x"}]}}, headers=same["headers"]
    )
    assert other.status_code == 409

    code = {"source": "await mcp.files.read_file({ path: args.path });"}
    written = door.post("/v1/runs?wait_s=50", json={"code": code, "context": {"path": "a.txt"}}).json()
    assert (written["status"], list(written["results"])) == ("completed", ["n1"])

    waiting = {**workflow, "options": {"per_layer_validation": True}}
    asked = door.post("/v1/runs?wait_s=50", json={"workflow": waiting}).json()
    assert asked["status"] == "waiting"
    place = f"/v1/runs/{asked['run_id']}"
    going_on = f"{place}/continue?wait_s=50&session={asked['run_id']}"
    for _ in range(2):
        went_on = door.post(going_on, json={"reason": "fine"}, headers={"idempotency-key": "k2"})
        assert (went_on.status_code, went_on.json()["status"]) == (200, "completed")
    again = door.post(f"{place}/continue?session={asked['run_id']}")
    assert again.status_code == 409

    wrong = door.post("/v1/runs", json={"workflow": {"tasks": [{"id": "a", "tool": "nope:x"}]}})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "UNKNOWN_TOOL")
    refused = wrong.json()["run_id"]
    for part in ("", "/events"):
        later = door.get(f"/v1/runs/{refused}{part}?session={refused}")
        assert (later.status_code, later.json()["code"]) == (422, "UNKNOWN_TOOL")
    wait_until(lambda: len(door.get("/v1/runs").json()["items"]) >= 3, "the sink")
    assert door.get("/v1/tools").json()["items"][0]["server"] == "files"

    score(door, project, run_id)
    event_source(door, run_id)
    foreign(door, project, run_id)


EVENT_SOURCE = """
const source = new EventSource(Deno.args[0]);
const seen = [];
const kinds = ["run.started", "task.completed", "run.completed", "run.scored"];
for (const kind of kinds) {
  source.addEventListener(kind, (event) => seen.push([event.lastEventId, kind]));
}
source.addEventListener("error", () => {
  if (source.readyState !== EventSource.CLOSED) return;
  console.log(JSON.stringify(seen));
  Deno.exit(0);
});
"""


def event_source(door: httpx2.Client, run_id: str) -> None:
    """What browsers have built in gets every event once, opens the stream again at its end, then stops."""
    deno = Path(sysconfig.get_path("scripts")) / "deno"
    if not deno.exists():
        return
    address = f"{door.base_url}/v1/runs/{run_id}/events?session={run_id}"
    done = subprocess.run(
        [deno, "run", "--no-config", "--no-lock", "--ext=js", "--allow-net=127.0.0.1", "-", address],
        input=EVENT_SOURCE,
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    wanted = {"run.started", "task.completed", "run.completed", "run.scored"}
    assert told == [[place, kind] for place, kind in events_of(door, run_id) if kind in wanted]


def score(door: httpx2.Client, project: Project, run_id: str) -> None:
    """A run that has ended is scored by HTTP and on the command line; once, and only where there is one."""
    place = f"/v1/runs/{run_id}/score?session={run_id}"
    sent = {"json": {"name": "helpful", "boolean": False}, "headers": {"idempotency-key": "thumb"}}
    told = [door.post(place, **sent).json()["status"] for _ in range(2)]
    assert told == ["scored", "attached"]
    nobody = door.post("/v1/runs/run_nobody/score", json={"name": "helpful", "number": 1})
    assert (nobody.status_code, nobody.json()["code"]) == (404, "NOT_FOUND")
    said = project.json("run", "score", run_id, "helpful", "--number", "0.5", "--comment", "better")
    assert (said["status"], said["number"]) == ("scored", 0.5)
    scores = door.get(f"/v1/runs/{run_id}?session={run_id}").json()["scores"]
    assert (scores["helpful"]["value"], scores["helpful"]["comment"]) == (0.5, "better")
    wait_until(lambda: project.json("query", "SELECT name, number, times FROM scores") != [], "the sink")
    told = events_of(door, run_id)
    assert [kind for _, kind in told[-3:]] == ["run.scored", "command.attached", "run.scored"]
    nothing = door.get(f"/v1/runs/{run_id}/events?session={run_id}", headers={"last-event-id": told[-1][0]})
    assert (nothing.status_code, nothing.content) == (204, b"")


def foreign(door: httpx2.Client, project: Project, run_id: str) -> None:
    """As soon as there is a token nobody comes in without one, and a tenant sees its own runs alone."""
    mine = project.json("token", "create", "agent:a", "--scope", "runs:read", "--scope", "runs:write")[
        "token"
    ]
    theirs = project.json("token", "create", "agent:b", "--scope", "runs:read", "--tenant", "other")["token"]
    place = f"/v1/runs/{run_id}?session={run_id}"
    writes = project.json("token", "create", "agent:c", "--scope", "runs:write", "--tenant", "other")["token"]

    assert door.get(place).status_code == 401
    assert door.get(place, headers={"authorization": f"Bearer {mine}"}).status_code == 200
    assert door.get(place, headers={"authorization": f"Bearer {theirs}"}).status_code == 404
    scored = door.post(
        f"/v1/runs/{run_id}/score?session={run_id}",
        headers={"authorization": f"Bearer {writes}"},
        json={"name": "helpful", "boolean": True},
    )
    assert scored.status_code == 404
    listed = door.get("/v1/runs", headers={"authorization": f"Bearer {theirs}"})
    assert listed.json()["items"] == []
    assert door.post("/v1/runs", headers={"authorization": f"Bearer {theirs}"}).status_code == 403
