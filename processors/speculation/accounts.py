"""The identity of the accounts (DESIGN §4, Accounts)."""

from __future__ import annotations

from pml.processors.workflow.state import Session


def balanced(session: Session) -> bool:
    """Started = running + waiting + served + discarded + failed, at the end of every decision."""
    accounts = session.accounts
    open_entries = sum(not entry.served for entry in session.speculations.values())
    return accounts.started == open_entries + accounts.served + accounts.discarded + accounts.failed
