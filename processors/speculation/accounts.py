"""The identity of the accounts (DESIGN §4, Accounts)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pml.processors.workflow.state import Session


def balanced(session: Session) -> bool:
    """Started = running + waiting + served + discarded + failed, at the end of every decision."""
    return drift(session) == 0


def drift(session: Session) -> int:
    """How many speculations that were started are in no account; negative where some are in two."""
    accounts = session.accounts
    return accounts.started - (open_entries(session) + accounts.served + accounts.discarded + accounts.failed)


def open_entries(session: Session) -> int:
    """Speculations that run or wait, and that nobody was served by."""
    return sum(not entry.served for entry in session.speculations.values())
