"""Recorded workflows of others as sessions: only the open part, with the text that was visible before a call.

A folder for each set, with `tools.jsonl` and `workflows.dev.jsonl` (or packed, `….gz`).
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from pml.processors.discovery.documents import Document, tool_document
from pml.processors.learning.duplicates import Groups, joined, key_hash, trace_hash
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, TraceSet, success_by_ends
from pml.processors.learning.vocabulary import Vocabulary

OPEN_PART, TOOLS = "workflows.dev.jsonl", "tools.jsonl"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Visible:
    """What an agent's client could have passed of the request: in words, and its text before a call, or after
    the last one."""

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
    "restbench": _REQUEST,
    "livemcpbench": _REQUEST,
}


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSet:
    """One data set; its traces are the sessions, each called one tool after another."""

    name: str
    visible: str
    sessions: Sessions


def named_sets(folder: Path) -> tuple[str, ...]:
    """The sets that a folder holds and of which is known what was visible, in a fixed order."""
    return tuple(name for name in VISIBLE if (folder / name).is_dir())


def recorded(folder: Path, name: str, visible: Visible | None = None) -> RecordedSet:
    """The open part of a data set, those of its traces that call something.

    Args:
        folder: where the sets are.
        name: one of `VISIBLE`.
        visible: what was visible of the request; None: what `VISIBLE` says.

    Raises:
        KeyError: it is no set of which is known what was visible.
        OSError: its files cannot be read.
    """
    visible = visible or VISIBLE[name]
    rows = [row for row in rows_of(folder / name, OPEN_PART) if row["tools"]]
    documents = documents_of(folder, name)
    told = [visible.before(row, place) for row in rows for place in range(len(row["tools"]))]
    ended = [visible.before(row, len(row["tools"])) for row in rows]
    numbers = {text: number for number, text in enumerate(sorted({*told, *ended} - {""}))}
    vocabulary = Vocabulary.of({document.id for document in documents}.union(*(row["tools"] for row in rows)))
    items = [vocabulary.ids(row["tools"]) for row in rows]
    offsets = np.cumsum([0, *map(len, items)], dtype=np.int64)
    outcomes = np.array([row.get("reward", 1.0) for row in rows], dtype=np.float32)
    traces = TraceSet(
        items=np.concatenate(items) if items else np.zeros(0, dtype=np.int32),
        success=success_by_ends(offsets, outcomes),
        offsets=offsets,
        outcomes=outcomes,
        weights=np.ones(len(items), dtype=np.float32),
        groups=_groups(name, rows),
        times_ms=np.zeros(len(items), dtype=np.int64),
        texts=np.array([numbers.get(text, NO_TEXT) for text in told], dtype=np.int64),
        end_texts=np.array([numbers.get(text, NO_TEXT) for text in ended], dtype=np.int64),
    )
    texts = {document.id: document.text for document in documents}
    return RecordedSet(name, visible.told, Sessions(vocabulary, traces, tuple(numbers), texts, tuple(texts)))


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


def documents_of(folder: Path, name: str) -> list[Document]:
    """The tools of a data set, ascending by id."""
    return sorted((_document(row) for row in rows_of(folder / name, TOOLS)), key=lambda found: found.id)


def rows_of(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The lines of a file, or of the packed one beside it, in their order."""
    packed = folder / f"{name}.gz"
    opened: Callable[..., Any] = gzip.open if packed.exists() else open
    with opened(packed if packed.exists() else folder / name, "rb") as lines:
        for line in lines:
            yield orjson.loads(line)


def _groups(name: str, rows: list[dict[str, Any]]) -> Groups:
    return joined([_hashes(map(_same, rows)), _hashes(kept_together(name, row) for row in rows)])


def _same(row: Row) -> int:
    places = {task["id"]: place for place, task in enumerate(row["tasks"])}
    edges = [(places[one], places[other]) for one, other in row["edges"]]
    return trace_hash(row["tools"], edges, [task["arguments"] for task in row["tasks"]])


def _hashes(values: Any) -> NDArray[np.int64]:
    return np.array(
        [value if isinstance(value, int) else key_hash(value) for value in values], dtype=np.int64
    )


def _document(row: dict[str, Any]) -> Document:
    outputs = row.get("output") or row.get("outputs") or ()
    return tool_document(
        row["tool_id"],
        row.get("description") or "",
        row.get("input_schema"),
        {"properties": dict.fromkeys(outputs)},
    )
