from __future__ import annotations

import pytest

from pml.clickhouse.address import Address
from pml.schemas.errors import ConfigurationError


def test_a_url_names_everything() -> None:
    address = Address.parse("https://ada:p%40ss@ch.example:9443/mine")
    assert (address.scheme, address.host, address.port) == ("https", "ch.example", 9443)
    assert (address.user, address.password, address.database) == ("ada", "p@ss", "mine")


def test_what_a_url_leaves_out_is_the_default() -> None:
    address = Address.parse("http://localhost")
    assert (address.port, address.user, address.password, address.database) == (8123, "default", "", "pml")
    assert Address.parse("https://localhost").port == 8443
    assert Address.parse("http://localhost/one", database="two").database == "two"


def test_an_ipv6_address_keeps_its_brackets() -> None:
    address = Address.parse("http://[::1]:9000/mine")
    assert (address.host, address.base_url) == ("::1", "http://[::1]:9000")


def test_it_never_shows_its_password() -> None:
    address = Address.parse("http://ada:hunter2@localhost/mine")
    assert str(address) == "http://localhost:8123/mine"
    assert "hunter2" not in repr(address)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8123",
        "ftp://localhost",
        "http:///pml",
        "http://hunter2@localhost/a-b",
        "http://h:port/x",
    ],
)
def test_anything_else_is_refused_with_a_sentence(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"ClickHouse") as error:
        Address.parse(url)
    assert "hunter2" not in str(error.value)
