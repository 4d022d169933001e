"""A score as the outcome of a run: what somebody thought of it instead of how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pml.clickhouse.training.columns import Column
from pml.schemas.errors import ConfigurationError

# Of a number nothing was said about: the better half of 0 to 1.
NUMBER_LEAST = 0.5
SCORED = "scored"

_WRITTEN = re.compile(r"(?P<name>[^\s<>=]+)(?:>=(?P<least>-?\d+(?:\.\d+)?)|=(?P<category>.+))?")


@dataclass(frozen=True, slots=True)
class OutcomeScore:
    """A run is good whose score of this name is true, a number of at least `least`, or this `category`.

    A score of a kind that nothing is said about is passed over: a number where a `category` is asked for, a
    category where none is.
    """

    name: str
    least: float | None = NUMBER_LEAST
    category: str = ""

    @classmethod
    def parse(cls, told: str) -> OutcomeScore:
        """Of `helpful`, `quality>=0.8` or `tone=formal`.

        Raises:
            ConfigurationError: it is written in another way.
        """
        found = _WRITTEN.fullmatch(told.strip())
        if found is None:
            raise ConfigurationError(
                f"{told!r} is no outcome; write NAME, NAME>=NUMBER or NAME=CATEGORY, as in quality>=0.8"
            )
        name, least, category = found.group("name", "least", "category")
        if category is not None:
            return cls(name, None, category)
        return cls(name, NUMBER_LEAST if least is None else float(least))

    def column(self) -> Column:
        """1 where the run's score says that it was good, 0 where not, −1 where there is none that says."""
        verdict = (
            "multiIf(score.name != {outcome_name:String}, -1, "
            "isNotNull(score.boolean), if(assumeNotNull(score.boolean), 1, 0), "
            "{outcome_numbers:UInt8} AND isNotNull(score.number), "
            "if(assumeNotNull(score.number) >= {outcome_least:Float64}, 1, 0), "
            "{outcome_category:String} != '' AND isNotNull(score.category), "
            "if(assumeNotNull(score.category) = {outcome_category:String}, 1, 0), -1)"
        )
        verdicts = f"arrayMap(score -> toInt8({verdict}), scores)"
        return Column(f"toInt8(arrayMax(arrayConcat([toInt8(-1)], {verdicts})))", "|i1")

    def parameters(self) -> dict[str, Any]:
        """For the query of that column."""
        return {
            "outcome_name": self.name,
            "outcome_numbers": int(self.least is not None),
            "outcome_least": self.least or 0.0,
            "outcome_category": self.category,
        }
