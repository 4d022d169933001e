"""What is asked and answered where somebody looks for what fits an intent (spec story 10.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from pml.schemas.base import Json, Model, Record
from pml.schemas.structure import Language, StructureParameter

Kind = Literal["tool", "capability"]
DISCOVERED_MAX = 50
DISCOVERED_DEFAULT = 10
OFFSET_MAX = 100_000


class DiscoverFilter(Model):
    """What may be found: things of one kind, from a score upwards."""

    type: Annotated[Kind | None, Field(description="Only tools, or only capabilities.")] = None
    min_score: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0


class DiscoverRequest(Model):
    """Which tools and capabilities fit this intent?"""

    intent: Annotated[
        str, Field(min_length=1, max_length=10_000, description="What is to be done, in words.")
    ]
    filter: DiscoverFilter = DiscoverFilter()
    limit: Annotated[int, Field(ge=1, le=DISCOVERED_MAX)] = DISCOVERED_DEFAULT
    offset: Annotated[int, Field(ge=0, le=OFFSET_MAX)] = 0


class Discovered(Record):
    """A tool, or a learned capability, and how well it fits.

    Attributes:
        score: from 0 to 1; equal ones are ordered by id.
        needs_approval: whether a person is asked before it, or a part of it, is called.
        input_schema, output_schema: a tool's, as its server says them.
        definition: a capability's tasks, decisions and result, as a workflow has them.
        shortened: the fields that were cut to fit an answer.
    """

    type: Kind
    id: str
    name: str
    score: float = Field(ge=0.0, le=1.0)
    description: str = ""
    needs_approval: bool = False
    input_schema: dict[str, Json] | None = None
    output_schema: dict[str, Json] | None = None
    parameters: tuple[StructureParameter, ...] = ()
    tools: tuple[str, ...] = ()
    language: Language | None = None
    code: str | None = None
    definition: dict[str, Json] | None = None
    runs: int | None = None
    successes: int | None = None
    shortened: tuple[str, ...] = ()

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of what it is given."""
        if self.type == "capability":
            return tuple(taken.name for taken in self.parameters)
        properties = (self.input_schema or {}).get("properties")
        return tuple(str(name) for name in properties) if isinstance(properties, Mapping) else ()


class DiscoverAnswer(Record):
    """What was found, the best first.

    Attributes:
        total: how many there are in all.
        next_offset: where the next page begins; None behind the last one.
        complete: whether the catalog was read to its end; if not, ask again.
    """

    items: tuple[Discovered, ...] = ()
    total: int = 0
    next_offset: int | None = None
    complete: bool = True
