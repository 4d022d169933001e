"""Tools that give what another needs come with it."""

from __future__ import annotations

import pytest

from pml.processors.discovery.documents import Document
from pml.processors.discovery.providing import PROVIDERS_MOST, Provides


def tool(name: str, takes: tuple[str, ...] = (), gives: tuple[str, ...] = ()) -> Document:
    return Document(name, "tool", name, name, takes, gives)


def test_a_provider_counts_by_the_share_of_what_it_gives() -> None:
    provides = Provides(
        [tool("use", ("city_id", "day")), tool("find", gives=("city_id",)), tool("today", gives=("day",))]
    )
    assert provides.providers(0) == pytest.approx({1: 0.5, 2: 0.5})
    assert provides.providers(1) == {}


def test_fields_with_names_that_mean_the_same_fit() -> None:
    provides = Provides([tool("show", ("text",)), tool("read", gives=("content",))])
    assert provides.providers(0) == {1: 1.0}


def test_one_of_several_providers_counts_less() -> None:
    provides = Provides([tool("use", ("id",)), tool("one", gives=("id",)), tool("two", gives=("id",))])
    assert provides.providers(0) == pytest.approx({1: 0.5, 2: 0.5})


def test_what_everybody_gives_says_nothing() -> None:
    many = [tool(f"t{number}", gives=("result",)) for number in range(PROVIDERS_MOST + 1)]
    assert Provides([tool("use", ("result",)), *many]).providers(0) == {}


def test_no_tool_is_its_own_provider() -> None:
    assert Provides([tool("next", ("cursor",), ("cursor",))]).providers(0) == {}
