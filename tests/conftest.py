"""What several rooms' tests share."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Generator, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from pml.streams.local.kafka import EmbeddedKafka
from tests.fixtures.servers import SharedServers
from tests.fixtures.store import clickhouse_url, database, empty_store, migrated_database, migrated_store
from tests.fixtures.workers import KAFKA, told

__all__ = ["clickhouse_url", "database", "empty_store", "kafka", "migrated_database", "migrated_store"]

# A machine that is busy is slow, not wrong: what a test may take is bounded by its own time-out.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


# Files that take minutes, the longest first, most of them waiting. Several workers take a file each: what
# begins last ends last, and a worker that waits leaves the processor to those that compute.
SLOW_FILES = (
    "tests/streams/mcp_server/proxy/test_live.py",
    "tests/streams/demo/test_demo.py",  # whose training compiles what others then find compiled
    "tests/drills/test_kill_points.py",
    "tests/streams/orchestrator/test_crashes.py",
    "tests/simulation/test_mutants.py",
    "tests/streams/cli/test_stack.py",
    "tests/streams/cli/test_decisions.py",
    "tests/streams/mcp_server/test_elicitation_live.py",
    "tests/streams/bridge/test_crashes.py",
    "tests/streams/mcp_server/test_live.py",
    "tests/streams/cli/test_sandbox.py",
    "tests/simulation/test_simulation.py",
    "tests/chaos/test_chaos.py",
    "tests/streams/cli/test_secured_broker.py",
    "tests/deploy/test_workflows.py",
    "tests/streams/gateway/test_live.py",
    "tests/drills/test_pauses.py",
    "tests/drills/test_verify.py",
)


# Of all others so many follow each slow one: the slow ones have all begun when half of the others have ended.
BETWEEN = 10


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Without the collector, which passes over what was collected ever after: that stays to the end.

    It would take a quarter of the time.
    """
    gc.disable()
    try:
        _import_by_turns(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_by_turns(config: pytest.Config) -> None:
    """Each worker begins elsewhere to import the tests, and finds what others have compiled meanwhile.

    On a fresh clone all of them would compile all of them, at the same time.
    """
    place = getattr(config, "workerinput", None)
    if place is None:
        return
    root = Path(__file__).parent
    paths = (path.relative_to(root.parent) for path in root.rglob("test_*.py"))
    names = sorted(".".join(path.with_suffix("").parts) for path in paths)
    worker = int(place["workerid"].removeprefix("gw"))
    first = worker * len(names) // place["workercount"]
    for name in names[first:] + names[:first]:
        with suppress(Exception, pytest.skip.Exception):  # told when it is collected
            import_module(name)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files and others by turns, each kind in its order."""
    files = dict.fromkeys(item.location[0] for item in items)
    place = {name: number * (BETWEEN + 1) for number, name in enumerate(SLOW_FILES)}
    others = sorted((name for name in files if name not in place), key=_turn)
    place |= {name: number // BETWEEN * (BETWEEN + 1) + 1 for number, name in enumerate(others)}
    items.sort(key=lambda item: place[item.location[0]])


def _turn(file: str) -> int:
    """What computes comes last: else all workers wait at the end, and trainings compile at the beginning."""
    return {"streams": 1, "benchmarks": 2, "processors": 2}.get(file.split("/")[1], 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` for the golden traces."""
    parser.addoption("--rewrite", action="store_true", help="write the golden traces anew")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the drills counted, also where several processes ran the tests."""
    counts = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == "drill"
    ]
    if counts:
        terminalreporter.section("drills")
        for value in counts:
            terminalreporter.write_line(value)


def pytest_configure(config: pytest.Config) -> None:
    """Where workers run the tests, this process has what they share."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SharedServers())


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one embedded broker for the whole run; topics and groups need names of their own."""
    address = told(pytestconfig, KAFKA)
    if address is not None:
        yield address
        return
    broker = EmbeddedKafka(tmp_path_factory.mktemp("session"))
    asyncio.run(broker.start())
    yield broker.bootstrap_servers
    asyncio.run(broker.stop())
