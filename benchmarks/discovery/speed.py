"""How long a query takes, and from how many documents on the graph is faster than comparing with all."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.discovery.sets import DataSet, load
from benchmarks.figures import percentile
from pml.processors.discovery.documents import Document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.question import Question, question
from pml.processors.memory.embedding import Embedding

SOURCE = "seal_tools"
SIZES = (1_000, 4_000, 16_000, 48_000)
QUESTIONS = 200
EVERYTHING = 10**9


def latency(folder: Path, embedding: Embedding, seed: int) -> dict[str, Any]:
    """Milliseconds from an intent to its page, embedding included, on the largest catalog there is."""
    data = load(folder, SOURCE, 2 * QUESTIONS, seed)
    index = DiscoveryIndex(embedding)
    began = time.perf_counter()
    index.put(data.documents)
    index.remember([Past(case.intent, case.tools) for case in data.cases[QUESTIONS:]])
    index.search("anything at all")
    built_s = time.perf_counter() - began
    taken = [_taken_ms(index, case.intent) for case in data.cases[:QUESTIONS]]
    return {"documents": len(index), "built_s": round(built_s, 2)} | _percentiles(taken)


def crossover(
    folder: Path, embedding: Embedding, seed: int, sizes: Sequence[int] = SIZES
) -> list[dict[str, Any]]:
    """Both ways to search catalogs of growing size, and which share of the first ten they agree on."""
    data = load(folder, SOURCE, QUESTIONS, seed)
    asked = [question(case.intent, embedding) for case in data.cases]
    return [_compared(_enlarged(data, size, seed), embedding, asked) for size in sizes]


def _compared(
    documents: Sequence[Document], embedding: Embedding, asked: Sequence[Question]
) -> dict[str, Any]:
    exact, graph = DiscoveryIndex(embedding, exact_most=EVERYTHING), DiscoveryIndex(embedding, exact_most=0)
    exact.put(documents)
    graph.put(documents, exact.points_of([document.id for document in documents]))
    for index in (exact, graph):
        index.search(asked[0])
    sides = [[_asked(index, each) for each in asked] for index in (exact, graph)]
    shared = [len(one[1] & other[1]) / len(one[1]) for one, other in zip(*sides, strict=True) if one[1]]
    return {
        "documents": len(documents),
        "exact": _percentiles([taken for taken, _ in sides[0]]),
        "graph": _percentiles([taken for taken, _ in sides[1]]),
        "shared": round(sum(shared) / len(shared), 4),
    }


def _enlarged(data: DataSet, size: int, seed: int) -> list[Document]:
    """So many tools, each with the name and the text of two."""
    drawn = random.Random(seed)
    pairs = (drawn.sample(data.documents, 2) for _ in range(size))
    return [
        replace(one, id=f"t{number:06}", name=f"{one.name} {other.name}", text=f"{one.text}. {other.text}")
        for number, (one, other) in enumerate(pairs)
    ]


def _asked(index: DiscoveryIndex, asked: Question) -> tuple[float, set[str]]:
    began = time.perf_counter()
    page = index.search(asked)
    return (time.perf_counter() - began) * 1_000, {item.document.id for item in page.items}


def _taken_ms(index: DiscoveryIndex, intent: str) -> float:
    began = time.perf_counter()
    index.search(intent)
    return (time.perf_counter() - began) * 1_000


def _percentiles(taken: Sequence[float]) -> dict[str, float]:
    return {"p50_ms": round(percentile(taken, 50), 3), "p99_ms": round(percentile(taken, 99), 3)}
