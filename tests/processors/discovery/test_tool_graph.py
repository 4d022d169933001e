"""What the tool graph says of what comes along, and of what most leads to."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.documents import tool_document
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.persisting import from_bytes, to_bytes
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.tool_graph import DAMPING, Link, ToolGraph, page_ranks
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.discovery.small_catalog import small_index

NUMBERS = {name: number for number, name in enumerate("abc")}


def contains(target: str, runs: int) -> Link:
    return Link("contains", "cap_1", target, 0.9, runs)


def test_what_gives_a_tool_something_comes_with_it_and_not_the_other_way() -> None:
    graph = ToolGraph([contains("a", 4), contains("b", 4), Link("provides", "a", "b", 0.8, 2)], NUMBERS)
    assert graph.company(1) == {0: pytest.approx(0.8 * 2 / 4)}
    assert graph.company(0) == {}


def test_what_ran_together_comes_along_both_ways_by_how_often() -> None:
    graph = ToolGraph([contains("a", 10), contains("b", 2), Link("co_occurrence", "a", "b", 0.5, 2)], NUMBERS)
    assert graph.company(0) == {1: pytest.approx(0.1)}
    assert graph.company(1) == {0: pytest.approx(0.5)}


def test_of_several_edges_the_strongest_counts() -> None:
    links = [Link("provides", "a", "b", 0.8, 2), Link("co_occurrence", "a", "b", 0.4, 2)]
    assert ToolGraph(links, NUMBERS).company(1) == {0: pytest.approx(0.8)}


def test_ends_that_are_no_documents_lead_nowhere() -> None:
    links = [Link("provides", "gone:tool", "b", 0.8, 2), Link("provides", "a", "gone:tool", 0.8, 2)]
    assert ToolGraph(links, NUMBERS).company(1) == {}


edges = st.lists(
    st.builds(
        Link,
        st.sampled_from(["dependency", "contains", "provides", "sequence", "co_occurrence"]),
        st.sampled_from("abcdef"),
        st.sampled_from("abcdef"),
        st.floats(0, 1),
        st.integers(1, 9),
    ).filter(lambda link: link.source != link.target),
    max_size=12,
    unique_by=lambda link: (link.type, link.source, link.target),
)


@given(edges)
def test_page_rank_is_that_of_a_twin_that_solves_the_equations(links: list[Link]) -> None:
    names = sorted({name for link in links for name in (link.source, link.target)})
    matrix = np.zeros((len(names), len(names)))
    for link in links:
        ends = [(link.source, link.target)]
        ends += [(link.target, link.source)] if link.type == "co_occurrence" else []
        for source, target in ends:
            matrix[names.index(target), names.index(source)] += link.weight
    for column in range(len(names)):
        total = matrix[:, column].sum()
        matrix[:, column] = matrix[:, column] / total if total > 0 else 1 / len(names)
    found = page_ranks(links)
    assert list(found) == names
    if names:
        whole = np.eye(len(names)) - DAMPING * matrix
        exact = np.linalg.solve(whole, np.full(len(names), (1 - DAMPING) / len(names)))
        assert list(found.values()) == pytest.approx(exact / exact.max(), abs=1e-6)


@given(edges, st.randoms())
def test_the_order_of_the_edges_does_not_matter(links: list[Link], random: Random) -> None:
    shuffled = random.sample(links, len(links))
    assert page_ranks(shuffled) == pytest.approx(page_ranks(links), abs=1e-9)


def test_what_a_tool_needs_is_found_with_it_though_no_schema_says_so() -> None:
    index = DiscoveryIndex(HashedNgrams())
    index.put(
        [
            tool_document("mail:send_mail", "Send a mail to somebody"),
            tool_document("crm:lookup", "Customers"),
            tool_document("zoo:feed", "Animals"),
        ]
    )
    before = {item.document.id: item.score for item in index.search("send a mail").items}
    index.link([contains("mail:send_mail", 3), Link("provides", "crm:lookup", "mail:send_mail", 0.9, 3)])
    after = {item.document.id: item.score for item in index.search("send a mail").items}
    assert after["crm:lookup"] > before["crm:lookup"]
    assert after["zoo:feed"] == before["zoo:feed"]
    assert {item.document.id for item in index.search("send a mail", limit=2).items} == {
        "crm:lookup",
        "mail:send_mail",
    }


def test_links_in_place_of_others_leave_nothing_of_them() -> None:
    index = small_index()
    before = index.search("read a file")
    index.link([contains("mail:send_mail", 1), Link("provides", "geo:find_city", "files:read_file", 0.9, 1)])
    assert index.search("read a file") != before
    index.link(())
    assert index.search("read a file") == before


def test_links_are_written_and_read_with_an_index() -> None:
    index = small_index()
    index.rate({"geo:find_city": Standing(page_rank=0.5)})
    index.link([Link("provides", "geo:find_city", "weather:get_forecast", 0.75, 3)])
    read = from_bytes(to_bytes(index), HashedNgrams())
    assert read.links == index.links
    assert read.search("forecast for a city") == index.search("forecast for a city")
