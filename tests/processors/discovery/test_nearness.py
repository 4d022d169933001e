"""Moments give what all cosines give, and the graph finds nearly what comparing finds."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.discovery.documents import Document
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.nearness import Graph, Nearness
from pml.processors.memory.embedding import HashedNgrams, Vectors, unit
from tests.processors.discovery.small_catalog import WORDS

MANY = 1_500


def points(count: int, seed: int) -> Vectors:
    return unit(np.random.default_rng(seed).normal(size=(count, 16)).astype(np.float32) + 0.3)


def test_moments_standardise_as_all_cosines_do() -> None:
    rows, asked = points(300, 1), points(4, 2)
    cosines = (asked @ rows.T).astype(np.float64)
    expected = (cosines - cosines.mean(axis=1, keepdims=True)) / cosines.std(axis=1, keepdims=True)
    nearness = Nearness(rows)
    assert nearness.standardised(asked, np.arange(300)) == pytest.approx(expected, abs=1e-4)
    some = np.array([3, 250, 7])
    assert nearness.standardised(asked, some) == pytest.approx(expected[:, some], abs=1e-4)


def test_a_graph_finds_what_is_there_now() -> None:
    graph, rows = Graph(16), points(50, 3)
    graph.put([f"d{number}" for number in range(50)], rows)
    assert graph.nearest(rows[7], 1) == ["d7"]
    graph.put(["d7"], rows[8:9] * -1)
    graph.remove("d8")
    near = graph.nearest(rows[7], 51)
    assert near[0] != "d7"
    assert "d8" not in near
    assert len(near) == 49
    assert not graph.worn


def test_a_graph_with_more_gone_than_there_is_worn() -> None:
    graph = Graph(16)
    graph.put(["a", "b", "c"], points(3, 4))
    graph.remove("a")
    assert not graph.worn
    graph.remove("b")
    assert graph.worn


def many_documents() -> list[Document]:
    drawn = np.random.default_rng(5)
    texts = (" ".join(drawn.choice(WORDS, size=6)) + f" v{number}" for number in range(MANY))
    return [Document(f"d{number:04}", "tool", f"tool {number}", text) for number, text in enumerate(texts)]


def test_the_graph_gives_nearly_the_pages_that_comparing_gives() -> None:
    exact, graph = DiscoveryIndex(HashedNgrams()), DiscoveryIndex(HashedNgrams(), exact_most=100)
    for index in (exact, graph):
        index.put(many_documents())
    drawn, shared = np.random.default_rng(6), 0
    for _ in range(30):
        intent = " ".join(drawn.choice(WORDS, size=4))
        pages = [{item.document.id for item in index.search(intent).items} for index in (exact, graph)]
        shared += len(pages[0] & pages[1])
    assert shared / 300 > 0.9


def test_the_graph_follows_changes() -> None:
    index = DiscoveryIndex(HashedNgrams(), exact_most=100)
    index.put(many_documents())
    index.search("read file")
    index.put([Document("new", "tool", "unheard of", "unheard of thing")])
    assert index.search("unheard of thing").items[0].document.id == "new"
    index.remove(["new"])
    assert "new" not in {item.document.id for item in index.search("unheard of thing").items}
    index.remove([f"d{number:04}" for number in range(MANY - 300)])
    assert len(index.search("read file", limit=50).items) == 50
