"""What PML relies on in ClickHouse's HTTP interface, as cases that hold for any server of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import clickhouse_connect
import lz4.frame
import pytest
import urllib3
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import DatabaseError, StreamFailureError

from pml.clickhouse.address import Address


@dataclass(frozen=True)
class Server:
    """A ClickHouse and a database that the case may fill."""

    address: Address

    @contextmanager
    def client(self, **options: Any) -> Iterator[Client]:
        where = self.address
        client = clickhouse_connect.get_client(
            interface=where.scheme,
            host=where.host,
            port=where.port,
            username=where.user,
            password=where.password,
            database=where.database,
            **options,
        )
        try:
            yield client
        finally:
            client.close()

    def request(self, body: bytes = b"", **params: str) -> urllib3.BaseHTTPResponse:
        return self.send(body, {}, **params)

    def send(self, body: bytes, headers: dict[str, str], **params: str) -> urllib3.BaseHTTPResponse:
        where = self.address
        login = urllib3.make_headers(basic_auth=f"{where.user}:{where.password}")
        query = urlencode({"database": where.database, **params})
        with urllib3.PoolManager(retries=False) as pool:
            return pool.request(
                "POST",
                f"{where.scheme}://{where.host}:{where.port}/?{query}",
                body=body,
                headers={**login, **headers},
                decode_content=False,
            )


CASES: dict[str, Callable[[Server], None]] = {}


def case(check: Callable[[Server], None]) -> Callable[[Server], None]:
    CASES[check.__name__] = check
    return check


def _table(client: Client, engine: str = "ReplacingMergeTree ORDER BY a", name: str = "t") -> None:
    client.command(
        f"CREATE TABLE {name} (a UInt64, s String, kind LowCardinality(String), at DateTime64(6, 'UTC'),"
        f" n Nullable(Float64)) ENGINE = {engine} SETTINGS non_replicated_deduplication_window = 100"
    )


COLUMNS = ["a", "s", "kind", "at", "n"]
AT = datetime(2026, 11, 22, 1, 2, 3, 456789, tzinfo=UTC)


def _rows(count: int) -> list[list[Any]]:
    nasty = "'; DROP TABLE t;\n\nSELECT 1;\0\\ é "
    return [[i, f"{nasty}{i}", f"kind {i % 7}", AT, None if i % 2 else i / 3] for i in range(count)]


@case
def it_answers_a_ping(server: Server) -> None:
    with server.client() as client:
        assert client.ping()


@case
def native_inserts_come_back_as_they_were(server: Server) -> None:
    for compress in ("lz4", "zstd", "gzip", False):
        with server.client(compress=compress) as client:
            client.command("DROP TABLE IF EXISTS t SYNC")
            _table(client)
            summary = client.insert("t", _rows(3000), column_names=COLUMNS)
            assert summary.written_rows == 3000
            result = client.query("SELECT * FROM t ORDER BY a", tz_mode="aware")
            assert [list(row) for row in result.result_rows] == _rows(3000)
            assert result.column_names == tuple(COLUMNS)


@case
def a_column_probe_has_names_and_no_rows(server: Server) -> None:
    with server.client() as client:
        _table(client)
        result = client.query("SELECT a, kind FROM t LIMIT 0")
        assert result.column_names == ("a", "kind")
        assert result.row_count == 0


@case
def text_inserts_keep_semicolons_and_newlines(server: Server) -> None:
    with server.client() as client:
        client.command("CREATE TABLE w (a UInt8, s String) ENGINE = MergeTree ORDER BY a")
        client.command("INSERT INTO w VALUES (1, 'x;y\\n'), (2, 'format Native')")
        client.raw_insert("w", ["a", "s"], b'{"a": 3, "s": "; DROP TABLE w;"}\n', fmt="JSONEachRow")
        client.raw_insert("w", ["a", "s"], lz4.frame.compress(b"4,z\n"), fmt="CSV", compression="lz4")
        rows = client.query("SELECT a, s FROM w ORDER BY a").result_rows
        assert rows == [(1, "x;y\n"), (2, "format Native"), (3, "; DROP TABLE w;"), (4, "z")]


@case
def insert_select_moves_rows(server: Server) -> None:
    with server.client() as client:
        client.command("CREATE TABLE m (a UInt64) ENGINE = MergeTree ORDER BY a")
        client.command("INSERT INTO m SELECT number FROM numbers(10)")
        assert client.command("SELECT count() FROM m") == 10


@case
def commands_answer_values_lists_and_nothing(server: Server) -> None:
    with server.client() as client:
        assert client.command("SELECT 1") == 1
        assert client.command("SELECT 'a', 'b'") == ["a", "b"]
        assert client.command("SHOW TABLES") == ""
        client.command("CREATE TABLE c (a UInt8) ENGINE = Memory")
        assert client.command("SHOW TABLES") == "c"
        assert client.command("EXISTS TABLE c") == 1


@case
def parameters_of_every_kind_arrive(server: Server) -> None:
    given = {"s": "it's\ta \\ test\n", "n": 7, "l": ["a'b", "c"], "at": AT.replace(tzinfo=None)}
    sql = "SELECT {s:String}, {n:UInt64}, {l:Array(String)}, {at:DateTime64(6)}"
    with server.client() as client:
        assert client.query(sql, given).result_rows[0][:3] == (given["s"], 7, ["a'b", "c"])


@case
def parameters_too_long_for_an_address_arrive(server: Server) -> None:
    with server.client() as client:
        assert client.query("SELECT length({s:String})", {"s": "x" * 200_000}).result_rows == [(200_000,)]


@case
def the_default_database_is_the_named_one(server: Server) -> None:
    with server.client() as client:
        assert client.command("SELECT currentDatabase()") == server.address.database
    answer = server.request(b"SELECT 1", database="nowhere_at_all")
    assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (404, "81")


@case
def settings_hold_for_their_request_alone(server: Server) -> None:
    sql = b"SELECT getSetting('max_block_size')"
    assert server.request(sql, max_block_size="1234").data == b"1234\n"
    assert server.request(sql).data != b"1234\n"


@case
def an_unknown_setting_is_refused(server: Server) -> None:
    answer = server.request(b"SELECT 1", no_such_setting="1")
    assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (404, "115")


@case
def formats_are_named_in_the_answer(server: Server) -> None:
    assert server.request(b"SELECT 1").headers["X-ClickHouse-Format"] == "TabSeparated"
    named = server.request(b"SELECT 1 AS format FORMAT JSONEachRow SETTINGS max_threads = 1")
    assert (named.data, named.headers["X-ClickHouse-Format"]) == (b'{"format":1}\n', "JSONEachRow")
    assert server.request(b"SELECT 1", default_format="CSV").headers["X-ClickHouse-Format"] == "CSV"
    assert "X-ClickHouse-Format" not in server.request(b"CREATE TABLE f (a UInt8) ENGINE = Memory").headers


@case
def the_summary_counts(server: Server) -> None:
    with server.client() as client:
        _table(client)
        client.insert("t", _rows(10), column_names=COLUMNS)
        result = client.query("SELECT a FROM t")
        assert (result.summary["read_rows"], result.summary["result_rows"]) == ("10", "10")
    assert server.request(b"SELECT 1", query_id="mine").headers["X-ClickHouse-Query-Id"] == "mine"


@case
def results_are_compressed_only_if_asked(server: Server) -> None:
    sql = b"SELECT repeat('x', 100000)"
    wants = {"Accept-Encoding": "gzip"}
    assert "Content-Encoding" not in server.send(sql, wants, enable_http_compression="0").headers
    packed = server.send(sql, wants, enable_http_compression="1")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == b"x" * 100_000 + b"\n"


@case
def errors_have_codes_and_statuses(server: Server) -> None:
    expected = {
        b"SELCT 1": (400, "62"),
        b"some words": (400, "62"),
        b"SELECT 1; SELECT 2": (400, "62"),
        b"SELECT * FROM nowhere": (404, "60"),
        b"SELECT no_such_function(1)": (404, "46"),
        b"SELECT 1 FORMAT Nope": (404, "73"),
        b"INSERT INTO nowhere FORMAT Native\n\0": (404, "60"),
        b"SELECT throwIf(1)": (500, "395"),
        b"SELECT 1 INTO OUTFILE 'out'": (500, "358"),
    }
    found = {sql: server.request(sql) for sql in expected}
    codes = {
        sql: (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) for sql, answer in found.items()
    }
    assert codes == expected
    for sql, answer in found.items():
        code = expected[sql][1]
        assert answer.data.decode().startswith(f"Code: {code}. DB::Exception: ")


@case
def broken_data_are_refused_whole(server: Server) -> None:
    with server.client() as client:
        _table(client)
        answer = server.request(b"INSERT INTO t (a) FORMAT Native\n\x01\x05broken")
        assert answer.status >= 400
        assert int(answer.headers["X-ClickHouse-Exception-Code"]) > 0
        assert client.command("SELECT count() FROM t") == 0


@case
def wrong_credentials_are_refused(server: Server) -> None:
    bad = urllib3.make_headers(basic_auth=f"{server.address.user}:wrong")
    answer = server.send(b"SELECT 1", bad)
    assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (403, "516")
    assert b"wrong" not in answer.data.replace(b"a wrong password", b"")


@case
def readonly_refuses_every_write(server: Server) -> None:
    with server.client() as client:
        _table(client)
    writes = [
        b"INSERT INTO t (a) VALUES (1)",
        b"DROP TABLE t",
        b"CREATE TABLE x (a UInt8) ENGINE = Memory",
        b"OPTIMIZE TABLE t",
        b"SELECT * FROM file('x', 'CSV', 'a String')",
        b"SELECT 1 SETTINGS max_threads = 1",
        b"SELECT 1 SETTINGS readonly = 0",
    ]
    codes = [server.request(sql, readonly="1").headers["X-ClickHouse-Exception-Code"] for sql in writes]
    assert codes == ["164"] * len(writes)
    assert server.request(b"SELECT count() FROM t", readonly="1").data == b"0\n"


@case
def query_limits_hold(server: Server) -> None:
    endless = b"SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
    slow = server.request(endless, max_execution_time="0.3")
    assert (slow.status, slow.headers["X-ClickHouse-Exception-Code"]) == (408, "159")
    long = server.request(b"SELECT number FROM numbers(1000)", max_result_rows="10", wait_end_of_query="1")
    assert long.headers["X-ClickHouse-Exception-Code"] == "396"
    hungry = server.request(b"SELECT groupArray(number) FROM numbers(100000000)", max_memory_usage="10000000")
    assert hungry.headers["X-ClickHouse-Exception-Code"] == "241"


@case
def a_large_result_streams(server: Server) -> None:
    with server.client() as client:
        count = 0
        with client.query_row_block_stream("SELECT number, toString(number) FROM numbers(500000)") as blocks:
            for block in blocks:
                count += len(block)
        assert count == 500_000


@case
def an_error_in_the_middle_of_a_result_is_told(server: Server) -> None:
    sql = "SELECT number, throwIf(number = 3000000) FROM numbers(10000000)"
    with (
        server.client() as client,
        pytest.raises(StreamFailureError, match="throwIf"),
        client.query_row_block_stream(sql) as blocks,
    ):
        for _ in blocks:
            pass


@case
def a_token_stores_rows_once_and_so_do_views(server: Server) -> None:
    settings = {
        "async_insert": 0,
        "insert_deduplicate": 1,
        "deduplicate_blocks_in_dependent_materialized_views": 1,
    }
    with server.client(settings=settings) as client:
        _table(client, "MergeTree PARTITION BY a % 2 ORDER BY a")
        client.command(
            "CREATE TABLE v (a UInt64, size UInt64) ENGINE = MergeTree ORDER BY a"
            " SETTINGS non_replicated_deduplication_window = 100"
        )
        client.command("CREATE MATERIALIZED VIEW mv TO v AS SELECT a, length(s) AS size FROM t")
        counts = []
        for token in ("0-0-9", "0-0-9", "0-10-19"):
            client.insert(
                "t", _rows(10), column_names=COLUMNS, settings={"insert_deduplication_token": token}
            )
            counts.append((client.command("SELECT count() FROM t"), client.command("SELECT count() FROM v")))
        assert counts == [(10, 10), (10, 10), (20, 20)]


@case
def a_retry_fills_the_view_that_failed(server: Server) -> None:
    """A view that fails leaves the source row in; the same token again fills the view and nothing else."""
    token = {"insert_deduplication_token": "x", "insert_deduplicate": 1}
    token |= {"deduplicate_blocks_in_dependent_materialized_views": 1, "async_insert": 0}
    with server.client() as client:
        for name in ("s", "good", "late"):
            client.command(
                f"CREATE TABLE {name} (a UInt64) ENGINE = MergeTree ORDER BY a"
                " SETTINGS non_replicated_deduplication_window = 100"
            )
        client.command("CREATE TABLE gate (open UInt8) ENGINE = MergeTree ORDER BY open")
        client.command("CREATE MATERIALIZED VIEW mg TO good AS SELECT a FROM s")
        shut = "throwIf((SELECT count() FROM gate) = 0) = 0"
        client.command(f"CREATE MATERIALIZED VIEW ml TO late AS SELECT a FROM s WHERE {shut}")

        def counts() -> list[Any]:
            return [client.command(f"SELECT count() FROM {name}") for name in ("s", "good", "late")]

        with pytest.raises(DatabaseError, match="throwIf"):
            client.insert("s", [[1], [2]], column_names=["a"], settings=token)
        assert counts() == [2, 2, 0]
        client.command("INSERT INTO gate VALUES (1)")
        client.insert("s", [[1], [2]], column_names=["a"], settings=token)
        assert counts() == [2, 2, 2]


@case
def replacing_keeps_the_last_and_final_shows_it(server: Server) -> None:
    with server.client() as client:
        _table(client)
        for text in ("old", "new"):
            client.insert("t", [[1, text, "k", AT, None]], column_names=COLUMNS)
        assert client.command("SELECT s FROM t FINAL") == "new"


@case
def rows_past_their_ttl_go(server: Server) -> None:
    with server.client() as client:
        client.command(
            "CREATE TABLE e (a UInt8, at DateTime) ENGINE = MergeTree ORDER BY a TTL at + INTERVAL 1 HOUR"
        )
        client.command("SYSTEM STOP TTL MERGES e")
        client.command("INSERT INTO e SELECT 1, now() - INTERVAL 1 DAY UNION ALL SELECT 2, now()")
        client.command("SYSTEM START TTL MERGES e")
        client.command("OPTIMIZE TABLE e FINAL")
        assert client.query("SELECT a FROM e").result_rows == [(2,)]
