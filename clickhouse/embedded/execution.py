"""A query that runs: read block by block, closed once, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pml.clickhouse.embedded.errors import ClickHouseError, from_engine
from pml.clickhouse.embedded.statement import Statement

T = TypeVar("T")

# A block is read in far less.
KILL_AGAIN_S = 0.2


@dataclass(slots=True)
class Summary:
    """What `X-ClickHouse-Summary` reports."""

    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    result_rows: int = 0
    elapsed_ns: int = 0

    def add(self, result: Any) -> None:
        self.read_rows += result.storage_rows_read()
        self.read_bytes += result.storage_bytes_read()
        self.result_rows += result.rows_read()
        self.written_rows += result.rows_written()
        self.written_bytes += result.bytes_written()
        self.elapsed_ns = max(self.elapsed_ns, int(result.elapsed() * 1e9))


class Execution:
    """One query on a connection of its own. `read` gives the next bytes of the result, None at its end.

    `kill` ends the query while it is read; without one it is waited for.
    """

    def __init__(self, connection: Any, version: str, kill: Callable[[], None] | None = None) -> None:
        self.summary = Summary()
        self._connection = connection
        self._version = version
        self._kill = kill
        # The engine lets one thread at a time use a connection; closing waits for the block being read.
        self._lock = threading.Lock()
        self._ended = False

    def read(self) -> bytes | None:
        """The next bytes, or None.

        Raises:
            ClickHouseError: the query failed, perhaps in the middle of its result.
        """
        with self._lock:
            return None if self._ended else self._next()

    def close(self) -> None:
        """Stop the query if it still runs. Safe to call again."""
        self._take()
        try:
            if self._connection is not None:
                self._stop()
                self._connection.close()
            self._ended, self._connection = True, None
        finally:
            self._lock.release()

    def _take(self) -> None:
        """The lock. What is read still is killed, and again until it is: a query may only be beginning."""
        while not self._lock.acquire(timeout=-1 if self._kill is None else KILL_AGAIN_S):
            if self._kill is not None:
                with suppress(ClickHouseError):
                    self._kill()

    def _next(self) -> bytes | None:
        raise NotImplementedError

    def _stop(self) -> None:
        """Nothing runs between two reads, unless a subclass says so."""

    def _call(self, work: Callable[[], T]) -> T:
        return call(work, self._version)


class Whole(Execution):
    """A statement answered at once."""

    def __init__(
        self,
        connection: Any,
        version: str,
        sql: bytes,
        output_format: str,
        kill: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(connection, version, kill)
        self._sql, self._format = sql, output_format

    def _next(self) -> bytes | None:
        self._ended = True
        result = self._call(lambda: self._connection.query(self._sql, self._format))
        self.summary.add(result)
        return bytes(result.bytes())


class Stream(Execution):
    """A SELECT read block by block, in constant memory."""

    def __init__(
        self, connection: Any, version: str, sql: bytes, output_format: str, kill: Callable[[], None]
    ) -> None:
        super().__init__(connection, version, kill)
        self._cursor = self._call(lambda: connection.send_query(sql, output_format))

    def _next(self) -> bytes | None:
        block = self._call(lambda: self._connection.streaming_fetch_result(self._cursor))
        if block is None or block.rows_read() == 0:
            self._ended = True
            return None
        self.summary.add(block)
        return bytes(block.bytes())

    def _stop(self) -> None:
        if not self._ended:
            self._connection.streaming_cancel_query(self._cursor)


class Insert(Whole):
    """An INSERT whose data rest in a file of their own until it has ended.

    Not chDB's streaming insert: it swallows what fails behind the parser, a view or a constraint
    (chdb-core 26.9), and says that all is well.
    """

    def __init__(self, connection: Any, version: str, statement: Statement, file: Path) -> None:
        head, tail = statement.sql[: statement.source_at], statement.sql[statement.source_at :]
        source = f" FROM INFILE {quoted(str(file))} ".encode()
        sql = b"%s%s%s FORMAT %s" % (head, source, tail, str(statement.data_format).encode())
        super().__init__(connection, version, sql, "TabSeparated")
        self._file = file
        file.write_bytes(statement.data)

    def _next(self) -> bytes | None:
        super()._next()
        return None

    def _stop(self) -> None:
        self._file.unlink(missing_ok=True)


def quoted(text: str, quote: str = "'") -> str:
    """Text as a literal or, with other quotes, a name of SQL."""
    escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    return f"{quote}{escaped}{quote}"


def call(work: Callable[[], T], version: str) -> T:
    """What the engine answers; its RuntimeError becomes a ClickHouseError."""
    try:
        return work()
    except ClickHouseError:
        raise
    except RuntimeError as error:
        raise from_engine(str(error), version) from None
