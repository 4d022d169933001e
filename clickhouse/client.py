"""The one door to ClickHouse: clickhouse-connect over HTTP, embedded or a server, the same.

A store may be used from several threads at once; it blocks, so a coroutine calls it through
`asyncio.to_thread`.
"""

from __future__ import annotations

import json
import logging
import math
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import clickhouse_connect
import orjson
import urllib3
from clickhouse_connect.datatypes.base import ClickHouseType
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError, OperationalError

from pml.clickhouse.address import Address
from pml.clickhouse.answers import pieces
from pml.schemas.errors import ConfigurationError, PMLError, QueryError, StoreUnavailable

# What the driver warns of it also raises, and it prints a traceback where a user should read one sentence.
logging.getLogger("clickhouse_connect").setLevel(logging.ERROR)

# On a network that works a connection stands within milliseconds; whoever waits for this is a person
# who asked for the status, and the sink, which tries again.
CONNECT_TIMEOUT_S = 3
# A batch of the sink takes well under a second; a merge that holds it up, some.
ANSWER_TIMEOUT_S = 60
# What a query is given beyond the time that it may take, to say that it took too long.
PATIENCE_S = 10
# The embedded server answers /ping in 2 ms, a busy one in some hundreds.
PROBE_TIMEOUT_S = 2.0

# Sent with every request, so that no profile of a server changes what the sink relies on.
WRITE_SETTINGS = {
    "async_insert": 0,
    "insert_deduplicate": 1,
    "deduplicate_blocks_in_dependent_materialized_views": 1,
}

