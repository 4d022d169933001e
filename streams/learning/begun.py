"""When the last training of each tenant's watch began: a restart is no reason for another.

The models do not tell: a training may fail, or make what an earlier one had made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pml.schemas.errors import ConfigurationError
from pml.schemas.times import from_rfc3339, to_rfc3339
from pml.streams.learning.locked_file import changed, held

FILE = "trainings.json"


def note_begun(folder: Path, tenant: str, now_ms: int) -> None:
    """Keep that a training begins now.

    Args:
        folder: that of the models; is made where it is not there.
        now_ms: milliseconds since 1970.

    Raises:
        ConfigurationError: the file cannot be read or written.
    """

    def note(begun: dict[str, Any]) -> None:
        begun[tenant] = to_rfc3339(now_ms)

    changed(folder / FILE, note)


def last_begun_ms(folder: Path, tenant: str) -> int | None:
    """When the last one began, milliseconds since 1970; None: none is known of.

    Raises:
        ConfigurationError: the file cannot be read, or holds no times.
    """
    found = held(folder / FILE).get(tenant)
    try:
        return None if found is None else from_rfc3339(found)
    except (ValueError, TypeError, AttributeError):
        raise ConfigurationError(f"{folder / FILE} holds no time for {tenant}: remove the file") from None
