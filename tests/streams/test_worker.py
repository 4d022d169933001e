import asyncio
import os
import subprocess
import sys
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError, LogCorrupted, PMLError
from pml.streams import worker
from pml.streams.health import Health, read_all
from pml.streams.settings import Settings
from pml.streams.worker import FROZEN_EXIT_CODE, StallWatch, load_role, run_roles
from tests.fixtures.patience import PATIENCE_S

LAGGING = {"lag": 5, "position": 10}


class Steady:
    name = "steady"

    def __init__(self, settings: Settings, health: Health) -> None:
        self.health = health

    async def run(self, stop: asyncio.Event) -> None:
        self.health.ready()
        await stop.wait()


class Failing(Steady):
    name = "failing"

    async def run(self, stop: asyncio.Event) -> None:
        raise LogCorrupted("the log cannot be read at offset 7")


class Leaving(Steady):
    name = "leaving"

    async def run(self, stop: asyncio.Event) -> None:
        self.health.ready()


class Torn(Steady):
    """It reads the result of a task that another of its tasks has cancelled."""

    name = "torn"

    async def run(self, stop: asyncio.Event) -> None:
        self.health.ready()
        flush = asyncio.create_task(stop.wait())
        flush.cancel()
        await asyncio.wait({flush})
        flush.result()


class Stuck(Steady):
    name = "stuck"

    async def run(self, stop: asyncio.Event) -> None:
        self.health.ready(**LAGGING)
        await stop.wait()


class Deaf(Steady):
    """It does not hear that it should stop, as Faust where its broker is gone."""

    name = "deaf"

    async def run(self, stop: asyncio.Event) -> None:
        self.health.ready()
        await asyncio.Event().wait()


class Stubborn(Deaf):
    name = "stubborn"

    async def run(self, stop: asyncio.Event) -> None:
        with suppress(asyncio.CancelledError):
            await super().run(stop)
        await asyncio.sleep(0.5)


