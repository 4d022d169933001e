"""`pml demo`: a stack, real servers, every example workflow twice, and what ClickHouse knows afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pml.clickhouse.client import Store
from pml.clickhouse.query import run_query
from pml.schemas.errors import WaitedTooLong
from pml.schemas.workflow import Workflow
from pml.streams.client import IntentProducer, ResultReader
from pml.streams.connection import store_url
from pml.streams.demo.programs import ProgramExample, learn_all
from pml.streams.demo.report import DemoReport, IntentReport, WorkflowReport, compare
from pml.streams.demo.runs import Asked, Runner
from pml.streams.demo.stage import Stage
from pml.streams.local.supervisor import supervised
from pml.streams.settings import Settings

QUERIES = ("latency_saved", "hit_rate_by_tool_and_hour", "slowest_tools")
# The sink is at most its batch wait behind; a machine may be busy.
STORE_TIMEOUT_S = 60
STORE_POLL_S = 0.1

Say = Callable[[str], None]


async def play(
    stage: Stage, workflows: Sequence[Workflow], programs: Sequence[ProgramExample], say: Say
) -> DemoReport:
    """Run all workflows without and with speculation on a stack of the demo's own, then learn the programs.

    `say` is told what is being done.

    Raises:
        PMLError: the stack did not come up, or a run did not end.
    """
    say("building the folder and the repository that the workflows read")
    await asyncio.to_thread(stage.set_up)
    with stage.environment():
        async with supervised(stage.settings, say):
            reports, intents, run_ids = await _run_all(stage, workflows, programs, say)
            say("waiting for ClickHouse to have everything")
            queries = await _ask(stage.settings, run_ids)
            say("stopping the stack")
    return DemoReport(reports, queries, str(stage.settings.data_dir), intents)


async def _run_all(
    stage: Stage, workflows: Sequence[Workflow], programs: Sequence[ProgramExample], say: Say
) -> tuple[tuple[WorkflowReport, ...], tuple[IntentReport, ...], list[str]]:
    async with IntentProducer(stage.settings) as producer, ResultReader(stage.settings) as results:
        runner = Runner(stage, producer, results)
        say("warming up: each server is called once")
        await runner.run(Asked(_warm_up(), "off"), [])
        reports, run_ids = await _compare_all(runner, workflows, say)
        learned = await learn_all(runner, stage.settings, programs, say)
    ids = [*run_ids, *(run_id for _, pair in learned for run_id in pair)]
    return reports, tuple(report for report, _ in learned), ids


async def _compare_all(
    runner: Runner, workflows: Sequence[Workflow], say: Say
) -> tuple[tuple[WorkflowReport, ...], list[str]]:
    reports: list[WorkflowReport] = []
    run_ids: list[str] = []
    for number, workflow in enumerate(workflows, 1):
        name = workflow.name or f"workflow {number}"
        say(f"{number}/{len(workflows)} {name}: without speculation")
        plain = await runner.measure(Asked(workflow, "off"))
        say(f"{number}/{len(workflows)} {name}: with speculation")
        speculative = await runner.measure(Asked(workflow, "on"))
        reports.append(compare(name, len(workflow.tasks), plain, speculative))
        run_ids += [plain.summary.run_id, speculative.summary.run_id]
    return tuple(reports), run_ids


def _warm_up() -> Workflow:
    """Servers start with their first call; that second belongs to neither side of the comparison."""
    repository = {"type": "parameter", "parameter_name": "repository"}
    return Workflow.model_validate(
        {
            "name": "warm-up",
            "context": {"repository": "."},
            "tasks": [
                {"id": "git", "tool": "git:git_status", "arguments": {"repo_path": repository}},
                {"id": "time", "tool": "time:get_current_time", "arguments": {"timezone": "UTC"}},
                {"id": "files", "tool": "files:list_dir", "arguments": {"path": "."}},
            ],
        }
    )


async def _ask(settings: Settings, run_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    def ask() -> dict[str, list[dict[str, Any]]]:
        with Store.connect(store_url(settings), settings.clickhouse.database) as store:
            return {name: run_query(store, name).as_dicts() for name in QUERIES}

    await until_stored(settings, run_ids)
    return await asyncio.to_thread(ask)


async def until_stored(settings: Settings, run_ids: Sequence[str]) -> None:
    """Wait until ClickHouse has the end of every run.

    Raises:
        WaitedTooLong: the sink is behind by more than a minute.
    """
    try:
        async with asyncio.timeout(STORE_TIMEOUT_S):
            while await asyncio.to_thread(_missing, settings, run_ids):
                await asyncio.sleep(STORE_POLL_S)
    except TimeoutError:
        raise WaitedTooLong(
            "ClickHouse does not have all runs yet; `pml status` shows the sink's lag"
        ) from None


def _missing(settings: Settings, run_ids: Sequence[str]) -> bool:
    with Store.connect(store_url(settings), settings.clickhouse.database) as store:
        rows = store.query(
            "SELECT count() FROM runs WHERE run_id IN {ids:Array(String)} AND ended_at IS NOT NULL",
            parameters={"ids": list(run_ids)},
        ).rows
    return int(rows[0][0]) < len(set(run_ids))
