"""Brings a database to the tables and views of this release.

A migration is a numbered file of statements that may each run again on what they made, so one that was
interrupted is simply run once more, and two processes may migrate at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from pml.clickhouse.client import Store
from pml.clickhouse.retention import EpisodeRetention, keep_episodes, remember_events
from pml.schemas.errors import ConfigurationError

_FILE = re.compile(r"(?P<number>\d{3})_(?P<name>\w+)\.sql")
# A comment or a text, in which a semicolon ends nothing; or one that does.
_SEPARATOR = re.compile(r"--[^\n]*|'(?:[^'\\]|\\.)*'|(?P<end>;)")
_TABLE = """
CREATE TABLE IF NOT EXISTS migrations
(
    number UInt16,
    name String,
    applied_at DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(applied_at)
ORDER BY number
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    number: int
    name: str
    statements: tuple[str, ...]


def migrate(store: Store, episodes: EpisodeRetention | None = None) -> list[str]:
    """Create the store's database and apply what is missing; the names of what was applied.

    Args:
        episodes: how long and how many of them are kept; the defaults where it is absent.

    Raises:
        StoreUnavailable, QueryError
        ConfigurationError: a newer release has migrated this database.
    """
    store.command(f"CREATE DATABASE IF NOT EXISTS {store.address.database}", use_database=False)
    store.command(_TABLE)
    applied = {row[0] for row in store.query("SELECT number FROM migrations FINAL").rows}
    known = migrations()
    _refuse_newer(store, applied, known)
    missing = [migration for migration in known if migration.number not in applied]
    for migration in missing:
        _apply(store, migration)
    keep_episodes(store, episodes or EpisodeRetention())
    if any(migration.name == "episodes" for migration in missing):
        remember_events(store)
    return [f"{migration.number:03} {migration.name}" for migration in missing]


def migrations() -> list[Migration]:
    """All migrations of this release, in order."""
    folder = files("pml.clickhouse") / "migrations"
    found = [(_FILE.fullmatch(file.name), file) for file in folder.iterdir()]
    named = [(match, file.read_text("utf-8")) for match, file in found if match]
    loaded = [
        Migration(int(match["number"]), match["name"], tuple(statements(text))) for match, text in named
    ]
    return sorted(loaded, key=lambda migration: migration.number)


def statements(text: str) -> Iterator[str]:
    """The statements of a file, without what is only a comment."""
    start = 0
    for mark in _SEPARATOR.finditer(text):
        if mark["end"]:
            yield text[start : mark.start()].strip()
            start = mark.end()


def _apply(store: Store, migration: Migration) -> None:
    for statement in migration.statements:
        store.command(statement)
    store.insert("migrations", ["number", "name"], [[migration.number, migration.name]])


def _refuse_newer(store: Store, applied: set[int], known: list[Migration]) -> None:
    newest = max(migration.number for migration in known)
    if applied and max(applied) > newest:
        raise ConfigurationError(
            f"The database {store.address} was migrated to {max(applied)} by a newer release; this one knows "
            f"{newest}. Upgrade PML, or name another database."
        )
