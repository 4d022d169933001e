"""`pml thresholds list|branches`: what was learned and what was set, of contexts and of branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pml.processors.speculation.adaptation import WINDOW, Learning
from pml.processors.speculation.branches import BranchCounts, branch_parts, branch_probability
from pml.processors.speculation.thresholds import LEVELS, scope_of
from pml.schemas.catalog import BranchStats, ThresholdLevel, ThresholdOverride, ThresholdRecord
from pml.schemas.topics import SESSION_PARTITIONS
from pml.streams.catalog_topic import Records, read_catalog
from pml.streams.compacted import newest_values
from pml.streams.projections.thresholds.table import Row, changelog_topic, decode_row, subject_of
from pml.streams.settings import Settings
from pml.streams.topics import admin_client, found_topics


@dataclass(frozen=True, slots=True)
class ContextThreshold:
    """One context. `value` is what it says itself: what was set, else what was learned, else nothing.

    `state` is `cold` before the first full window; `window` is how many of the next one's outcomes are there.
    """

    key: str
    tenant: str
    level: ThresholdLevel
    user: str | None
    domain: str | None
    workflow_type: str | None
    value: float | None
    learned: float | None
    manual: float | None
    set_by: str | None
    state: str
    ema: float | None
    windows: int
    window: int
    outcomes: int
    changed_at: str | None

    def as_dict(self) -> dict[str, Any]:
        """As JSON-serialisable values."""
        return {**asdict(self), "window_size": WINDOW}


@dataclass(frozen=True, slots=True)
class BranchOutcome:
    """One outcome of a decision: how many ended runs came to it, and how likely it is held to be (0 to 1)."""

    tenant: str
    workflow_type: str
    decision_id: str
    outcome: str
    runs: int
    of: int
    probability: float

    def as_dict(self) -> dict[str, Any]:
        """As JSON-serialisable values."""
        return asdict(self)


async def read_branches(settings: Settings) -> list[BranchOutcome]:
    """All outcomes that ended runs came to.

    Raises:
        BrokerUnavailable, LogCorrupted: as `read_thresholds`.
    """
    return branches(await read_rows(settings))


async def read_thresholds(settings: Settings) -> list[ContextThreshold]:
    """All contexts of all tenants, general ones first.

    Raises:
        BrokerUnavailable: the broker does not answer.
        LogCorrupted: the table was written by a newer release.
    """
    records = await read_catalog(settings)
    return contexts(records, await read_rows(settings))


async def read_rows(settings: Settings) -> dict[str, Row]:
    """The rows of the role's table by subject; none where the role never ran.

    Raises:
        BrokerUnavailable, LogCorrupted: as `read_thresholds`.
    """
    topic = changelog_topic(settings)
    async with admin_client(settings) as admin:
        if not await found_topics(admin, [topic]):
            return {}
    values = await newest_values(settings, topic, SESSION_PARTITIONS)
    found = {subject_of(key)[1]: value for key, value in values.items()}
    return {subject: decode_row(value) for subject, value in found.items() if subject is not None}


def contexts(records: Records, rows: Mapping[str, Row]) -> list[ContextThreshold]:
    """What the catalog says of each context, and what the rows know of its next window."""
    by_subject = {record.key.decode(): record.data for record in records.values()}
    progress = {subject: row for subject, row in rows.items() if isinstance(row.learned, Learning)}
    prefixes = (f"{ThresholdRecord.KIND}/", f"{ThresholdOverride.KIND}/")
    subjects = [*by_subject, *progress]
    keys = {
        subject.removeprefix(prefix)
        for subject in subjects
        for prefix in prefixes
        if subject.startswith(prefix) and _names_context(subject.removeprefix(prefix))
    }
    found = [
        _context(
            key,
            by_subject.get(prefixes[0] + key),
            by_subject.get(prefixes[1] + key),
            progress.get(prefixes[0] + key),
        )
        for key in keys
    ]
    known = [item for item in found if item.manual is not None or item.outcomes]
    return sorted(known, key=lambda item: (item.tenant, -LEVELS.index(item.level), item.key))


def _names_context(key: str) -> bool:
    """Whether it does: whoever writes into the topic may write anything."""
    try:
        scope_of(key)
    except ValueError:
        return False
    return True


def branches(rows: Mapping[str, Row]) -> list[BranchOutcome]:
    """The outcomes of each decision, the likeliest first."""
    prefix = f"{BranchStats.KIND}/"
    found = [
        outcome
        for subject, row in rows.items()
        if subject.startswith(prefix) and isinstance(row.learned, BranchCounts)
        for outcome in _outcomes(subject.removeprefix(prefix), row.learned.counts)
    ]
    return sorted(found, key=lambda o: (o.tenant, o.workflow_type, o.decision_id, -o.runs, o.outcome))


def _outcomes(key: str, counts: Mapping[str, int]) -> list[BranchOutcome]:
    of = sum(counts.values())
    return [
        BranchOutcome(*branch_parts(key), outcome, runs, of, branch_probability(counts, outcome))
        for outcome, runs in counts.items()
    ]


def _context(key: str, record: Any, override: Any, row: Row | None) -> ContextThreshold:
    """The row knows all; the record stands in where the role has not kept its row (yet)."""
    state = row.learned if row is not None and isinstance(row.learned, Learning) else _learning(record)
    learned = state.value if state.windows else None
    manual = override.value if override else None
    told = override if manual is not None else record
    return ContextThreshold(
        key=key,
        **scope_of(key),  # type: ignore[arg-type]
        value=learned if manual is None else manual,
        learned=learned,
        manual=manual,
        set_by=override.principal if manual is not None else None,
        state=state.state,
        ema=state.ema if state.windows else None,
        windows=state.windows,
        window=state.seen,
        outcomes=state.outcomes,
        changed_at=told.changed_at if told else None,
    )


def _learning(record: ThresholdRecord | None) -> Learning:
    return Learning(record.value, record.ema, record.windows) if record else Learning()
