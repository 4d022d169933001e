"""`pml memory query` on a real store."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from pml.clickhouse.client import Store
from tests.clickhouse import history as h
from tests.clickhouse.history import History
from tests.streams.cli.conftest import Pml

pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store, clickhouse_url: str, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("CLICKHOUSE_URL", clickhouse_url)
    monkeypatch.setenv("PML_CLICKHOUSE__DATABASE", migrated_store.address.database)
    for number, (kind, context) in enumerate(
        [
            ("release", {"domain": "docs", "text": "write the release notes of the repository"}),
            ("release", {"domain": "code", "text": "write the changes of the repository"}),
            ("travel", {"domain": "docs", "text": "book a flight to Lisbon"}),
        ]
    ):
        session = History(session_id=f"ses_{number}", offset=100 * number, epoch=100 * number)
        session.add(h.run_started(workflow_type=kind, context=context), run_id=f"run_{number}")
        session.add(h.completed("n1", preview=f"result {number}"), run_id=f"run_{number}")
        session.add(h.failed("n2"), run_id=f"run_{number}")
        session.add(h.speculation("n3", "discarded", "unused", confidence=0.75), run_id=f"run_{number}")
        session.insert(migrated_store)
    return migrated_store


def found(pml: Pml, *arguments: str) -> list[Any]:
    result = pml("memory", "query", *arguments, "--json")
    assert result.exit_code == 0, result.output
    rows: list[Any] = orjson.loads(result.stdout)
    return rows


def runs(rows: list[Any]) -> list[str]:
    return [row["episode"]["workflow_id"] for row in rows]


def test_by_keys(store: Store, pml: Pml) -> None:
    rows = found(pml, "--type", "release", "--domain", "code", "--mode", "exact", "-k", "7")
    assert runs(rows)[:3] == ["run_1"] * 3
    assert [row["keys"] for row in rows] == [3, 3, 3, 2, 2, 2, 1]
    assert runs(rows)[3:6] == ["run_0"] * 3


def test_by_likeness(store: Store, pml: Pml) -> None:
    context = '{"text": "write release notes of this repository", "domain": "docs"}'
    rows = found(pml, "--type", "release", "--context", context, "--mode", "fuzzy", "-k", "20")
    assert set(runs(rows[:3])) == {"run_0"}
    assert "run_2" not in runs(rows)
    assert all(row["similarity"] > 0.7 for row in rows)
    assert found(pml, "--context", '{"text": "zzz"}', "--mode", "fuzzy") == []


def test_hybrid_is_what_it_does_unasked_and_five_are_told(store: Store, pml: Pml) -> None:
    rows = found(pml, "--type", "travel")
    assert len(rows) == 5
    assert runs(rows)[:3] == ["run_2"] * 3


def test_a_person_reads_a_table(store: Store, pml: Pml) -> None:
    result = pml("memory", "query", "--type", "release", "--domain", "docs", "-k", "3")
    assert result.exit_code == 0
    assert "result 0" in result.stdout
    assert "TOOL_ERROR" in result.stdout
    assert "unused" in result.stdout
    assert "0.75" in result.stdout


@pytest.mark.parametrize(
    "arguments", [["--mode", "magic"], ["--context", "{"], ["--context", "[1]"], ["-k", "0"]]
)
def test_a_mistake_is_told(pml: Pml, arguments: list[str]) -> None:
    assert pml("memory", "query", *arguments).exit_code == 2


def test_without_a_store_it_says_so(pml: Pml) -> None:
    assert pml("memory", "query").exit_code == 4