@pytest.fixture
def settings(kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    roles = {
        role.name: f"{__name__}:{role.__name__}"
        for role in (Steady, Failing, Leaving, Torn, Stuck, Deaf, Stubborn)
    }
    monkeypatch.setattr(worker, "ROLES", roles)
    prefix = f"w{uuid.uuid4().hex[:8]}."
    return Settings.load(data_dir=tmp_path, kafka={"bootstrap_servers": kafka, "topic_prefix": prefix})


def states(settings: Settings) -> dict[str, str]:
    return {record.role: record.state for record in read_all(settings.data_dir)}


async def until_ready(settings: Settings, role: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while states(settings).get(role) != "ready":
            await asyncio.sleep(0.02)


@pytest.mark.integration
async def test_roles_run_until_they_are_told_to_stop(settings: Settings) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(run_roles(settings, ["steady"], stop))
    await until_ready(settings, "steady")
    (record,) = read_all(settings.data_dir)
    scraped = await asyncio.to_thread(lambda: urllib.request.urlopen(record.facts["metrics"]).read())
    assert b"pml_build_info" in scraped
    stop.set()
    await running
    assert states(settings) == {"steady": "stopped"}


@pytest.mark.integration
async def test_one_failing_role_stops_the_others_and_ends_the_process(settings: Settings) -> None:
    with pytest.raises(LogCorrupted, match="offset 7"):
        await run_roles(settings, ["steady", "failing"], asyncio.Event())
    assert states(settings) == {"steady": "stopped", "failing": "failed"}


@pytest.mark.integration
async def test_a_role_that_leaves_without_being_told_is_an_error(settings: Settings) -> None:
    with pytest.raises(PMLError, match="without being told"):
        await run_roles(settings, ["leaving"], asyncio.Event())


@pytest.mark.integration
async def test_a_role_that_a_cancelled_task_of_its_own_ends_has_failed(settings: Settings) -> None:
    with pytest.raises(RuntimeError, match="was cancelled by another"):
        await run_roles(settings, ["steady", "torn"], asyncio.Event())
    assert states(settings) == {"steady": "stopped", "torn": "failed"}


@pytest.mark.integration
@pytest.mark.parametrize("name", ["deaf", "stubborn"])
async def test_a_role_that_does_not_stop_when_told_is_cut_off_in_bounded_time(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(worker, "STOP_TIMEOUT_S", 2)
    monkeypatch.setattr(worker, "CANCEL_TIMEOUT_S", 0.1)
    stop = asyncio.Event()
    running = asyncio.create_task(run_roles(settings, ["steady", name], stop))
    await until_ready(settings, name)
    stop.set()
    with pytest.raises(PMLError, match=f"^{name} did not stop within 2 s"):
        async with asyncio.timeout(PATIENCE_S):
            await running
    assert states(settings)["steady"] == "stopped"
    await asyncio.sleep(0.6 if name == "stubborn" else 0)


@pytest.mark.integration
async def test_a_role_that_stands_still_with_work_waiting_ends_itself(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "WATCH_S", 0.01)
    monkeypatch.setattr(worker, "StallWatch", lambda: StallWatch(stall_s=0.05))
    with pytest.raises(PMLError, match="5 records waiting and stood still"):
        await run_roles(settings, ["stuck"], asyncio.Event())
    assert states(settings) == {"stuck": "failed"}


def test_a_role_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(ConfigurationError, match="orchestrator, bridge, metrics, thresholds, sink"):
        load_role("nobody")


def test_standing_still_counts_only_with_lag_and_without_a_reason() -> None:
    watch = StallWatch(stall_s=60)
    assert watch.stalled_for(LAGGING, 0) is None
    assert watch.stalled_for(LAGGING, 59) is None
    assert watch.stalled_for(LAGGING, 61) == 61
    assert watch.stalled_for(LAGGING | {"position": 11}, 62) is None
    assert watch.stalled_for(LAGGING | {"position": 11}, 121) is None
    assert watch.stalled_for(LAGGING | {"position": 11, "blocked": "ClickHouse"}, 200) is None
    assert watch.stalled_for(LAGGING | {"position": 11}, 259) is None
    assert watch.stalled_for({"lag": 0, "position": 11}, 400) is None
    assert watch.stalled_for(LAGGING | {"position": 11}, 459) is None
    assert watch.stalled_for(LAGGING | {"position": 11}, 460) == 60


def test_a_loop_that_does_not_turn_any_more_ends_the_process() -> None:
    program = (
        "import asyncio, faulthandler, time\n"
        "from pml.streams.worker import end_if_frozen\n"
        "async def main():\n"
        "    end_if_frozen(asyncio.get_running_loop(), 1)\n"
        "    time.sleep(30)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == FROZEN_EXIT_CODE
    assert "in main" in done.stderr


def test_a_process_that_was_told_to_stop_ends_whatever_its_libraries_wait_for() -> None:
    code = (
        "import threading; from pml.streams.worker import end_in_time;"
        "end_in_time(0.2); threading.Thread(target=threading.Event().wait).start()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == FROZEN_EXIT_CODE, done.stderr
    assert "in wait" in done.stderr


def test_a_process_whose_role_failed_ends_whatever_its_libraries_wait_for(tmp_path: Path) -> None:
    code = (
        "import threading\n"
        "from pml.schemas.errors import BrokerUnavailable\n"
        "from pml.streams import worker\n"
        "from pml.streams.settings import Settings\n"
        "async def fail(settings, names, stop):\n"
        "    threading.Thread(target=threading.Event().wait).start()\n"
        "    raise BrokerUnavailable('no broker')\n"
        "worker.run_roles, worker.EXIT_TIMEOUT_S = fail, 0.2\n"
        f"worker.run_worker(Settings.load(data_dir={str(tmp_path)!r}), ['sink'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == FROZEN_EXIT_CODE, done.stderr
    assert "no broker" in done.stderr


@pytest.mark.integration
def test_a_worker_process_stops_cleanly_on_sigterm(settings: Settings, tmp_path: Path) -> None:
    environment = os.environ | settings.environment()
    command = [sys.executable, "-m", "pml.streams.cli", "worker", "sink"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            asyncio.run(until_ready(settings, "sink"))
        finally:
            process.terminate()
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert states(settings) == {"sink": "stopped"}


def test_the_changelogs_made_ahead_are_those_that_the_roles_use() -> None:
    from pml.streams.orchestrator.table import NAME
    from pml.streams.projections.table import changelog_topic
    from pml.streams.projections.thresholds.table import changelog_topic as thresholds_topic

    settings = Settings.load()
    assert worker.TABLES["orchestrator"][0] == NAME
    assert changelog_topic(settings) == f"{settings.group('metrics')}-{worker.TABLES['metrics'][0]}-changelog"
    table = worker.TABLES["thresholds"][0]
    assert thresholds_topic(settings) == f"{settings.group('thresholds')}-{table}-changelog"