# Codes of ClickHouse that pass: it is overloaded, too slow now, read-only for a while, or its disk is full.
_PASSING = frozenset({75, 159, 202, 203, 209, 210, 225, 236, 241, 242, 243, 252, 319, 394, 425, 439, 999})
_PREFIX = re.compile(r"^.*?server response: |(?:Code: \d+\. )?DB::Exception: ", re.DOTALL)
_WIDE = re.compile(r"Int(?:128|256)\b")
_WRONG_CREDENTIALS = frozenset({192, 193, 194, 516})
_READER_HINTS = {
    81: "If PML has never used this ClickHouse, run `pml migrate`.",
    158: "It reads more rows than allowed: narrow it, or raise the limit.",
    159: "It takes longer than allowed: narrow it, or raise the limit.",
    164: "Only statements that read are allowed here.",
    241: "It needs more memory than allowed: narrow it, or raise the limit.",
    307: "It reads more bytes than allowed: narrow it, or raise the limit.",
    396: "Its result is larger than allowed: add a LIMIT, or raise the limit.",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a query of a user may take; over it, the query fails and says which.

    `threads` 0: as many as the store wants. A thread's priority is left as it is: who may lower it may not
    always raise it again.
    """

    rows: int = 10_000
    time_s: float = 30.0
    memory_bytes: int = 1 << 30
    result_bytes: int = 64 << 20
    threads: int = 0

    def settings(self) -> dict[str, Any]:
        own = {"max_threads": self.threads} if self.threads else {}
        return {
            **own,
            "readonly": 1,
            "max_result_rows": self.rows,
            "max_result_bytes": self.result_bytes,
            "max_execution_time": self.time_s,
            "max_memory_usage": self.memory_bytes,
            "result_overflow_mode": "throw",
            # JSON as CONTRACT.md has it: times in RFC 3339, integers as numbers.
            "date_time_output_format": "iso",
            "output_format_json_quote_64bit_integers": 0,
            # But no reader of JSON keeps all digits of a decimal.
            "output_format_json_quote_decimals": 1,
        }


@dataclass(frozen=True, slots=True)
class Rows:
    """The result of a query; values are what JSON has.

    A decimal is a text, and so are the integers of a column of more than 64 bits: as numbers they would lose
    digits.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[list[Any]]

    def as_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a ClickHouse says of itself."""

    version: str
    embedded: bool


class Store:
    """A ClickHouse and a database in it. Close it, or use it in a `with`."""

    def __init__(self, address: Address, answer_timeout_s: int | None = None) -> None:
        self.address = address
        self._answer_timeout_s = answer_timeout_s
        self._client = _connected(address, answer_timeout_s or ANSWER_TIMEOUT_S)
        self._patient: dict[int, Client] = {}
        self._connecting = threading.Lock()
        self._types: dict[tuple[str, tuple[str, ...]], Sequence[ClickHouseType]] = {}

    @classmethod
    def connect(cls, url: str, database: str | None = None, *, answer_timeout_s: int | None = None) -> Store:
        """A store that answers. The database need not exist yet.

        Args:
            answer_timeout_s: nobody waits longer, whatever it is asked; None: a query is given as long as it
                may take, all else a minute.

        Raises:
            StoreUnavailable: it does not answer within `CONNECT_TIMEOUT_S`.
            ConfigurationError: the URL is none, or its user and password are refused.
        """
        return cls(Address.parse(url, database), answer_timeout_s)

    def command(
        self, sql: str, *, settings: Mapping[str, Any] | None = None, use_database: bool = True
    ) -> Any:
        """Run a statement that changes something; its small answer, if it has one.

        Raises:
            StoreUnavailable, QueryError
        """
        with _translated(self.address):
            return self._client.command(sql, settings=dict(settings or {}), use_database=use_database)

    def insert(
        self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, token: str | None = None
    ) -> int:
        """Insert rows and wait until they are stored; how many were written, those of views included.

        With the same `token` again nothing is stored twice, not by the views either.

        Raises:
            StoreUnavailable: try again with the same token.
            QueryError: these rows will never be taken.
        """
        names = tuple(columns)
        settings = {"insert_deduplication_token": token} if token is not None else {}
        with _translated(self.address):
            types = self._types_of(table, names)
            summary = self._client.insert(table, rows, names, column_types=types, settings=settings)
        return int(summary.written_rows)

    def query(
        self, sql: str, parameters: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> Rows:
        """Run one statement that only reads, within limits.

        Raises:
            QueryError: it would write, is wrong, or takes more than the limits allow.
            StoreUnavailable
        """
        allowed = limits or Limits()
        with _translated(self.address, _READER_HINTS):
            body = self._waiting_for(allowed).raw_query(
                sql.rstrip().rstrip(";"),
                parameters=dict(parameters or {}),
                settings=allowed.settings(),
                fmt="JSONCompact",
            )
        return _rows(body)

    @contextmanager
    def stream(
        self, sql: str, fmt: str, parameters: Mapping[str, Any] | None = None, limits: Limits | None = None
    ) -> Iterator[Iterator[bytes]]:
        """The answer of a statement that only reads, in a format of ClickHouse's, piece by piece.

        Raises:
            QueryError: it would write, is wrong, or takes more than the limits allow.
            StoreUnavailable
        """
        allowed = limits or Limits()
        with _translated(self.address, _READER_HINTS):
            answer = self._waiting_for(allowed).raw_stream(
                sql.rstrip().rstrip(";"),
                parameters=dict(parameters or {}),
                settings=allowed.settings(),
                fmt=fmt,
            )
            try:
                yield pieces(answer)
            finally:
                answer.close()

    @property
    def client(self) -> Client:
        """clickhouse-connect's own client, for whole columns as arrays. Its errors are not translated."""
        return self._client

    def close(self) -> None:
        for each in (self._client, *self._patient.values()):
            each.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _waiting_for(self, limits: Limits) -> Client:
        """One that waits as long as a query may take: the embedded engine says nothing before its result."""
        needed_s = math.ceil(limits.time_s) + PATIENCE_S
        if self._answer_timeout_s is not None or needed_s <= ANSWER_TIMEOUT_S:
            return self._client
        with self._connecting:
            if needed_s not in self._patient:
                self._patient[needed_s] = _connected(self.address, needed_s)
            return self._patient[needed_s]

    def _types_of(self, table: str, columns: tuple[str, ...]) -> Sequence[ClickHouseType]:
        """The types of columns, asked for once: a migration never changes one."""
        key = (table, columns)
        if key not in self._types:
            self._types[key] = self._client.create_insert_context(table, columns).column_types
        return self._types[key]


def _rows(body: bytes) -> Rows:
    answer = orjson.loads(body)
    names, types = (tuple(column[key] for column in answer["meta"]) for key in ("name", "type"))
    rows = answer["data"]
    if wide := [place for place, kind in enumerate(types) if _WIDE.search(kind)]:
        for row, exact in zip(rows, json.loads(body, parse_int=str)["data"], strict=True):
            for place in wide:
                row[place] = exact[place]
    return Rows(names, types, rows)


def _connected(address: Address, answer_timeout_s: int) -> Client:
    with _translated(address):
        client = clickhouse_connect.get_client(
            interface=address.scheme,
            host=address.host,
            port=address.port,
            username=address.user,
            password=address.password,
            compress="lz4",
            connect_timeout=CONNECT_TIMEOUT_S,
            send_receive_timeout=answer_timeout_s,
            query_retries=0,
            client_name="pml",
            autogenerate_session_id=False,
            show_clickhouse_errors="scrub",
            settings=dict(WRITE_SETTINGS),
        )
    client.database = address.database
    return client


def probe(url: str, timeout_s: float = PROBE_TIMEOUT_S) -> Answer:
    """Ask a ClickHouse who it is, quickly.

    Raises:
        StoreUnavailable: no answer in time.
        ConfigurationError: the URL is none, or its user and password are refused.
    """
    address = Address.parse(url)
    request = {"headers": urllib3.make_headers(basic_auth=f"{address.user}:{address.password}")}
    timeout = urllib3.Timeout(connect=timeout_s, read=timeout_s)
    try:
        with urllib3.PoolManager(timeout=timeout, retries=False) as pool:
            answer = pool.request("GET", f"{address.base_url}/?query=SELECT%20version()", **request)
    except urllib3.exceptions.HTTPError as error:
        raise _unavailable(address) from error
    if answer.status in (401, 403):
        raise _refused(address)
    if answer.status != 200:
        raise _unavailable(address)
    return Answer(answer.data.decode().strip(), "x-pml-embedded" in answer.headers)


@contextmanager
def _translated(address: Address, hints: Mapping[int, str] | None = None) -> Iterator[None]:
    """clickhouse-connect's errors as PML's. A code with a hint is the fault of the query."""
    try:
        yield
    except ClickHouseError as error:
        raise _translate(error, address, hints or {}) from error
    except UnicodeEncodeError as error:
        raise QueryError(
            "What was sent has half of a character that UTF-16 writes as two, which no text can hold."
        ) from error
    except urllib3.exceptions.HTTPError as error:
        # In the middle of an answer, which the driver leaves to its reader.
        raise _unavailable(address) from error


def _translate(error: ClickHouseError, address: Address, hints: Mapping[int, str]) -> PMLError:
    number = getattr(error, "code", None)
    if number is None:
        # Not ClickHouse's own error: the connection failed, or the client refuses what it was given.
        outside = isinstance(error, OperationalError) or type(error) is DatabaseError
        return _unavailable(address) if outside else QueryError(str(error))
    if number in _WRONG_CREDENTIALS:
        return _refused(address)
    message = _message(error)
    if number in hints:
        return QueryError(f"{message} {hints[number]}", number=number)
    if number in _PASSING:
        return StoreUnavailable(f"ClickHouse at {address} cannot do this now: {message}", number=number)
    return QueryError(message, number=number)


def _message(error: ClickHouseError) -> str:
    """ClickHouse's sentence without the driver's and ClickHouse's own prefixes."""
    return _PREFIX.sub("", str(error)).strip()


def _unavailable(address: Address) -> StoreUnavailable:
    return StoreUnavailable(f"ClickHouse at {address} does not answer. Is it running? `pml status` tells.")


def _refused(address: Address) -> ConfigurationError:
    return ConfigurationError(
        f"ClickHouse at {address} refuses user {address.user!r}: check user and password in CLICKHOUSE_URL."
    )
