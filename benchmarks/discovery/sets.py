"""Data sets of intents and their tools, and folds of them that share neither requests nor answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.documents import Document
from pml.processors.memory.embedding import Vectors
from pml.streams.learning.data_sets import documents_of, rows_of

NAMES = (
    "metatool_toole",
    "seal_tools",
    "toollinkos",
    "livemcpbench",
    "restbench",
    "nestful",
    "bfcl_multi_turn",
    "api_bank",
    "tau",
)
FOLDS = 5
# Two intents this near are one request in other words.
DUPLICATE_COSINE = 0.95
_ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Case:
    """An intent, the tools that its source says are right, and what else the source keeps together."""

    intent: str
    tools: tuple[str, ...]
    right: frozenset[int]
    kept_together: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class DataSet:
    """One data set; `right` of a case are numbers of its documents, ascending by id."""

    name: str
    documents: tuple[Document, ...]
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """An intent and the calls of its workflow, in their order."""

    intent: str
    tools: tuple[str, ...]


def requests_of(folder: Path, name: str) -> list[Request]:
    """All requests of a data set that call something."""
    rows = rows_of(folder / name, "workflows.dev.jsonl")
    return [Request(row["intent"], tuple(row["tools"])) for row in rows if row["intent"] and row["tools"]]


def load(folder: Path, name: str, most: int, seed: int) -> DataSet:
    """A data set with at most so many of its cases, drawn with the seed."""
    documents = documents_of(folder, name)
    numbers = {document.id: number for number, document in enumerate(documents)}
    cases = [
        _case(row, numbers)
        for row in rows_of(folder / name, "workflows.dev.jsonl")
        if row["intent"] and not numbers.keys().isdisjoint(row["tools"])
    ]
    if len(cases) > most:
        cases = random.Random(seed).sample(cases, most)
    return DataSet(name, tuple(documents), tuple(cases))


def groups(cases: Sequence[Case], points: Vectors) -> NDArray[np.int64]:
    """A number for each case; those of one number must lie in one fold.

    Together are cases with the same tools, with intents that are nearly one, and what the source keeps so.
    """
    parents = list(range(len(cases)))
    for one, other in (*_same(cases), *_near(points)):
        parents[_root(parents, other)] = _root(parents, one)
    return np.array([_root(parents, number) for number in range(len(cases))])


def folds(of: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The fold of each case: groups, the largest first, to the fold that has the fewest cases."""
    sizes = Counter(of.tolist())
    names = sorted(sizes)
    random.Random(seed).shuffle(names)
    held, fold_of = [0] * FOLDS, {}
    for name in sorted(names, key=lambda name: -sizes[name]):
        fold_of[name] = held.index(min(held))
        held[fold_of[name]] += sizes[name]
    return np.array([fold_of[name] for name in of.tolist()])


def _case(row: dict[str, Any], numbers: dict[str, int]) -> Case:
    tools = tuple(dict.fromkeys(tool for tool in row["tools"] if tool in numbers))
    kept = tuple((key, row[key]) for key in ("main", "task_id", "template") if key in row)
    return Case(row["intent"], tools, frozenset(numbers[tool] for tool in tools), kept)


def _same(cases: Sequence[Case]) -> Iterator[tuple[int, int]]:
    first: dict[Hashable, int] = {}
    for number, case in enumerate(cases):
        for key in (case.right, *case.kept_together):
            yield first.setdefault(key, number), number


def _near(points: Vectors) -> Iterator[tuple[int, int]]:
    for start in range(0, len(points), _ROWS_AT_ONCE):
        rows, columns = np.nonzero(points[start : start + _ROWS_AT_ONCE] @ points.T > DUPLICATE_COSINE)
        yield from zip((rows + start).tolist(), columns.tolist(), strict=True)


def _root(parents: list[int], number: int) -> int:
    while parents[number] != number:
        parents[number] = parents[parents[number]]
        number = parents[number]
    return number
