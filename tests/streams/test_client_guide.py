"""The code of docs/client.md, as it stands there, against a real orchestrator, bridge and MCP server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pml.streams.client import new_id
from pml.streams.health import read_all
from pml.streams.settings import Settings
from tests.fixtures.patience import PATIENCE_S

GUIDE = Path(__file__).parents[2] / "docs" / "client.md"
SERVERS = (
    f"mcpServers: {{time: {{command: {sys.executable}, args: [-m, mcp_server_time, --local-timezone, UTC]}}}}"
)
PERMISSIONS = 'tools: {"time:*": {scope: minimal, approval: auto, cacheable: false}}'
WORKER = (
    "from pml.streams.worker import run_worker; from pml.streams.settings import Settings; "
    "run_worker(Settings.load(), ['orchestrator', 'bridge'])"
)


@pytest.fixture
def settings(kafka: str, tmp_path: Path) -> Iterator[Settings]:
    """A worker with the time server; nobody else shares its topics."""
    (tmp_path / "servers.yaml").write_text(SERVERS)
    (tmp_path / "permissions.yaml").write_text(PERMISSIONS)
    settings = Settings.load(
        data_dir=tmp_path / "data",
        mcp_servers=tmp_path / "servers.yaml",
        mcp_permissions=tmp_path / "permissions.yaml",
        kafka={"bootstrap_servers": kafka, "topic_prefix": new_id("guide") + "."},
    )
    settings.data_dir.mkdir()
    environment = {**os.environ, **settings.environment()}
    worker = subprocess.Popen([sys.executable, "-c", WORKER], env=environment, cwd=tmp_path)
    try:
        until_ready(settings, worker)
        yield settings
    finally:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE_S) == 0


def until_ready(settings: Settings, worker: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while {record.role for record in read_all(settings.data_dir) if record.state == "ready"} != {
        "orchestrator",
        "bridge",
    }:
        assert worker.poll() is None, "the worker ended"
        assert time.monotonic() < deadline, "the worker did not become ready"
        time.sleep(0.05)


def guide() -> dict[str, Any]:
    """The names that the guide's blocks define, one after the other."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


@pytest.mark.integration
def test_the_guide_does_what_it_says(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    names = guide()

    async def follow() -> tuple[Any, str, list[str]]:
        submission, summary = await names["plan"](settings)
        full, history = await asyncio.gather(
            names["full"](settings, summary), names["history"](settings, submission)
        )
        return summary, full, history

    summary, full, history = asyncio.run(follow())
    assert capsys.readouterr().out.startswith("completed ")
    assert {task: result.status for task, result in summary.results.items()} == {
        "n1": "completed",
        "n2": "completed",
    }
    assert '"Asia/Tokyo"' in full
    assert (history[0], history[-1]) == ("run.started", "run.completed")
