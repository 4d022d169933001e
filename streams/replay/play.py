"""One replay: a source read once, every projection folded from it, compared where that was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pml.streams.replay.accounts import AccountsReplay
from pml.streams.replay.report import Comparison
from pml.streams.replay.rows import RowsReplay
from pml.streams.replay.sessions import SessionsReplay
from pml.streams.replay.sources import Entries, Unreadable

NOT_REBUILT = (
    "thresholds",
    "branches, capabilities and edges",
    "how often models are right",
    "tables that ClickHouse derives from events_raw",
)


@dataclass(slots=True)
class ReplayReport:
    """What was read and what came of it."""

    events: int = 0
    offsets: dict[int, list[int]] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)

    @property
    def same(self) -> bool:
        """Whether nothing that was compared differs."""
        return not any(comparison.differences for comparison in self.comparisons)

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "events": self.events,
            "offsets": self.offsets,
            "same": self.same,
            "projections": [comparison.as_dict() for comparison in self.comparisons],
            "not_rebuilt": list(NOT_REBUILT),
        }


async def replay(
    source: Entries,
    *,
    sessions: SessionsReplay,
    accounts: AccountsReplay | None,
    rows: RowsReplay | None,
    session: tuple[str, str] | None = None,
    on_event: Callable[[], None] = lambda: None,
) -> ReplayReport:
    """Read the source once and fold every projection; `session` (tenant, session) takes only its events.

    What is no event is a difference of the projection `log`; it is passed over.

    Raises:
        BrokerUnavailable, StoreUnavailable, LogCorrupted, UndecodableRecord: as the source and the store do.
    """
    log = Comparison("log")
    report = ReplayReport(comparisons=[log])
    async for entry in source:
        if session is not None and entry.session not in (session, None):
            continue
        if isinstance(entry, Unreadable):
            log.differs(entry.place, "event", "an event", entry.reason)
            continue
        report.events += 1
        span = report.offsets.setdefault(entry.partition, [entry.event.offset, entry.event.offset])
        span[1] = entry.event.offset
        sessions.fold(entry)
        if accounts is not None:
            accounts.fold(entry)
        if rows is not None and rows.fold(entry):
            await asyncio.to_thread(rows.compare, entry.partition)
        on_event()
    log.folded = log.compared = report.events
    await _finish(report, sessions, accounts, rows)
    return report


async def _finish(
    report: ReplayReport,
    sessions: SessionsReplay,
    accounts: AccountsReplay | None,
    rows: RowsReplay | None,
) -> None:
    last: Mapping[int, int] = {partition: span[1] for partition, span in report.offsets.items()}
    sessions.finish()
    report.comparisons.append(sessions.comparison)
    if accounts is not None:
        accounts.finish(last)
        report.comparisons.append(accounts.comparison)
    if rows is not None:
        await asyncio.to_thread(rows.finish, last)
        report.comparisons.append(rows.comparison)
