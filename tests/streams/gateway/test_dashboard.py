"""`/ui/`: what is served, with which headers; what its functions make of events and texts (run by Deno)."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from subprocess import run
from typing import Any

import orjson
import pytest
from starlette.testclient import TestClient

from pml.streams.gateway.dashboard import Dashboard
from tests.fixtures.patience import PATIENCE_S
from tests.golden.scenario import Scenario, parse
from tests.processors.session_world import SessionWorld
from tests.streams.gateway.test_app import client, token

FILES = sorted(Dashboard().assets)
DENO = Path(sysconfig.get_path("scripts")) / "deno"
UI = Path(__file__).parents[3] / "streams" / "gateway" / "ui"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[TestClient]:
    with client(tmp_path) as opened:
        yield opened


def test_every_file_of_the_folder_is_served() -> None:
    assert sorted(file.name for file in UI.iterdir()) == FILES
    assert {"index.html", "main.js", "style.css"} <= set(FILES)


@pytest.mark.parametrize("name", ["", *FILES])
def test_a_file_is_served_with_its_type_and_a_strict_policy(door: TestClient, name: str) -> None:
    answer = door.get(f"/ui/{name}")
    kinds = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
    kind = kinds[name.rpartition(".")[2] or "html"]
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
    assert answer.content == (UI / (name or "index.html")).read_bytes()
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert {policy[f"{what}-src"] for what in ("script", "style", "connect", "img")} == {"'self'"}
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    same = door.get(f"/ui/{name}", headers={"if-none-match": answer.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/ui/../app.py",
        "/ui/%2e%2e/app.py",
        "/ui/..%2fapp.py",
        "/ui/%2e%2e%2f%2e%2e%2fsettings.py",
        "/ui/./app.py",
        "/ui//etc/passwd",
        "/ui/%2fetc%2fpasswd",
        "/ui/main.js%00.html",
        "/ui/main.js/",
        "/ui/..\\app.py",
        "/ui/__init__.py",
    ],
)
def test_nothing_but_its_files_is_there(door: TestClient, path: str) -> None:
    answer = door.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


def test_the_pages_are_open_and_what_they_show_is_not(tmp_path: Path) -> None:
    token(tmp_path, "runs:read")
    with client(tmp_path, host="0.0.0.0") as door:
        assert door.get("/ui/").status_code == 200
        assert door.get("/v1/runs").status_code == 401
        assert door.post("/ui/").status_code == 405
        assert door.get("/ui/", headers={"host": "evil.example"}).status_code == 421


def test_the_bare_name_leads_there(door: TestClient) -> None:
    assert str(door.get("/ui").url) == "http://127.0.0.1/ui/"


@pytest.mark.parametrize("name", FILES)
def test_no_file_asks_anything_of_elsewhere_or_makes_html_of_text(name: str) -> None:
    text = (UI / name).read_text()
    addresses = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'<>]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "the namespace of a picture is no address"
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|localStorage|\bstyle="
    )
    assert not re.search(forbidden, text)
    if name.endswith(".html"):
        assert not re.search(r"\son\w+=|<script(?![^>]*\ssrc=)|<style", text)
    named = re.findall(r"(?:from |src=|href=)\"(?:\./)?([\w.]+\.(?:js|css|svg))\"", text)
    assert set(named) <= set(FILES)


needs_deno = pytest.mark.skipif(not DENO.exists(), reason="the extra typescript is not installed")


def evaluated(script: str, **given: Any) -> Any:
    """What a script that imports the dashboard's modules prints last, as JSON."""
    source = f"const given = {orjson.dumps(given).decode()};\n{script}"
    done = run(
        [DENO, "run", "--no-config", "--no-lock", "--ext=js", f"--allow-read={UI}", "-"],
        input=source.replace("@ui/", f"{UI.as_uri()}/").encode(),
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr.decode()
    return orjson.loads(done.stdout.splitlines()[-1])


def events_of(name: str) -> tuple[list[dict[str, Any]], SessionWorld]:
    """The events of a golden scenario, as the door tells them, and its end."""
    scenario = Scenario()
    for block in parse((Path(__file__).parents[2] / "golden" / f"{name}.txt").read_text())[1]:
        scenario.carry_out(block)
    return [
        event.model_dump(mode="json", exclude_none=True) for event in scenario.world.events
    ], scenario.world


FOLD = """
import { after, layers, unknownRun } from "@ui/fold.js";
let run = unknownRun(given.runId);
for (const event of given.events) if (event.run_id === given.runId) run = after(run, event);
console.log(JSON.stringify({ run, layers: layers(run.tasks).map((layer) => layer.map((task) => task.id)) }));
"""


@needs_deno
def test_a_run_is_folded_from_its_events_as_the_core_has_it() -> None:
    events, _ = events_of("fork_join_hit")
    found = evaluated(FOLD, events=events, runId="run_1")
    ends = {event["data"]["task_id"]: event for event in events if event["type"] == "task.completed"}
    assert found["run"]["status"] == "completed"
    assert found["run"]["counts"]["hits"] >= 1
    tasks = found["run"]["tasks"]
    assert tasks.keys() == ends.keys()
    for name, event in ends.items():
        data = event["data"]
        told = (tasks[name]["status"], tasks[name]["servedBy"], tasks[name]["layer"], tasks[name]["preview"])
        assert told == ("completed", data["served_by"], data["layer"], data["preview"])
    released = [event["data"]["task_ids"] for event in events if event["type"] == "layer.released"]
    assert [sorted(layer) for layer in found["layers"]] == [sorted(layer) for layer in released]
    assert "served early" in {task["early"] for task in tasks.values()}


@needs_deno
def test_layers_are_known_before_they_are_released() -> None:
    events, _ = events_of("fork_join_hit")
    released = [event["data"]["task_ids"] for event in events if event["type"] == "layer.released"]
    found = evaluated(
        FOLD, events=[event for event in events if event["type"] == "run.started"], runId="run_1"
    )
    assert [sorted(layer) for layer in found["layers"]] == [sorted(layer) for layer in released]
    assert {task["status"] for task in found["run"]["tasks"].values()} == {"pending"}


@needs_deno
def test_decisions_retries_and_scores_are_told() -> None:
    events, _ = events_of("retry")
    run_ = evaluated(FOLD, events=events, runId="run_1")["run"]
    assert run_["status"] == "completed"
    assert [one["text"] for one in run_["decisions"]] == [
        "d1 is error",
        "retried by person:ada",
        "d1 is true",
    ]
    assert run_["tasks"]["n2"]["attempt"] == 2
    events, _ = events_of("scored")
    scores = evaluated(FOLD, events=events, runId="run_1")["run"]["scores"]
    assert (scores["helpful"]["number"], scores["helpful"]["principal"]) == (5.0, "person:ada")
    assert scores["faithfulness"]["source"] == "evaluator:ragas"


@needs_deno
@pytest.mark.parametrize(
    "name",
    [
        *("approval_and_retry", "per_layer_continue", "sandbox", "program_replanned", "replan"),
        *("approve_before", "approve_before_rejected", "approve_before_replan", "approve_before_sandbox"),
    ],
)
def test_every_kind_of_run_is_folded_to_the_end_that_it_has(name: str) -> None:
    events, world = events_of(name)
    assert world.session is not None
    for run_id, known in world.session.runs.items():
        found = evaluated(FOLD, events=events, runId=run_id)
        assert found["run"]["status"] == known.status
        if not known.live:
            assert found["run"]["waits"] == {}


@needs_deno
def test_a_question_about_several_calls_is_about_each_of_them_and_about_no_other_task() -> None:
    events, _ = events_of("approve_before")
    asked = next(place for place, event in enumerate(events) if event["type"] == "approval.requested")
    run_ = evaluated(FOLD, events=events[: asked + 1], runId="run_1")["run"]
    waiting = {name for name, task in run_["tasks"].items() if task["status"] == "waiting"}
    assert (waiting, set(run_["tasks"])) == ({"n2", "n3", "n4"}, {"n1", "n2", "n3", "n4", "n5"})
    (question,) = run_["waits"].values()
    assert [call["task_id"] for call in question["calls"]] == ["n2", "n3", "n4"]
    done = evaluated(FOLD, events=events, runId="run_1")["run"]
    assert {task["status"] for task in done["tasks"].values()} == {"completed"}
    told = [one["text"] for one in done["decisions"]]
    assert told[:1] + told[-1:] == ["3 calls approved by person:ada", "n3 approved by person:ada"]
    events, _ = events_of("approve_before_sandbox")
    run_ = evaluated(FOLD, events=events, runId="run_1")["run"]
    (text,) = [one["text"] for one in run_["decisions"]]
    assert text == "files:delete_file approved, whatever its arguments by person:ada"


@needs_deno
def test_a_stream_is_read_whole_wherever_it_is_cut() -> None:
    script = """
    import { follow, parse } from "@ui/stream.js";
    const bytes = new TextEncoder().encode(given.text);
    const seen = [];
    for (let size = 1; size < 12; size++) {
      const body = new ReadableStream({
        start(controller) {
          for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
          controller.close();
        },
      });
      const found = [];
      const asked = [];
      const answers = [new Response(body), new Response(null, { status: 204 })];
      const open = async (lastId) => { asked.push(lastId); return answers.shift(); };
      const last = await follow({
        open, signal: new AbortController().signal,
        take: (event) => found.push(event.n), tell: () => {}, pause: async () => {},
      });
      seen.push(JSON.stringify([found, asked, last]));
    }
    console.log(JSON.stringify([...new Set(seen)].map(JSON.parse)));
    """
    text = ': ping\r\n\r\nid: 0\r\nevent: a\r\ndata: {"n": "é"}\r\n\r\n'
    text += 'event: b\ndata: {"n":\ndata: 1}\nid: 7\n\nid: 8\ndata: {"n'
    assert evaluated(script, text=text) == [[["é", 1], [None, "7"], "7"]]


@needs_deno
def test_a_stream_that_breaks_is_opened_again_after_its_last_event_and_a_refusal_is_final() -> None:
    script = """
    import { backOffMs, follow } from "@ui/stream.js";
    import { Problem } from "@ui/api.js";
    const asked = [], told = [], paused = [], found = [];
    const end = 'id: 4\\nevent: run.completed\\ndata: {"n": 4}\\n\\n';
    const answers = [
      () => { throw new TypeError("network"); },
      () => new Response('id: 3\\nevent: task.started\\ndata: {"n": 3}\\n\\n'),
      () => { throw new Problem(503, {}); },
      () => new Response(end),
    ];
    const open = async (lastId) => { asked.push(lastId); return answers.shift()(); };
    const options = {
      take: (event) => found.push(event.n), tell: (text) => told.push(text),
      signal: new AbortController().signal, pause: async (ms) => { paused.push(ms); },
    };
    await follow({ ...options, open });
    let code = "";
    const refused = async () => { throw new Problem(404, { code: "NOT_FOUND" }); };
    await follow({ ...options, open: refused }).catch((error) => { code = error.code; });
    console.log(JSON.stringify({ asked, told: told.length, paused, found, code, most: backOffMs(50) }));
    """
    found = evaluated(script)
    assert found["asked"] == [None, None, "3", "3"]
    assert (found["told"], found["found"], found["code"]) == (2, [3, 4], "NOT_FOUND")
    assert (found["paused"], found["most"]) == ([500, 500, 1000], 15_000)


@needs_deno
def test_the_token_goes_into_a_header_and_nowhere_else() -> None:
    script = """
    import { Api } from "@ui/api.js";
    const kept = new Map();
    const storage = {
      getItem: (name) => kept.get(name) ?? null,
      setItem: (name, value) => kept.set(name, value),
      removeItem: (name) => kept.delete(name),
    };
    const sent = [];
    const api = new Api(new URL("http://door/base/"), storage, async (address, options) => {
      sent.push([String(address), options.headers, options.body ?? null, options.credentials]);
      return new Response("{}");
    });
    await api.get(["v1", "runs", "a/../b?c#d"], { session: "s&t", status: "", cursor: null });
    api.token = "pml_secret";
    await api.post(["v1", "runs", "r", "score"], { name: "q" }, { session: "s" });
    await api.events("r", "s", "7");
    api.token = null;
    await api.get(["readyz"]);
    console.log(JSON.stringify({ sent, kept: kept.size }));
    """
    found = evaluated(script)
    assert found == {
        "kept": 0,
        "sent": [
            ["http://door/base/v1/runs/a%2F..%2Fb%3Fc%23d?session=s%26t", {}, None, "omit"],
            [
                "http://door/base/v1/runs/r/score?session=s",
                {"authorization": "Bearer pml_secret", "content-type": "application/json"},
                '{"name":"q"}',
                "omit",
            ],
            [
                "http://door/base/v1/runs/r/events?session=s",
                {"accept": "text/event-stream", "last-event-id": "7", "authorization": "Bearer pml_secret"},
                None,
                "omit",
            ],
            ["http://door/base/readyz", {}, None, "omit"],
        ],
    }


@needs_deno
def test_values_as_people_read_them() -> None:
    script = """
    import { duration, figures, link, place, scoreValue, shown, summary, time } from "@ui/format.js";
    const there = place(link(["runs", "a/b c?"], { session: "x&y", status: "" }));
    console.log(JSON.stringify({
      durations: [0, 12.4, 1500, 123000, null, NaN].map(duration),
      times: ["2026-01-31T12:00:00.123456Z", "2026-01-31 12:00:00.1+00:00", null].map(time),
      shown: [shown("abc", 2), shown({ a: 1 }), shown(undefined)],
      scores: [{ boolean: false }, { number: 0 }, { category: "dry" }, { value: true }].map(scoreValue),
      there: [there.parts, there.query.get("session"), there.query.has("status")],
      odd: [place("").parts, place("#/%E0%A4%A").parts],
      figures: figures(given.text),
      summaries: [summary([]), summary(given.runs)],
    }));
    """
    text = '# HELP pml_x of\npml_runs_total{status="failed"} 2.0\npml_up 1.0\n'
    text += 'pml_x_bucket{le="1"} 1.0\npython_info 1\n'
    runs = [
        {"status": "completed", "hits": 2, "misses": 1, "wasted": 1, "saved_ms": 1200.0},
        {"status": "failed", "hits": 0, "misses": 0, "wasted": 0, "saved_ms": 0},
    ]
    nothing = [
        ["Runs", "0"],
        ["Hits", "none was possible"],
        ["Ran early in vain", "0"],
        ["Waiting saved", "0 ms"],
    ]
    both = [["Runs", "2"], ["completed", "1"], ["failed", "1"], ["Hits", "2 of 3 (67 %)"]]
    both += [["Ran early in vain", "1"], ["Waiting saved", "1.2 s"]]
    found = evaluated(script, text=text, runs=runs)
    assert found.pop("summaries") == [nothing, both]
    assert found == {
        "durations": ["0 ms", "12 ms", "1.5 s", "2 min 3 s", "", ""],
        "times": ["2026-01-31 12:00:00 UTC", "2026-01-31 12:00:00 UTC", ""],
        "shown": ["ab\n… 1 characters more", '{\n  "a": 1\n}', ""],
        "scores": ["no", "0", "dry", "yes"],
        "there": [["runs", "a/b c?"], "x&y", False],
        "odd": [[], ["%E0%A4%A"]],
        "figures": [["pml_runs_total", 'status="failed"', "2.0"], ["pml_up", "", "1.0"]],
    }


@needs_deno
def test_the_scripts_are_free_of_what_a_linter_finds() -> None:
    done = run([DENO, "lint", "--no-config", str(UI)], capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr.decode()
