"""Where sessions to learn from are read: ClickHouse, a file of `pml export traces`, data sets of others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.clickhouse.client import Store
from pml.clickhouse.training.outcome_score import SCORED, OutcomeScore
from pml.clickhouse.training.reading import read_arrays
from pml.clickhouse.training.selection import Selection
from pml.clickhouse.training.session_values import Stretch, read_session_values
from pml.clickhouse.training.trace_priorities import TraceNames
from pml.processors.discovery.documents import tool_document
from pml.processors.discovery.library import Library
from pml.processors.learning.known_sessions import KnownSession, Schemas
from pml.processors.learning.looks import session_looks
from pml.processors.learning.packed_texts import text_array, unpacked
from pml.processors.learning.path_success import path_ids
from pml.processors.learning.session_columns import session_names, sessions_of
from pml.processors.learning.sessions import Sessions
from pml.schemas.errors import ConfigurationError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.catalog_topic import Records
from pml.streams.learning.column_shapes import check_columns
from pml.streams.learning.data_hash import data_hash
from pml.streams.learning.manifests import HASHED_WITH, digest_of
from pml.streams.learning.npz import opened_arrays

# What a session is made of, out of the columns of a training set.
COLUMNS = (
    *("tenant", "session_id", "epoch", "log_offset", "ended_at_us", "group", "success", "exploratory"),
    *("capability", "capability_words", "intent", "intent_words"),
    *("offsets", "tool", "tool_words", "call_mocked"),
)

# A file that an earlier release wrote has not all of them. What must be there beside one that is:
FELLOWS = {
    "request": ("request_words",),
    "request_words": ("request",),
    "call_pattern": ("call_pattern_words", "call_success"),
    "call_pattern_words": ("call_pattern",),
    "call_success": (),
}
LATER = tuple(FELLOWS)

# By it a session that nobody named is known. Names teach nothing: it is not in the hash.
RUN_ID = "run_id"

# The rest but the offsets and the words is of runs.
OF_CALLS = ("tool", "call_mocked", "call_pattern", "call_success")
_TENANTS = "tenant_words"

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalog says: what may be called (`listed`), a text for each (`texts`), what tools take
    (`schemas`), and which tools and capabilities a capability calls (`contained`)."""

    texts: Mapping[str, str] = field(default_factory=dict)
    listed: Collection[str] = ()
    schemas: Schemas = field(default_factory=dict)
    contained: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Every run that was read, by its name: `paths` int64, `outcomes` float64, `groups` int64."""

    names: TraceNames
    paths: NDArray[np.int64]
    outcomes: NDArray[np.float64]
    groups: NDArray[np.int64]

    @classmethod
    def of(cls, columns: Columns) -> Runs:
        """Those of a training set from the store; a score that is the outcome is in `success` already."""
        return cls(
            TraceNames.of(columns),
            path_ids(columns["tool"], columns["offsets"]),
            columns["success"].astype(np.float64),
            columns["group"].view(np.int64),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Sessions, and what a manifest says of where they are from.

    `values` are the same with what runs took and gave, as far as it is known; `schemas` what tools take;
    `runs` those that the store has, None where the sessions are not from there; `names` id and epoch of each
    session.
    """

    sessions: Sessions
    about: Mapping[str, Any]
    values: Sequence[KnownSession] = ()
    schemas: Schemas = field(default_factory=dict)
    runs: Runs | None = None
    names: Sequence[tuple[str, int]] = ()


def known_from(records: Records, tenant: str) -> Known:
    """The tools that are listed, and the learned capabilities of a tenant, in words; what its capabilities
    call, as runs of them showed."""
    library = Library()
    for record in records.values():
        library.take(record)
    documents = library.shelf(tenant).documents
    schemas = {name: tool.input_schema for name, tool in library.tools.items()}
    contained: dict[str, list[str]] = {}
    for edge in library.edges(tenant):
        if edge.type == "contains":
            contained.setdefault(edge.source, []).append(edge.target)
    texts = {name: found.text for name, found in documents.items()}
    return Known(texts, tuple(documents), schemas, contained)


def from_store(store: Store, selection: Selection, known: Known, outcome: str = "") -> Source:
    """The sessions of runs that ended in this selection.

    Args:
        outcome: the score that says how good a run was (`OutcomeScore.parse`); empty: its end does.

    Raises:
        StoreUnavailable, QueryError
        ConfigurationError: no such outcome can be told.
    """
    score = OutcomeScore.parse(outcome) if outcome else None
    stretch = Stretch(selection.tenant or DEFAULT_TENANT, selection.since, selection.until)
    values = read_session_values(store, stretch)
    columns = read_arrays(store, selection, outcome=score)
    about = {"from": "clickhouse", **_span(selection)}
    if score is not None:
        scored = columns.pop(SCORED)
        columns["success"] = judged(columns["success"], scored)
        about["outcome"] = {"score": outcome, "scored_runs": int((scored >= 0).sum())}
    return replace(_source(columns, known, about, values), runs=Runs.of(columns))


