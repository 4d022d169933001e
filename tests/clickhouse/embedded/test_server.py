"""What only the embedded server has: its bounds and its mark. The rest is in the contract."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
import urllib3

from pml.clickhouse.address import Address
from pml.clickhouse.embedded.queries import MAX_RUNNING, MAX_WAITING
from pml.clickhouse.embedded.request import MAX_BODY_BYTES
from tests.fixtures.project import wait_until
from tests.fixtures.store import start_embedded

pytestmark = pytest.mark.integration


class Caller:
    """Requests to one server, with its password unless said otherwise."""

    def __init__(self, url: str) -> None:
        where = Address.parse(url)
        self.base = f"{where.scheme}://{where.host}:{where.port}"
        self.user, self.password = where.user, where.password
        self.login = urllib3.make_headers(basic_auth=f"{where.user}:{where.password}")
        self.pool = urllib3.PoolManager(retries=False, maxsize=MAX_RUNNING + MAX_WAITING + 20, timeout=60)

    def __call__(
        self, body: bytes = b"", headers: dict[str, str] | None = None, method: str = "POST", **params: str
    ) -> urllib3.BaseHTTPResponse:
        login = self.login if headers is None else headers
        return self.pool.request(
            method, f"{self.base}/?{urlencode(params)}", body=body or None, headers=login
        )


@pytest.fixture(scope="module")
def own_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that nobody else asks: here it is asked more than it takes."""
    server = start_embedded(tmp_path_factory.mktemp("bounds"))
    yield server.url
    server.stop()


@pytest.fixture
def call(own_url: str) -> Iterator[Caller]:
    caller = Caller(own_url)
    with caller.pool:
        yield caller


def test_it_says_that_it_is_embedded(call: Caller) -> None:
    assert call(b"SELECT 1").headers["X-PML-Embedded"] == "1"
    ping = call.pool.request("GET", f"{call.base}/ping")
    assert (ping.status, ping.data, ping.headers["X-PML-Embedded"]) == (200, b"Ok.\n", "1")


def test_every_way_to_show_a_password_works_and_none_does_not(call: Caller) -> None:
    user, password = call.user, call.password
    assert call(b"SELECT 1", {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}).status == 200
    assert call(b"SELECT 1", {}, user=user, password=password).status == 200
    for headers in (
        {},
        {"Authorization": "Basic !!"},
        {"Authorization": f"Bearer {password}"},
        {"X-ClickHouse-User": user},
    ):
        assert call(b"SELECT 1", headers).status == 403


def test_a_body_over_the_limit_is_refused(call: Caller) -> None:
    answer = call(b"INSERT INTO t FORMAT CSV\n" + b"\0" * MAX_BODY_BYTES)
    assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (413, "229")


def test_a_get_only_reads(call: Caller) -> None:
    assert call(method="GET", query="SELECT 1").data == b"1\n"
    answer = call(method="GET", query="CREATE TABLE x (a UInt8) ENGINE = Memory")
    assert answer.headers["X-ClickHouse-Exception-Code"] == "164"
    assert call(method="GET").data == b"Ok.\n"


def test_the_query_may_stand_in_the_address_and_go_on_in_the_body(call: Caller) -> None:
    assert call(b"SELECT 2", query="SELECT 1 UNION ALL").data.split() in ([b"1", b"2"], [b"2", b"1"])


def test_what_is_not_supported_says_so(call: Caller) -> None:
    assert call(b"SELECT 1", decompress="1").status == 501
    form = call.pool.request("POST", call.base, headers=call.login, fields={"t": ("t.csv", b"1\n")})
    assert (form.status, form.headers["X-ClickHouse-Exception-Code"]) == (501, "48")
    assert call(b"x", {**call.login, "Content-Encoding": "br"}).headers["X-ClickHouse-Exception-Code"] == "89"


def test_a_setting_cannot_smuggle_a_statement(call: Caller) -> None:
    answer = call(b"SELECT 1", None, "POST", **{"max_threads = 1; DROP TABLE t; SET a": "1"})
    assert (answer.status, answer.headers["X-ClickHouse-Exception-Code"]) == (404, "115")
    value = call(b"SELECT {x:String}", param_x="', readonly = '0")
    assert value.data == b"\\', readonly = \\'0\n"


def test_more_queries_than_may_wait_are_refused_and_the_others_answered(call: Caller) -> None:
    # All must have come before the first is done: on a busy machine that takes most of a second.
    asked = MAX_RUNNING + MAX_WAITING + 40
    with ThreadPoolExecutor(asked) as threads:
        answers = list(threads.map(lambda _: call(b"SELECT sleep(1)"), range(asked)))
    codes = [answer.headers.get("X-ClickHouse-Exception-Code") for answer in answers]
    assert codes.count("202") >= 1
    assert codes.count(None) >= MAX_RUNNING + MAX_WAITING
    assert codes.count(None) + codes.count("202") == asked


def test_a_reader_that_leaves_frees_its_place(call: Caller) -> None:
    """More abandoned endless results than there are places: each must be let go for the last query to run."""
    endless = urlencode({"query": "SELECT number FROM numbers(1000000000000)"})
    for _ in range(MAX_RUNNING + 2):
        answer = call.pool.request(
            "GET", f"{call.base}/?{endless}", headers=call.login, preload_content=False
        )
        assert len(answer.read(1000)) == 1000
        answer.close()
    assert call(b"SELECT 1").data == b"1\n"


def test_a_client_that_gives_up_frees_the_place_of_a_query_without_an_end(call: Caller) -> None:
    """They give no first block: each must be killed for the others to run, however its text ends."""
    busy = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
    ends = ("", ";", "; -- enough", f" -- {'long' * 30_000}", " SETTINGS max_threads = 1 FORMAT CSV")
    for number in range(MAX_RUNNING + len(ends)):
        body = (busy + ends[number % len(ends)]).encode()
        with pytest.raises(urllib3.exceptions.ReadTimeoutError):
            call.pool.request("POST", call.base, body=body, headers=call.login, timeout=0.5)
    running = (
        b"SELECT count() FROM system.processes WHERE position(query, 'FROM numbers(1000') BETWEEN 1 AND 80"
    )
    wait_until(lambda: call(running).data == b"0\n", "what nobody waits for goes on")


def test_what_writes_goes_on_though_its_client_has_gone(call: Caller) -> None:
    call(b"CREATE TABLE slow (x UInt64) ENGINE = MergeTree ORDER BY x")
    writes = b"WITH 1 AS x INSERT INTO slow SELECT x + sleepEachRow(0.2) FROM numbers(14)"
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        call.pool.request("POST", call.base, body=writes, headers=call.login, timeout=1.5)
    wait_until(lambda: call(b"SELECT count() FROM slow").data == b"14\n", "a write was given up half-way")
