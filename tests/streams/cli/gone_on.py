"""A real store with sessions that went on, and a broker whose catalog knows their tools."""

from __future__ import annotations

import asyncio

import pytest

from pml.clickhouse.client import Store
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool
from pml.schemas.permissions import PermissionFile
from pml.streams.catalog_topic import publish
from pml.streams.client import new_id
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.clickhouse import history as h
from tests.clickhouse.history import History

SESSIONS = 4
READ, SEARCH = "files:read_file", "files:search"


@pytest.fixture
def store(migrated_store: Store, clickhouse_url: str, kafka: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Sessions that read a page and then search what it names; both tools may run early."""
    monkeypatch.setenv("CLICKHOUSE_URL", clickhouse_url)
    monkeypatch.setenv("PML_CLICKHOUSE__DATABASE", migrated_store.address.database)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", new_id("cli") + ".")
    for number in range(SESSIONS):
        _session(number).insert(migrated_store)
    asyncio.run(_catalog(Settings.load()))
    return migrated_store


def _session(number: int) -> History:
    found = History(f"ses_{number}", 3, 100 * (number + 1), 100 * (number + 1))
    calls = ((READ, {"path": f"{number}.md"}, {"topic": f"t{number}"}), (SEARCH, {"text": f"t{number}"}, {}))
    for place, (tool, arguments, result) in enumerate(calls):
        run_id = f"run_{place}"
        found.add(h.run_started(intent="look", tasks=1, layers=1), run_id)
        found.add(h.completed("n1", tool=tool, arguments=arguments, result=result, tool_ms=400.0), run_id)
        found.add(h.run_completed(), run_id)
    return found


async def _catalog(settings: Settings) -> None:
    await ensure_topics(settings)
    tools = tuple(Tool(name=name.partition(":")[2], definition="1") for name in (READ, SEARCH))
    server = ServerTools(server="files", status="listed", tools=tools)
    entry = {"scope": "readonly", "approval": "auto"}
    file = PermissionFile.model_validate({"tools": {READ: entry, SEARCH: entry}})
    await publish(settings, CatalogRecord(kind="tool", id="files", data=server))
    await publish(
        settings, CatalogRecord(kind="permission", id="file", data=PermissionRecord(file=file, hash="1"))
    )