def with_looks(source: Source, hash_key: bytes) -> Source:
    """The same, knowing of each run what it was called with, as far as its values are known.

    What it is said to be from has the key's digest, so that a model that reads looks serves nowhere else.

    Args:
        hash_key: the installation key, which what serves hashes short values with.
    """
    if not source.values:
        return source
    looks = session_looks(source.sessions, source.names, source.values, hash_key)
    traces = replace(source.sessions.traces, looks=looks)
    about = {**source.about, HASHED_WITH: digest_of(hash_key)}
    return replace(source, sessions=replace(source.sessions, traces=traces), about=about)


def judged(success: NDArray[Any], scored: NDArray[np.int8]) -> NDArray[np.uint8]:
    """uint8 [runs]: what the score says, 1 or 0; how the run ended where it says nothing (−1)."""
    return np.where(scored >= 0, scored, success).astype(np.uint8)


def from_file(file: Path, known: Known, tenant: str) -> Source:
    """A tenant's sessions in a file that `pml export traces` wrote as npz: it may have those of all.

    Raises:
        ConfigurationError: it cannot be read, or is no such file.
    """
    needed = {*COLUMNS, RUN_ID, _TENANTS}
    try:
        with file.open("rb") as stream:
            stored = opened_arrays(stream)
            there = {*needed, *stored, *(name.removesuffix("_bytes") for name in stored)}
            columns = {name: _column(stored, name) for name in (*needed, *LATER) if name in there}
        check_columns(columns, OF_CALLS, (RUN_ID, "session_id"), FELLOWS)
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror or error}") from None
    except (ValueError, KeyError) as error:
        raise ConfigurationError(
            f"{file} is no training set: {error}; write one with `pml export traces traces.npz`"
        ) from None
    return _source(of_tenant(columns, tenant), known, {"from": file.name, "tenant": tenant})


def _column(stored: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """A column of a file; words are packed, in a file that an earlier release wrote they are padded.

    Raises:
        KeyError: it is not there.
        ValueError: the words are no UTF-8.
    """
    if name in stored or not name.endswith("_words"):
        return stored[name]
    return text_array(unpacked(name, stored))


def of_tenant(columns: Columns, tenant: str) -> Columns:
    """The runs of one tenant, with their calls; the words stay as they are."""
    runs = np.isin(columns["tenant"], np.flatnonzero(columns[_TENANTS] == tenant))
    return _of_runs({name: column for name, column in columns.items() if name != _TENANTS}, runs)


def in_named_sessions(columns: Columns) -> Columns:
    """The runs whose session somebody named: in another one nothing follows a run, and nobody asks what does.

    They would teach that most sessions end after their first run.
    """
    return _of_runs(columns, columns["session_id"] != columns[RUN_ID])


def _of_runs(columns: Columns, runs: NDArray[np.bool_]) -> Columns:
    lengths = np.diff(columns["offsets"])
    calls = np.repeat(runs, lengths)
    return {
        name: column if name.endswith("_words") else column[calls if name in OF_CALLS else runs]
        for name, column in columns.items()
        if name != "offsets"
    } | {"offsets": np.concatenate(([0], np.cumsum(lengths[runs])))}


def _source(
    read: Columns, known: Known, about: Mapping[str, Any], values: Sequence[KnownSession] = ()
) -> Source:
    wanted = (*COLUMNS, *LATER, RUN_ID)
    columns = in_named_sessions({name: read[name] for name in wanted if name in read})
    names = {*columns["tool_words"].tolist()} - known.texts.keys()
    # A tool that no server lists any more still has a name in words.
    texts = {**{name: tool_document(name, "").text for name in names if ":" in name}, **known.texts}
    sessions = replace(sessions_of(columns, texts, known.listed), contained=known.contained)
    # A tool is there whoever calls it; a capability is there because of the first session that did.
    first = {name: group for name, group in sessions.first_groups().items() if ":" not in name}
    sessions = replace(sessions, learned=first)
    return Source(
        sessions,
        {
            **about,
            "hash": data_hash(
                {name: columns[name] for name in (*COLUMNS, *LATER) if name in columns},
                {
                    "texts": texts,
                    "listed": sorted(known.listed),
                    "schemas": known.schemas if values else {},
                    "contained": known.contained,
                },
                values,
            ),
            "runs": len(sessions.traces.items),
            "sessions": len(sessions.traces),
            "runs_without_session": len(read[RUN_ID]) - len(columns[RUN_ID]),
        },
        values,
        known.schemas if values else {},
        names=session_names(columns),
    )


def _span(selection: Selection) -> dict[str, Any]:
    return {"tenant": selection.tenant, "since": selection.since, "until": selection.until}
