"""Who is told of records that cannot be read and are passed over: a log, or the person at a command."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import structlog

log = structlog.get_logger("pml.unreadable")

Tell = Callable[[str], None]


def _into_log(text: str) -> None:
    # Who follows the topic has warned of it, and written the dead letter.
    log.debug(text)


telling: ContextVar[Tell] = ContextVar("pml_unreadable", default=_into_log)


def once(tell: Tell) -> Tell:
    """Tells the same but once, however often it is read."""
    told: set[str] = set()

    def tell_new(text: str) -> None:
        if text not in told:
            told.add(text)
            tell(text)

    return tell_new
