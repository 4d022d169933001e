"""The table of what was learned: a row for each subject of lessons, and how far they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pml.processors.capabilities.edge_weights import KnownEdge
from pml.processors.capabilities.edges import EdgeKey
from pml.processors.capabilities.records import KnownCapability
from pml.processors.learning.live_hits import LiveHits, Waiting, Window
from pml.processors.speculation.adaptation import Learning
from pml.processors.speculation.branches import BranchCounts
from pml.processors.speculation.distrust import Divergences
from pml.schemas.catalog import Capability
from pml.schemas.errors import LogCorrupted
from pml.schemas.workflow import Task
from pml.streams.settings import Settings

ROLE = "thresholds"
TABLE = "learned"
VERSION = 1
# Rows are small and change often: whatever is behind the newest of each is soon gone.
CHANGELOG = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.1"}
_POSITION = "position"


_DIVERGED = "diverged"
_CAPABILITY = "capability"
_EDGE = "edge"
_LIVE = "live"
Knowledge = Learning | BranchCounts | Divergences | KnownCapability | KnownEdge | LiveHits


@dataclass(frozen=True, slots=True)
class Row:
    """What one subject has learned, with its guard: the last log offset of each partition that is in it."""

    learned: Knowledge
    guard: Mapping[int, int] = field(default_factory=dict)
    at: str = ""


def key_of(partition: int, subject: str) -> bytes:
    """The key of a subject's row; it begins with the partition, so that two owners never share one."""
    return f"{partition}/{subject}".encode()


def position_key(partition: int) -> bytes:
    """The key under which a partition keeps the offset of the last lesson in its rows."""
    return key_of(partition, _POSITION)


def subject_of(key: bytes) -> tuple[int, str | None]:
    """Partition and subject of a key; no subject where it is the one of the position.

    Raises:
        LogCorrupted: the key is none of ours.
    """
    number, separator, subject = key.decode(errors="replace").partition("/")
    if not (separator and number.isdigit() and subject):
        raise LogCorrupted(f"the table of thresholds holds a key that is none of its own: {key!r}")
    return int(number), None if subject == _POSITION else subject


def changelog_topic(settings: Settings) -> str:
    """The compacted topic in which Faust keeps the table."""
    return f"{settings.group(ROLE)}-{TABLE}-changelog"


def encode_row(row: Row) -> bytes:
    """State and guard in one value."""
    learned = row.learned
    state: Any
    if isinstance(learned, Learning):
        state = [learned.value, learned.ema, learned.windows, learned.seen, learned.successes]
    elif isinstance(learned, Divergences):
        state = [_DIVERGED, learned.at]
    elif isinstance(learned, KnownCapability):
        # Not without defaults: what kind an argument is would be one of them.
        record = learned.record.model_dump(mode="json", exclude_none=True)
        steps = [[run, [_told_step(task) for task in tasks]] for run, tasks in learned.steps]
        state = [_CAPABILITY, record, learned.told_runs, learned.awaited, steps]
    elif isinstance(learned, KnownEdge):
        state = [_EDGE, *_edge_state(learned)]
    elif isinstance(learned, LiveHits):
        # In their order: what waits longest, and what was counted longest ago, makes room.
        waiting = [[session, *item] for session, item in learned.waiting.items()]
        windows = [
            [model, window.since, window.outcomes, window.hits, window.sessions]
            for model, window in learned.windows.items()
        ]
        state = [_LIVE, waiting, windows]
    else:
        state = [learned.counts, learned.told]
    return orjson.dumps({"v": VERSION, "state": state, "guard": list(row.guard.items()), "at": row.at})


def decode_row(value: bytes) -> Row:
    """A row out of its value.

    Raises:
        LogCorrupted: the value is none of ours, or of a newer release.
    """
    try:
        stored = orjson.loads(value)
        if stored["v"] != VERSION:
            raise LogCorrupted(
                f"thresholds were written in version {stored['v']}, this release reads {VERSION}; upgrade PML"
            )
        state = stored["state"]
        return Row(_learned(state), dict(stored["guard"]), stored["at"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise LogCorrupted(
            f"the stored thresholds cannot be read ({error}); rebuild them from the log"
        ) from None


def _edge_state(edge: KnownEdge) -> list[Any]:
    key, known = edge.key, [edge.weight, edge.runs, edge.successes, edge.fields]
    return [key.type, key.source, key.target, *known, edge.told_weight, edge.told_runs, edge.told_fields]


def _told_step(task: Task) -> list[Any]:
    return [task.id, task.tool, task.depends_on]


def _step(stored: list[Any]) -> Task:
    return Task(id=stored[0], tool=stored[1], depends_on=tuple(stored[2]))


def _pairs(stored: Sequence[Sequence[Any]]) -> tuple[tuple[Any, str], ...]:
    return tuple((one, other) for one, other in stored)


def _learned(state: list[Any]) -> Knowledge:
    if state[0] == _DIVERGED:
        return Divergences(tuple(state[1]))
    if state[0] == _CAPABILITY:
        awaited = state[3] if len(state) > 3 else ()
        steps = ((run, tuple(map(_step, tasks))) for run, tasks in (state[4] if len(state) > 4 else ()))
        record = Capability.model_validate(state[1])
        return KnownCapability(record, state[2], _pairs(awaited), tuple(steps))
    if state[0] == _EDGE:
        key, (weight, runs, successes, fields, *told) = EdgeKey(*state[1:4]), state[4:]
        return KnownEdge(key, weight, runs, successes, _pairs(fields), *told)
    if state[0] == _LIVE:
        waiting = {session: Waiting(*item) for session, *item in state[1]}
        return LiveHits(waiting, {model: Window(*window) for model, *window in state[2]})
    return BranchCounts(*state) if isinstance(state[0], dict) else Learning(*state)
