"""A tool that says something else three times in a row is not speculated until somebody approves it again.

DESIGN §4, Cache. What verifying calls found is counted by the projection of thresholds, in one order a tool,
and told in the catalog; an approval is the `approved_at` of the tool's entry.
"""

from __future__ import annotations

from dataclasses import dataclass

from pml.schemas.catalog import DivergenceRecord
from pml.schemas.permissions import Permission
from pml.schemas.times import from_rfc3339

IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Divergences:
    """The times of the last divergences in a row, at most three."""

    at: tuple[str, ...] = ()


def told(before: Divergences, at: str, same: bool) -> Divergences:
    """What is known of a tool after one more call that was verified."""
    return Divergences(one_more(before.at, at, same))


def one_more(diverged_at: tuple[str, ...], at: str, same: bool) -> tuple[str, ...]:
    """The last divergences in a row, at most three, after one more call that was verified."""
    return () if same else (*diverged_at, at)[-IN_A_ROW:]


def distrusted(record: DivergenceRecord, permission: Permission | None) -> bool:
    """Whether the last three answers differed, all of them after the tool was approved."""
    if len(record.diverged_at) < IN_A_ROW:
        return False
    approved_at = permission.approved_at if permission else None
    return approved_at is None or from_rfc3339(record.diverged_at[0]) > from_rfc3339(approved_at)
