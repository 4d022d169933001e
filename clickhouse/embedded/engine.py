"""chDB: one engine in this process, one short-lived connection a query.

A connection of chDB carries settings, current database and one running query. Opening one costs 0.4 ms,
so each query has its own: nothing leaks from one into another, and several run side by side.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from pml.clickhouse.embedded.errors import (
    INTO_OUTFILE_NOT_ALLOWED,
    SYNTAX_ERROR,
    UNKNOWN_SETTING,
    ClickHouseError,
)
from pml.clickhouse.embedded.execution import Execution, Insert, Stream, Whole, call, quoted
from pml.clickhouse.embedded.statement import Statement

# The layer under chDB's Python API: it alone leaves signals to others and says what a statement would do.
_chdb: Any = import_module("chdb._chdb")

# Formats whose blocks stand for themselves, so that a result may be sent block by block.
STREAMED_FORMATS = frozenset({"Native", "TabSeparated", "TSV", "CSV", "JSONEachRow", "RowBinary"})

DEFAULT_SETTINGS: Mapping[str, str] = {
    # As a server has them; chDB's own defaults are those of clickhouse-local.
    "implicit_select": "0",
    "allow_introspection_functions": "0",
    # clickhouse-connect waits 300 s for an answer by default; nobody reads what takes longer.
    "max_execution_time": "300",
    # One query must not take the memory of a small machine from the rest of the stack.
    "max_memory_usage": str(2 << 30),
}
_SETTING_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Query:
    """A statement and what it runs under; `param_*` among the settings are its parameters."""

    statement: Statement
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    default_format: str = "TabSeparated"

    @property
    def output_format(self) -> str:
        return self.statement.output_format or self.default_format


class Engine:
    """The engine over one folder; one a process (a second one on the folder is refused by its lock)."""

    def __init__(self, folder: Path) -> None:
        # Signals belong to the server around it.
        _chdb.set_signal_handlers_enabled(0)
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = str(folder / "data")
        self._root = _chdb.connect(self._folder)
        self._incoming = _emptied(folder / "incoming")
        row = self._root.query("SELECT version(), timezone(), hostName()", "TabSeparated").bytes().decode()
        self.version, self.timezone, self.host = row.rstrip("\n").split("\t")

    def start(self, query: Query) -> Execution:
        """Begin a query. Blocks; so do the methods of what it returns.

        Raises:
            ClickHouseError: the engine refuses it.
        """
        connection = call(lambda: _chdb.connect(self._folder), self.version)
        try:
            only_reads = self._prepare(connection, query)
            return self._begin(connection, query, only_reads)
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Let go of the folder."""
        self._root.close()

    def _prepare(self, connection: Any, query: Query) -> bool:
        """Whether its statement only reads."""
        found = self._classified(connection, query.statement)
        if query.database:
            use = f"USE {quoted(query.database, '`')}"
            call(lambda: connection.query(use), self.version)
        settings = self._set_statement({**DEFAULT_SETTINGS, **query.settings})
        call(lambda: connection.query(settings), self.version)
        return bool(found == _chdb.query_class.READ_ONLY)

    def _begin(self, connection: Any, query: Query, only_reads: bool) -> Execution:
        statement = query.statement
        if statement.data_format is not None:
            return Insert(connection, self.version, statement, self._incoming / uuid.uuid4().hex)
        if not only_reads or statement.kind not in ("SELECT", "WITH"):
            return Whole(connection, self.version, statement.sql, query.output_format)
        # What only reads nobody needs once its client has gone. The engine names queries by itself, and tells
        # of one that runs how its text begins.
        mark = f"/* {uuid.uuid4().hex} */"
        kind = Stream if query.output_format in STREAMED_FORMATS else Whole
        sql = mark.encode() + statement.sql
        return kind(connection, self.version, sql, query.output_format, lambda: self._kill(mark))

    def _kill(self, mark: str) -> None:
        connection = call(lambda: _chdb.connect(self._folder), self.version)
        try:
            found = f"KILL QUERY WHERE startsWith(query, {quoted(mark)}) ASYNC"
            call(lambda: connection.query(found), self.version)
        finally:
            connection.close()

    def _classified(self, connection: Any, statement: Statement) -> Any:
        """The class of a statement that a server would take over HTTP: one alone, which writes no file. The
        engine would write it, even where `readonly` is set."""
        found = connection.classify_query(statement.sql)
        if found["statement_count"] > 1:
            raise ClickHouseError(SYNTAX_ERROR, "Multi-statements are not allowed.", self.version)
        control = found["query_class"] == _chdb.query_class.CONTROL
        if control and statement.gives_result and statement.kind != "KILL":
            raise ClickHouseError(INTO_OUTFILE_NOT_ALLOWED, "INTO OUTFILE is not allowed.", self.version)
        return found["query_class"]

    def _set_statement(self, settings: Mapping[str, str]) -> str:
        """All at once, so that `readonly` among them holds for what follows and not for the others."""
        for name in settings:
            if not _SETTING_NAME.fullmatch(name):
                raise ClickHouseError(UNKNOWN_SETTING, f"Unknown setting {quoted(name)}.", self.version)
        return "SET " + ", ".join(f"{name} = {quoted(value)}" for name, value in settings.items())


def _emptied(folder: Path) -> Path:
    """The folder, without what an earlier process left when it was killed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
