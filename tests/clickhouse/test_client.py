from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pml.clickhouse import client
from pml.clickhouse.client import CONNECT_TIMEOUT_S, Limits, Store, probe
from pml.schemas.errors import ConfigurationError, QueryError, StoreUnavailable
from tests.fixtures.store import start_embedded

pytestmark = pytest.mark.integration


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_settings_that_the_sink_relies_on_are_sent(empty_store: Store) -> None:
    names = ("async_insert", "insert_deduplicate", "deduplicate_blocks_in_dependent_materialized_views")
    asked = ", ".join(f"toString(getSetting('{name}'))" for name in names)
    sql = f"SELECT {asked}"
    assert empty_store.client.query(sql).result_rows == [("false", "true", "true")]


def test_a_query_takes_as_many_threads_as_it_may(empty_store: Store) -> None:
    sql = "SELECT toString(getSetting('max_threads'))"
    one, usual = (empty_store.query(sql, {}, Limits(threads=threads)).rows[0][0] for threads in (1, 0))
    assert one == "1"
    assert usual != "1"


def test_a_token_stores_once(empty_store: Store) -> None:
    empty_store.command(
        "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a"
        " SETTINGS non_replicated_deduplication_window = 9"
    )
    for token in ("x", "x", "y"):
        empty_store.insert("t", ["a"], [[1], [2]], token=token)
    assert empty_store.query("SELECT count() FROM t").rows == [[4]]


def test_values_are_what_json_has(empty_store: Store) -> None:
    sql = (
        "SELECT 18446744073709551615 AS big, toDateTime64('2026-11-22 01:02:03.5', 6, 'UTC') AS at,"
        " [1, NULL] AS l, map('a', 1) AS m, CAST((1, 'x'), 'Tuple(n UInt8, s String)') AS t,"
        " nan AS n, true AS b"
    )
    (row,) = empty_store.query(sql).as_dicts()
    assert row == {
        "big": 18446744073709551615,
        "at": "2026-11-22T01:02:03.500000Z",
        "l": [1, None],
        "m": {"a": 1},
        "t": {"n": 1, "s": "x"},
        "n": None,
        "b": True,
    }


def test_an_empty_result_still_names_its_columns(empty_store: Store) -> None:
    rows = empty_store.query("SELECT 1 AS a, 'x' AS b WHERE 0")
    assert (rows.columns, rows.types, rows.rows) == (("a", "b"), ("UInt8", "String"), [])


@pytest.mark.parametrize(
    ("sql", "limits", "told"),
    [
        ("SELECT number FROM numbers(100)", Limits(rows=10), "add a LIMIT"),
        ("SELECT repeat(toString(number), 999) FROM numbers(99)", Limits(result_bytes=5000), "add a LIMIT"),
        (
            "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))",
            Limits(time_s=0.3),
            "longer than",
        ),
        ("SELECT groupArray(number) FROM numbers(100000000)", Limits(memory_bytes=10 << 20), "more memory"),
        ("CREATE TABLE x (a UInt8) ENGINE = Memory", None, "Only statements that read"),
        ("SELECT 1 SETTINGS max_result_rows = 0", None, "Only statements that read"),
        ("SELECT * FROM nowhere", None, "nowhere"),
        ("SELCT 1", None, "Syntax error"),
        ("SELECT 1; SELECT 2", None, "SYNTAX_ERROR"),
    ],
)
def test_a_query_that_is_refused_says_why(
    empty_store: Store, sql: str, limits: Limits | None, told: str
) -> None:
    with pytest.raises(QueryError, match=told) as error:
        empty_store.query(sql, limits=limits)
    assert "server response" not in error.value.message
    assert error.value.details["number"] > 0
    assert not error.value.retryable


def test_rows_that_will_never_fit_are_a_query_error(empty_store: Store) -> None:
    empty_store.command("CREATE TABLE t (a UInt8, CONSTRAINT c CHECK a < 5) ENGINE = MergeTree ORDER BY a")
    with pytest.raises(QueryError, match="c"):
        empty_store.insert("t", ["a"], [[9]])
    with pytest.raises(QueryError):
        empty_store.insert("nowhere", ["a"], [[9]])
    assert empty_store.query("SELECT count() FROM t").rows == [[0]]


