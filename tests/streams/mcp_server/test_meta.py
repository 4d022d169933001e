"""What a client's host says in `_meta` beside a call."""

from __future__ import annotations

from typing import Any

import pytest

from pml.streams.mcp_server.door import (
    CONTEXT_BYTES_MAX,
    CONTEXT_META,
    REQUEST_CHARACTERS_MAX,
    REQUEST_META,
    context_in,
    request_in,
)
from pml.streams.mcp_server.failures import InvalidArguments


def test_values_that_the_host_knows_are_taken_as_they_are() -> None:
    told = {"customer": 7, "shop": {"currency": "EUR", "open": True}}
    assert context_in({CONTEXT_META: told}) == told
    assert context_in({CONTEXT_META: {}}) == {}
    assert context_in({}) is context_in(None) is None


@pytest.mark.parametrize(
    "told", ["customer 7", [1], 7, {"a": "x" * CONTEXT_BYTES_MAX}, {"a": float("nan")}, {"a": 2**70}]
)
def test_what_is_no_object_of_a_bounded_size_is_refused(told: Any) -> None:
    with pytest.raises(InvalidArguments, match="pml/context is an object of at most 10240 bytes"):
        context_in({CONTEXT_META: told})


def test_of_a_long_request_the_beginning_is_taken() -> None:
    assert request_in({REQUEST_META: "x" * (REQUEST_CHARACTERS_MAX + 1)}) == "x" * REQUEST_CHARACTERS_MAX
    assert [request_in({REQUEST_META: told}) for told in ("", "  ", 7, None)] == [None] * 4
