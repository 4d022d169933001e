"""The contract holds for the embedded server and, if PML_TEST_CLICKHOUSE_URL names one, for a real one."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pml.clickhouse.address import Address
from pml.clickhouse.client import Store
from tests.clickhouse.contract import CASES, Server
from tests.fixtures.patience import PATIENCE_S

REAL_URL = os.environ.get("PML_TEST_CLICKHOUSE_URL", "")


@pytest.fixture(params=["embedded", *(["real"] if REAL_URL else [])])
def server(request: pytest.FixtureRequest, clickhouse_url: str, database: str) -> Iterator[Server]:
    url = REAL_URL if request.param == "real" else clickhouse_url
    with Store.connect(url, database, answer_timeout_s=PATIENCE_S) as store:
        store.command(f"CREATE DATABASE {database}", use_database=False)
        yield Server(Address.parse(url, database))
        store.command(f"DROP DATABASE {database} SYNC", use_database=False)


@pytest.mark.integration
@pytest.mark.parametrize("name", CASES)
def test_contract(name: str, server: Server) -> None:
    CASES[name](server)
