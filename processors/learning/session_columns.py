"""Sessions out of the columns of a training set (docs/guide/training-set.md): no object a run.

A session goes on from run to run: its items are what the runs were, in the order in which they ended. A run
of several calls is its capability, a run of one is the tool of that; each went as its run did, and a session
as the mean of its runs. Visible is, before an item, what a client said with the run before it that the user
wants, else what that run was for: what the next one is for nobody knows until it begins. After the last it is
what that one told. Before the first it is what the client said with it: nobody asks there, but it is learned
how sessions begin in which this is wanted. What the first run was for would say what it is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.calls import Calls
from pml.processors.learning.grouping import summed
from pml.processors.learning.pauses import settled
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import mixed
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.vocabulary import Vocabulary

# What a run counts that tried out a hypothetical path, and one that a mock answered.
EXPLORATORY_WEIGHT = 0.5
MOCKED_WEIGHT = 0.25

Columns = Mapping[str, NDArray[Any]]
Places = NDArray[np.int64]


def sessions_of(columns: Columns, descriptions: Mapping[str, str], listed: Collection[str] = ()) -> Sessions:
    """Runs that made no call are passed over; one of several calls that has no id is there, but unknown.

    Args:
        columns: of traces and calls, as the training set has them.
        descriptions: of tools and capabilities, in words.
        listed: what may come next although nobody called it yet.
    """
    runs = np.flatnonzero(np.diff(columns["offsets"]) > 0)
    runs = runs[_order(columns, runs)]
    starts = _starts(columns, runs)
    offsets = np.append(starts, len(runs)).astype(np.int64)
    vocabulary, items = _items(columns, runs, listed)
    texts, visible, end_texts = _visible(columns, runs, offsets)
    owners = np.repeat(np.arange(len(starts)), np.diff(offsets))
    success = columns["success"][runs].astype(np.float32)
    times_ms = columns["ended_at_us"][runs].astype(np.int64) // 1_000
    traces = TraceSet(
        items=items,
        success=success,
        offsets=offsets,
        outcomes=_means(success.astype(np.float64), owners, len(starts)),
        weights=_means(_weights(columns)[runs], owners, len(starts)),
        groups=_groups(columns["group"][runs], starts, owners, len(starts)),
        times_ms=times_ms[offsets[1:] - 1],
        texts=visible,
        end_texts=end_texts,
        settled=settled(times_ms, offsets),
    )
    return Sessions(vocabulary, traces, texts, descriptions, listed, _calls(columns, runs, owners))


def session_names(columns: Columns) -> list[tuple[str, int]]:
    """Id and epoch of each session, in the order of the traces of `sessions_of`."""
    runs = np.flatnonzero(np.diff(columns["offsets"]) > 0)
    runs = runs[_order(columns, runs)]
    first = runs[_starts(columns, runs)]
    names = [name.decode() for name in columns["session_id"][first].tolist()]
    return list(zip(names, columns["epoch"][first].tolist(), strict=True))


def _calls(columns: Columns, runs: Places, owners: Places) -> Calls | None:
    """Those that were made: what a mock answered says nothing of how a call ends.

    A task without a pattern was none: it was skipped or refused, or its arguments could not be made.
    Taken for calls that failed, these would make "nothing is known of the arguments" a sure sign of failure.
    """
    if "call_pattern" not in columns:
        return None  # in files of before
    lengths = np.diff(columns["offsets"])
    sessions = np.full(len(lengths), -1, dtype=np.int64)
    sessions[runs] = owners
    traces = np.repeat(sessions, lengths)
    known = (columns["call_pattern_words"] != "")[columns["call_pattern"]]
    kept = np.flatnonzero(known & (columns["call_mocked"] == 0))
    kept = kept[np.argsort(traces[kept], kind="stable")]
    return Calls(
        traces=traces[kept],
        tools=columns["tool"][kept],
        patterns=columns["call_pattern"][kept],
        success=columns["call_success"][kept] > 0,
        tool_words=columns["tool_words"].tolist(),
        pattern_words=columns["call_pattern_words"].tolist(),
    )


def _order(columns: Columns, runs: Places) -> Places:
    """Session by session, and in each the runs as they ended."""
    keys = ("log_offset", "ended_at_us", "epoch", "session_id", "tenant")
    return np.lexsort([columns[name][runs] for name in keys])


def _starts(columns: Columns, runs: Places) -> Places:
    """Where another session begins."""
    if len(runs) == 0:
        return np.zeros(0, dtype=np.int64)
    other = np.zeros(len(runs) - 1, dtype=np.bool_)
    for name in ("tenant", "session_id", "epoch"):
        column = columns[name][runs]
        other |= column[1:] != column[:-1]
    return np.concatenate(([0], np.flatnonzero(other) + 1))


def _items(columns: Columns, runs: Places, listed: Collection[str]) -> tuple[Vocabulary, NDArray[np.int32]]:
    capabilities, tools = columns["capability_words"].tolist(), columns["tool_words"].tolist()
    first = columns["offsets"][runs]
    alone = np.diff(columns["offsets"])[runs] == 1
    called = columns["tool"][np.minimum(first, max(0, len(columns["tool"]) - 1))]
    words = np.where(alone, called, len(tools) + columns["capability"][runs])
    names = [*tools, *capabilities]
    used = {names[word] for word in np.unique(words).tolist()} - {""}
    vocabulary = Vocabulary.of({*used, *listed})
    return vocabulary, vocabulary.ids(names)[words]


def _visible(columns: Columns, runs: Places, offsets: Places) -> tuple[tuple[str, ...], Places, Places]:
    """The texts, the row of what was visible before each item, and of what was after the last of each."""
    if len(runs) == 0:
        return (), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    name = "request" if "request" in columns else "intent"  # files of before have no requests
    words, said = columns[f"{name}_words"], columns[name][runs]
    told = (words != "")[said]
    used, rows = np.unique(said[told], return_inverse=True)
    after = np.full(len(runs), NO_TEXT, dtype=np.int64)
    after[told] = rows
    before, first = np.roll(after, 1), offsets[:-1]
    before[first] = np.where(_client_said(columns, runs[first]), after[first], NO_TEXT)
    return tuple(words[used].tolist()), before, after[offsets[1:] - 1]


def _client_said(columns: Columns, runs: Places) -> NDArray[np.bool_]:
    """Whether the request of a run is a client's, and not what the run was for."""
    if "request" not in columns:
        return np.zeros(len(runs), dtype=np.bool_)
    intents = columns["intent_words"][columns["intent"][runs]]
    said: NDArray[np.bool_] = columns["request_words"][columns["request"][runs]] != intents
    return said


def _weights(columns: Columns) -> NDArray[np.float64]:
    """Of each run."""
    offsets = columns["offsets"]
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    mocked = summed(columns["call_mocked"].astype(np.float64), owners, len(offsets) - 1) > 0
    real = np.where(columns["exploratory"] > 0, EXPLORATORY_WEIGHT, 1.0)
    return np.where(mocked, MOCKED_WEIGHT, real)


def _means(values: NDArray[np.float64], owners: Places, count: int) -> NDArray[np.float32]:
    return (summed(values, owners, count) / np.bincount(owners, minlength=count)).astype(np.float32)


def _groups(of_runs: NDArray[Any], starts: Places, owners: Places, count: int) -> Places:
    """Sessions whose runs are near-duplicates of each other, one after another, have the same."""
    within = np.arange(len(of_runs)) - starts[owners]
    hashes = mixed(of_runs.astype(np.uint64) + within.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    found = np.zeros(count, dtype=np.uint64)
    np.add.at(found, owners, hashes)
    return found.view(np.int64)
