"""`pml backtest` on a real broker and a real store, and what a promotion says of it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate
from pml.clickhouse.training.session_values import Stretch, read_session_values
from pml.processors.learning.known_sessions import as_sequences, learned_sources
from pml.processors.learning.model import fitted
from pml.schemas.catalog import CatalogRecord, PermissionRecord, ServerTools, Tool
from pml.schemas.permissions import PermissionFile
from pml.streams.catalog_topic import publish
from pml.streams.client import new_id
from pml.streams.discovery.wordllama_embedding import WordLlamaEmbedding
from pml.streams.learning import artefacts
from pml.streams.settings import Settings
from pml.streams.topics import ensure_topics
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.streams.cli.conftest import Pml

pytestmark = pytest.mark.integration
SESSIONS = 4
READ, SEARCH = "files:read_file", "files:search"


@pytest.fixture
def store(empty_store: Store, clickhouse_url: str, database: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Sessions that read a page and then search what it names."""
    monkeypatch.setenv("CLICKHOUSE_URL", clickhouse_url)
    monkeypatch.setenv("PML_CLICKHOUSE__DATABASE", database)
    migrate(empty_store)
    for number in range(SESSIONS):
        _session(number).insert(empty_store)
    return empty_store


@pytest.fixture
def model_id(store: Store, kafka: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A model of them; both tools may run early."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", kafka)
    monkeypatch.setenv("PML_KAFKA__TOPIC_PREFIX", new_id("cli") + ".")
    asyncio.run(_catalog(Settings.load()))
    return _kept(store, tmp_path / ".pml" / "models")


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


def _kept(store: Store, folder: Path) -> str:
    known = read_session_values(store, Stretch("local"))
    sources = learned_sources(known, {})
    model = fitted(as_sequences(known, {}), WordLlamaEmbedding(), 0, "markov_1", arguments=sources)
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    said = {"serves": "markov_1", "baseline": "markov_1", "data": {}, "created_at": now}
    return artefacts.write(folder, model, {**said, "validation": {"markov_1": {"hit_1": {"mean": 1.0}}}})


def test_a_model_is_held_against_what_went_on_and_promoted_with_it(pml: Pml, model_id: str) -> None:
    refused = pml("backtest", "--model", model_id)
    assert (refused.exit_code, "has ended since" in refused.stderr) == (1, True)
    assert "no backtest goes with it" in pml("model", "promote", model_id).stderr

    told = pml("backtest", "--model", model_id, "--since", "2020-01-01", "--threshold", "0.3", "--json")
    found = orjson.loads(told.stdout)
    assert (found["sessions"], found["runs"], found["known_runs"], found["asked"]) == (4, 8, 8, 8)
    by_tool = {row["tool"]: row for row in found["tools"]}
    assert (by_tool[SEARCH]["calls"], by_tool[SEARCH]["hits"]) == (SESSIONS, SESSIONS)
    assert by_tool[SEARCH]["saved_ms"] == SESSIONS * 400
    assert found["total"]["really"]["begun"] == 0

    people = pml("backtest", "--model", model_id, "--since", "2020-01-01", "--threshold", "1.0", "--no-keep")
    assert ("0.00" in people.stdout, "it may know them" in people.stderr) == (True, True)
    promoted = orjson.loads(pml("model", "promote", model_id, "--json").stdout)
    assert (promoted["backtest"]["runs"], promoted["backtest"]["hits"]) == (8, found["total"]["hits"])
    assert orjson.loads(pml("model", "show", model_id, "--json").stdout)["backtest"]["threshold"] == 0.3
    assert (pml("backtest", "--model", "mdl_000000000000").exit_code) == refused.exit_code
