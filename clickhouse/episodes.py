"""Reading episodes: all of one tenant at first, then what is new."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Any

import orjson

from pml.clickhouse.client import Limits, Store
from pml.processors.memory.context import Context, context_of
from pml.processors.memory.retrieval import Episode
from pml.schemas.identifiers import event_id
from pml.schemas.topics import SESSION_PARTITIONS

RunKey = tuple[str, int, str]
"""Session, epoch and run."""

# A context has up to 10 KB, so a page of them at most 5 MB.
PAGE_RUNS = 500
_LIMITS = Limits(rows=200_000, time_s=30)

_NEW = """
SELECT
    session_id, epoch, run_id, seq, partition, log_offset, event_type, task_id, timestamp, tool_id, success,
    confidence, details
FROM episodes_raw
WHERE tenant = {tenant:String} AND log_offset >= {next:Array(UInt64)}[partition + 1]
ORDER BY tenant DESC, timestamp DESC
LIMIT {most:UInt32}
"""
_CONTEXTS = """
SELECT session_id, epoch, run_id, workflow_type, context
FROM runs_raw
WHERE
    tenant = {tenant:String} AND type = 'run.started' AND session_id IN {sessions:Array(String)}
    AND run_id IN {runs:Array(String)}
"""


class EpisodeReader:
    """Follows one tenant's episodes: the sink stores a partition in order, so a place in each will do."""

    def __init__(self, store: Store, tenant: str, most: int) -> None:
        self._store, self._tenant, self._most = store, tenant, most
        self._next = [0] * SESSION_PARTITIONS
        self._contexts: OrderedDict[RunKey, Context] = OrderedDict()

    def read(self) -> list[Episode]:
        """What was stored since the last time, the newest `most` of it.

        Raises:
            StoreUnavailable, QueryError
        """
        given = {"tenant": self._tenant, "next": self._next, "most": self._most}
        rows = self._store.query(_NEW, given, _LIMITS).as_dicts()
        self._read_contexts({_run_of(row) for row in rows})
        # A batch that was stored twice and not merged yet has the same rows again.
        episodes = {(row["partition"], row["log_offset"]): self._episode(row) for row in rows}
        for partition, offset in episodes:
            self._next[partition] = max(self._next[partition], offset + 1)
        self._forget()
        return list(episodes.values())

    def _episode(self, row: dict[str, Any]) -> Episode:
        return Episode(
            id=event_id(self._tenant, row["session_id"], row["epoch"], row["seq"]),
            partition=row["partition"],
            log_offset=row["log_offset"],
            workflow_id=row["run_id"],
            event_type=row["event_type"],
            timestamp=row["timestamp"],
            context=self._contexts.get(_run_of(row), Context()),
            task_id=row["task_id"] or None,
            tool_id=row["tool_id"] or None,
            success=row["success"],
            confidence=row["confidence"],
            data=row["details"],
        )

    def _read_contexts(self, runs: Iterable[RunKey]) -> None:
        missing = iter(sorted(run for run in runs if run not in self._contexts))
        while page := list(islice(missing, PAGE_RUNS)):
            given = {
                "tenant": self._tenant,
                "sessions": sorted({session for session, _, _ in page}),
                "runs": sorted({run for _, _, run in page}),
            }
            for row in self._store.query(_CONTEXTS, given, _LIMITS).as_dicts():
                values = orjson.loads(row["context"] or "{}")
                self._contexts[_run_of(row)] = context_of(row["workflow_type"], values)

    def _forget(self) -> None:
        """Runs that go on are asked for again; older ones are not."""
        while len(self._contexts) > self._most:
            self._contexts.popitem(last=False)


def _run_of(row: dict[str, Any]) -> RunKey:
    return row["session_id"], row["epoch"], row["run_id"]
