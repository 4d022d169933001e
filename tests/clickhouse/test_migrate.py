from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.migrate import migrate, migrations, statements
from pml.schemas.errors import ConfigurationError
from tests.fixtures.patience import PATIENCE_S

pytestmark = pytest.mark.integration

VIEWS = {"episodes", "events", "runs", "tasks", "speculations", "traces"}
STATEMENTS = [statement for migration in migrations() for statement in migration.statements]


def _schema(store: Store) -> list[Any]:
    sql = "SELECT name, create_table_query FROM system.tables WHERE database = {name:String} ORDER BY name"
    found: list[Any] = store.query(sql, {"name": store.address.database}).rows
    return found


def test_a_database_is_created_and_has_every_view(clickhouse_url: str, database: str) -> None:
    with Store.connect(clickhouse_url, database, answer_timeout_s=PATIENCE_S) as store:
        applied = migrate(store)
        numbers = [name[:3] for name in applied]
        assert numbers == sorted(set(numbers))
        assert numbers[0] == "001"
        assert {name for name, _ in _schema(store)} >= VIEWS
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


def test_the_second_time_changes_nothing(empty_store: Store) -> None:
    migrate(empty_store)
    before = _schema(empty_store)
    assert migrate(empty_store) == []
    assert _schema(empty_store) == before


def test_every_statement_may_run_again(empty_store: Store) -> None:
    migrate(empty_store)
    before = _schema(empty_store)
    for statement in STATEMENTS:
        empty_store.command(statement)
    assert _schema(empty_store) == before


def test_one_that_is_interrupted_after_each_statement_is_completed(
    empty_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: set[str] = set()
    with monkeypatch.context() as patch:
        patch.setattr(Store, "command", _interrupting(Store.command, done))
        for _ in set(STATEMENTS):
            with pytest.raises(_Interrupted):
                migrate(empty_store)
        assert done == set(STATEMENTS)
        migrate(empty_store)
    interrupted = _schema(empty_store)
    assert {name for name, _ in interrupted} >= VIEWS
    empty_store.command(f"DROP DATABASE {empty_store.address.database} SYNC", use_database=False)
    assert len(migrate(empty_store)) == len(migrations())
    assert _schema(empty_store) == interrupted


class _Interrupted(Exception):
    """The process died."""


def _interrupting(command: Callable[..., Any], done: set[str]) -> Callable[..., Any]:
    """Runs each statement of a migration, and dies after it the first time."""

    def interrupted(store: Store, sql: str, *args: Any, **options: Any) -> Any:
        found = command(store, sql, *args, **options)
        if sql in STATEMENTS and sql not in done:
            done.add(sql)
            raise _Interrupted
        return found

    return interrupted


def test_a_database_of_a_newer_release_is_refused(empty_store: Store) -> None:
    migrate(empty_store)
    empty_store.insert("migrations", ["number", "name"], [[999, "future"]])
    with pytest.raises(ConfigurationError, match="newer release"):
        migrate(empty_store)


RAW_TABLES = {
    *("events_raw", "runs_raw", "tasks_raw", "speculations_raw"),
    *("thresholds_raw", "episodes_raw", "approvals_raw", "capabilities_raw", "scores_raw"),
}


def test_raw_tables_replace_by_coordinate_and_epoch(empty_store: Store) -> None:
    migrate(empty_store)
    where = "database = currentDatabase() AND name LIKE '%_raw'"
    tables = empty_store.query(f"SELECT name, engine, sorting_key FROM system.tables WHERE {where}").rows
    assert {name for name, _, _ in tables} == RAW_TABLES
    for name, engine, key in tables:
        assert engine == "ReplacingMergeTree"
        assert key.endswith("partition, log_offset")
        # A threshold is a tenant's, not a session's.
        assert ("epoch" in key.split(", ")) is (name != "thresholds_raw")


def test_semicolons_in_comments_and_texts_end_no_statement() -> None:
    text = "-- one; two\nSELECT ';' -- three;\n;\nSELECT 'it\\'s;' ;\n-- end\n"
    assert list(statements(text)) == ["-- one; two\nSELECT ';' -- three;", "SELECT 'it\\'s;'"]
