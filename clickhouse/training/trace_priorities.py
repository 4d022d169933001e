"""How much each trace has to teach, written where the view `traces` finds it: by the trace's whole name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pml.clickhouse.client import Store

TABLE = "trace_priorities"
COLUMNS = ("tenant", "session_id", "epoch", "run_id", "priority", "updated_at")
ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class TraceNames:
    """The names of traces as columns: `tenant` texts, `session_id` and `run_id` bytes, `epoch` uint64."""

    tenant: NDArray[Any]
    session_id: NDArray[np.bytes_]
    epoch: NDArray[np.uint64]
    run_id: NDArray[np.bytes_]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]]) -> TraceNames:
        """Those of a training set that was read (`read_arrays`)."""
        tenant = columns["tenant_words"][columns["tenant"]]
        return cls(tenant, columns["session_id"], columns["epoch"], columns["run_id"])

    def __len__(self) -> int:
        return len(self.run_id)


def write_priorities(
    store: Store,
    names: TraceNames,
    priorities: NDArray[np.float64],
    at: datetime,
    told: Callable[[int], None] = lambda count: None,
) -> int:
    """Write a priority, [0.01, 1], for each trace; how many.

    Args:
        at: when they were found out; the latest of a trace holds.
        told: called with the rows of each piece.

    Raises:
        StoreUnavailable: what was written stays; write all again.
        QueryError
    """
    for first in range(0, len(names), ROWS_AT_ONCE):
        rows = _rows(names, priorities, at, slice(first, first + ROWS_AT_ONCE))
        store.insert(TABLE, COLUMNS, rows)
        told(len(rows))
    return len(names)


def _rows(
    names: TraceNames, priorities: NDArray[np.float64], at: datetime, part: slice
) -> Sequence[Sequence[Any]]:
    return [
        (tenant, session_id.decode(), epoch, run_id.decode(), priority, at)
        for tenant, session_id, epoch, run_id, priority in zip(
            names.tenant[part].tolist(),
            names.session_id[part].tolist(),
            names.epoch[part].tolist(),
            names.run_id[part].tolist(),
            priorities[part].tolist(),
            strict=True,
        )
    ]
