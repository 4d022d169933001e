"""The demo on a stack of its own: what it promises, and that it notices one byte that differs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from pml.schemas.workflow import Workflow
from pml.streams.cli.app import app
from pml.streams.client import new_id
from pml.streams.demo import programs as programs_module
from pml.streams.demo import stage as stage_module
from pml.streams.demo.learning import Plan, learn
from pml.streams.demo.learning_report import Way
from pml.streams.demo.programs import load_programs
from pml.streams.demo.sessions import draw_sessions
from pml.streams.demo.stage import Stage, load_workflows
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.log_writer import LogWriter, run_completed, run_started, task_completed, task_started

# Two stacks start and stop.
pytestmark = [pytest.mark.integration]
CHECKOUT = Path(__file__).parent.parent.parent.parent
COLUMNS = {
    *("name", "layers", "tasks", "wall_ms_plain", "wall_ms_speculative", "hits", "misses", "wasted"),
    *("saved_ms", "identical", "unsafe_speculations"),
}


class PlantedStage(Stage):
    """After the first run of a workflow one byte of the folder is another."""

    rebuilt = 0

    def rebuild(self) -> None:
        super().rebuild()
        self.rebuilt += 1
        if self.rebuilt % 2 == 1 and self.rebuilt > 1:
            path = self.root / "package.json"
            path.write_bytes(path.read_bytes().replace(b"{", b"{ ", 1))


def demo(monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[int, dict[str, Any]]:
    """`pml demo --json` with one workflow; its exit code and what it printed."""
    only: list[Workflow] = [workflow for workflow in load_workflows() if workflow.name == "release-notes"]
    monkeypatch.setattr(stage_module, "load_workflows", lambda: only)
    monkeypatch.setattr(programs_module, "load_programs", lambda: load_programs()[:1])
    monkeypatch.setenv("PML_DATA_DIR", str(folder / "data"))
    answer = CliRunner().invoke(app, ["demo", "--json", "--repository", str(CHECKOUT)])
    return answer.exit_code, orjson.loads(answer.stdout)


def test_the_demo_reports_identical_results_and_hits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, report = demo(monkeypatch, tmp_path)
    (workflow,) = report["workflows"]
    assert (code, report["ok"]) == (0, True)
    assert workflow.keys() >= COLUMNS
    assert workflow["identical"]
    assert workflow["hits"] >= 1
    assert workflow["unsafe_speculations"] == 0
    (intent,) = report["intents"]
    assert intent["meant"] == intent["capability_id"]
    assert intent["run"]["identical"]
    assert intent["run"]["hits"] >= 1
    assert len(report["queries"]) == 3
    assert all(report["queries"].values())


async def test_sessions_are_played_alike_with_what_was_learned_and_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kafka: str, clickhouse_url: str, database: str
) -> None:
    settings = Settings.load(
        data_dir=tmp_path / "data",
        kafka={"bootstrap_servers": kafka, "topic_prefix": f"{database}."},
        clickhouse={"url": clickhouse_url, "database": database},
        speculation={"predictions": "on"},
    )
    # What is predicted is begun long before the agent has thought, however busy the machine is. Of so few
    # sessions the best baseline serves; what something learned begins is seen in mcp_server/proxy.
    plan = Plan(recorded=12, played=2, threshold=0.5, thinks_s=2)
    await left_by_an_earlier_demo(settings)
    report = await learn(Stage(settings, CHECKOUT), plan, lambda text: None)
    assert report.differences == []
    plain, *predicted = report.as_dict()["ways"]
    assert (plain["begun"], plain["hits"]) == (0, 0)
    assert [way["learner"] for way in predicted] == [report.model["baseline"], report.model["serves"]]
    assert all(way["hits"] > 0 for way in predicted), report.as_dict()
    # What an earlier demo left in the same folder is neither trained on nor counted.
    drawn = draw_sessions(plan.recorded + plan.played, plan.seed)[plan.recorded :]
    calls = sum(len(workflow.tasks) for session in drawn for workflow in session.steps)
    assert {way["calls"] for way in (plain, *predicted)} == {calls}
    told = report.model["data"]
    assert (told["tenant"], told["sessions"]) == (plan.tenant, plan.recorded)
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    verified = await asyncio.to_thread(
        CliRunner().invoke, app, ["replay", "--from", "kafka", "--verify", "--json"]
    )
    assert verified.exit_code == 0, verified.output
    assert orjson.loads(verified.stdout)["events"] > 0


async def left_by_an_earlier_demo(settings: Settings) -> None:
    """Sessions of the same names, of another tenant, in the log."""
    await ensure_topics(settings)
    played = [f"{Way(name, None).key}-1" for name in ("no prediction", "baseline", "model")]
    async with LogWriter(settings, new_id("demo")) as log:
        for name in ("recorded-1", "recorded-2", *played):
            done = (task_started(), task_completed(), task_completed("n2"))
            await log.write(name, run_started(), *done, run_completed(), run_id=new_id("run"))


def test_one_byte_that_differs_makes_the_demo_fail(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kafka: str, clickhouse_url: str, database: str
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", f"{database}.")
    monkeypatch.setenv("CLICKHOUSE_URL", clickhouse_url)
    monkeypatch.setenv("PML_CLICKHOUSE__DATABASE", database)
    monkeypatch.setattr(stage_module, "Stage", PlantedStage)
    code, report = demo(monkeypatch, tmp_path)
    (workflow,) = report["workflows"]
    assert (code, report["ok"]) == (1, False)
    assert not workflow["identical"]
    assert workflow["differences"]
    # The folder is another, the log is whole.
    verified = CliRunner().invoke(app, ["replay", "--from", "kafka", "--verify", "--json"])
    assert verified.exit_code == 0, verified.output
    told = orjson.loads(verified.stdout)
    assert told["events"] > 0
