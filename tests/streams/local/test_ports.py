from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.local.ports import FIRST, HOST, LAST, choose_port, free_port, is_free


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((HOST, free_port()))
        server.listen()
        yield server.getsockname()[1]


def test_a_port_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)


def test_a_free_port_lies_below_those_of_outgoing_connections() -> None:
    assert FIRST <= free_port() <= LAST < 32_768


def test_a_taken_port_that_was_asked_for_is_refused(taken: int) -> None:
    with pytest.raises(ConfigurationError, match=f"Port {taken} "):
        choose_port(taken, 0)


def test_the_port_of_the_last_start_is_taken_again_if_it_is_free(taken: int) -> None:
    last = free_port()
    assert choose_port(0, last) == last
    assert choose_port(0, last, besides=(last,)) != last
    assert choose_port(0, taken) != taken


def test_a_port_that_was_asked_for_wins_over_the_last_one() -> None:
    wanted = free_port()
    assert choose_port(wanted, free_port(besides=(wanted,))) == wanted