def test_threads_may_share_a_store(empty_store: Store) -> None:
    empty_store.command("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    with ThreadPoolExecutor(6) as threads:
        list(threads.map(lambda number: empty_store.insert("t", ["a"], [[number]]), range(30)))
        counts = list(threads.map(lambda _: empty_store.query("SELECT uniqExact(a) FROM t").rows, range(12)))
    assert counts == [[[30]]] * 12


def test_nobody_there_is_told_quickly(closed_port: int) -> None:
    url = f"http://default:hunter2@127.0.0.1:{closed_port}"
    for ask in (Store.connect, probe):
        started = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer") as error:
            ask(url)
        assert time.monotonic() - started < CONNECT_TIMEOUT_S
        assert "hunter2" not in str(error.value)


def test_one_that_accepts_and_is_silent_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreUnavailable):
            probe(url, timeout_s=0.2)
        with pytest.raises(StoreUnavailable):
            Store.connect(url, answer_timeout_s=1)


def test_a_store_works_again_when_the_server_is_back(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)
    port = int(server.url.rpartition(":")[2])
    with Store.connect(server.url, "default") as store:
        server.kill()
        with pytest.raises(StoreUnavailable):
            store.query("SELECT 1")
        server = start_embedded(tmp_path, port)
        assert store.query("SELECT 1").rows == [[1]]
    server.stop()


def test_wrong_credentials_are_a_matter_of_configuration(clickhouse_url: str) -> None:
    url = clickhouse_url.replace("default:", "default:wrong")
    for ask in (Store.connect, probe):
        with pytest.raises(ConfigurationError, match="CLICKHOUSE_URL") as error:
            ask(url)
        assert "wrong" not in str(error.value)


def test_a_probe_says_who_answers(clickhouse_url: str) -> None:
    answer = probe(clickhouse_url)
    assert answer.embedded
    assert answer.version.count(".") == 3


UNBOUNDED = Limits(rows=0, result_bytes=0)


def test_a_query_that_fails_after_its_first_rows_is_an_error(empty_store: Store) -> None:
    fails_late = "SELECT throwIf(number = 900000) + number FROM numbers(1000000)"
    read = [0]

    def read_all() -> None:
        with empty_store.stream(fails_late, "RowBinary", limits=UNBOUNDED) as pieces:
            read.extend(map(len, pieces))

    with pytest.raises(QueryError, match="throwIf") as error:
        read_all()
    assert error.value.details["number"] == 395
    assert sum(read) > 1 << 20


def test_a_connection_that_breaks_in_an_answer_is_a_store_that_is_away(tmp_path: Path) -> None:
    server = start_embedded(tmp_path)

    def read_on(store: Store) -> None:
        with store.stream(
            "SELECT number FROM numbers(1000000000000)", "RowBinary", limits=UNBOUNDED
        ) as pieces:
            next(pieces)
            server.kill()
            for _ in pieces:
                pass

    gone = pytest.raises(StoreUnavailable, match="does not answer")
    with Store.connect(server.url, "default") as store, gone:
        read_on(store)


def test_nobody_waits_longer_than_they_said(clickhouse_url: str) -> None:
    with (
        Store.connect(clickhouse_url, "default", answer_timeout_s=2) as store,
        pytest.raises(StoreUnavailable, match="does not answer"),
    ):
        store.query("SELECT sleep(3)", limits=Limits(time_s=60))


def test_a_query_may_take_the_time_that_it_is_allowed(
    clickhouse_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, endless = "SELECT sleep(3)", "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(number)"
    monkeypatch.setattr(client, "ANSWER_TIMEOUT_S", 2)
    with Store.connect(clickhouse_url, "default") as store:
        with pytest.raises(StoreUnavailable):
            store.command(slow)
        assert store.query(slow, limits=Limits(time_s=60)).rows == [[0]]
        with store.stream(slow, "RowBinary", limits=Limits(time_s=60)) as pieces:
            assert b"".join(pieces) == b"\0"
        with pytest.raises(QueryError, match="longer than"):
            store.query(endless, limits=Limits(time_s=1.5))
