"""Which traces a training set has, and on which side each of them lies."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from pml.schemas.errors import ConfigurationError

SIDES = ("training", "validation", "test", "left_out")
Split = Literal["groups", "sessions", "time"]
# Wide enough for whatever the log has, and inside what ClickHouse's times can hold.
EARLIEST, LATEST = "1970-01-01T00:00:00Z", "2200-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Selection:
    """Runs that ended in [since, until), RFC 3339, of one tenant or of all; shares of the split in [0, 1).

    `split` draws groups of near-duplicates, or sessions, with `seed`; or the latest traces are the test.

    Raises:
        ConfigurationError: nothing would be left to train on.
    """

    tenant: str | None = None
    since: str = EARLIEST
    until: str = LATEST
    validation: float = 0.1
    test: float = 0.2
    seed: int = 0
    split: Split = "groups"

    def __post_init__(self) -> None:
        if min(self.validation, self.test) < 0 or self.validation + self.test >= 1:
            raise ConfigurationError(
                "the shares of validation and test are at least 0, and less than 1 together: the rest trains"
            )

    def parameters(self) -> dict[str, Any]:
        """For the queries of a training set."""
        cuts = {"validation_from": LATEST, "test_from": LATEST}
        return {**asdict(self), "tenant": self.tenant or "", **cuts}

    def as_dict(self) -> dict[str, Any]:
        """For a manifest: the same selection of the same log is the same set."""
        return asdict(self)
