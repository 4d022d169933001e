"""Recorded workflows as traces: only the open part, with the text that was visible before each call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.discovery.sets import documents_of, rows_of
from pml.processors.discovery.documents import Document
from pml.processors.learning.duplicates import Groups, joined, key_hash, trace_hash
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.vocabulary import Vocabulary

OPEN_PART = "workflows.dev.jsonl"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Visible:
    """What an agent's client could have passed of the request: in words, and its text before a call."""

    told: str
    before: Callable[[Row, int], str]


def _field(name: str, row: Row, place: int) -> str:
    return row.get(name) or ""


def _turns(row: Row, place: int) -> str:
    """The user's turns up to the one of the previous call; before the first call, the first turn."""
    last = row["tasks"][place - 1]["turn"] if place else 0
    return " ".join(row["turns"][: last + 1])


def _nothing(row: Row, place: int) -> str:
    return ""


_REQUEST = Visible("the whole request, which names every step of the plan", partial(_field, "intent"))
VISIBLE: Mapping[str, Visible] = {
    "n8n": Visible("the workflow's name", partial(_field, "intent")),
    "galaxy_iwc": Visible("the workflow's name", partial(_field, "intent")),
    "seal_tools": _REQUEST,
    "toollinkos": Visible("the request", partial(_field, "intent")),
    "nestful": _REQUEST,
    "tau": Visible("nothing: the intent is the user's hidden script", _nothing),
    "tau_sessions": Visible("the user's first message", partial(_field, "intent")),
    "bfcl_multi_turn": Visible("the user's turns up to that of the previous call", _turns),
    "api_bank": Visible("the user's first turn", partial(_field, "first_user_turn")),
}


@dataclass(frozen=True, slots=True)
class RecordedSet:
    """One data set. `texts` are distinct, `text_rows` names one for each call, trace after trace."""

    name: str
    visible: str
    documents: tuple[Document, ...]
    calls: tuple[tuple[str, ...], ...]
    groups: Groups
    outcomes: NDArray[np.float32]
    texts: tuple[str, ...]
    text_rows: NDArray[np.int64]

    def traces(self, vocabulary: Vocabulary) -> TraceSet:
        """All traces in the numbers of a vocabulary; the data says no times."""
        items = [vocabulary.ids(called) for called in self.calls]
        return TraceSet(
            items=np.concatenate(items),
            offsets=np.cumsum([0, *map(len, items)], dtype=np.int64),
            outcomes=self.outcomes,
            weights=np.ones(len(items), dtype=np.float32),
            groups=self.groups,
            times_ms=np.zeros(len(items), dtype=np.int64),
            texts=self.text_rows,
        )


def recorded(folder: Path, name: str) -> RecordedSet:
    """The open part of a data set, those of its traces that call something.

    Raises:
        KeyError: it is no set of which is known what was visible.
    """
    visible = VISIBLE[name]
    rows = [row for row in rows_of(folder / name, OPEN_PART) if row["tools"]]
    told = [visible.before(row, place) for row in rows for place in range(len(row["tools"]))]
    numbers = {text: number for number, text in enumerate(sorted(set(told) - {""}))}
    return RecordedSet(
        name=name,
        visible=visible.told,
        documents=tuple(documents_of(folder, name)),
        calls=tuple(tuple(row["tools"]) for row in rows),
        groups=joined([_hashes(map(_same, rows)), _hashes(kept_together(name, row) for row in rows)]),
        outcomes=np.array([row.get("reward", 1.0) for row in rows], dtype=np.float32),
        texts=tuple(numbers),
        text_rows=np.array([numbers.get(text, NO_TEXT) for text in told], dtype=np.int64),
    )


def kept_together(name: str, row: Row) -> Hashable:
    """What the source's own split keeps on one side (the README of each set); else the record itself."""
    number = row["id"].rsplit("_" if name == "bfcl_multi_turn" else "-", 1)[-1]
    own: Mapping[str, Callable[[], Hashable]] = {
        "galaxy_iwc": lambda: row["file"],
        "toollinkos": lambda: row["main"],
        "tau": lambda: (row["domain"], row.get("part") if row.get("part") != "test" else None, number),
        "tau_sessions": lambda: row["task_id"],
        "bfcl_multi_turn": lambda: number,
    }
    return own.get(name, lambda: row["id"])()


def _same(row: Row) -> int:
    places = {task["id"]: place for place, task in enumerate(row["tasks"])}
    edges = [(places[one], places[other]) for one, other in row["edges"]]
    return trace_hash(row["tools"], edges, [task["arguments"] for task in row["tasks"]])


def _hashes(values: Any) -> NDArray[np.int64]:
    return np.array(
        [value if isinstance(value, int) else key_hash(value) for value in values], dtype=np.int64
    )


def descriptions_of(vocabulary: Vocabulary, documents: Sequence[Document]) -> list[str]:
    """The text of each item by id; empty where the catalog has none, and of what is unknown."""
    texts = {document.id: document.text for document in documents}
    return ["", *(texts.get(name, "") for name in vocabulary.names)]
