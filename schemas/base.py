"""What all models share: frozen, snake_case out, camelCase also accepted in.

Pydantic makes each ready when it is first used (`defer_build`): a command uses few of them, and to make all
of them ready took a fifth of its start.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AliasGenerator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from pml.schemas.identifiers import is_name

CAMEL_CASE_TOO = AliasGenerator(validation_alias=to_camel)


class Model(BaseModel):
    """A model that comes from outside: an unknown field is a mistake somebody wants to hear of."""

    model_config = ConfigDict(
        frozen=True,
        defer_build=True,
        extra="forbid",
        alias_generator=CAMEL_CASE_TOO,
        populate_by_name=True,
    )


class Record(BaseModel):
    """A model of our own topics: fields that a newer release added are passed over."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="ignore")


def _checked_name(text: str) -> str:
    if not is_name(text):
        raise ValueError("must be 1 to 128 letters, digits or ._:@+- and begin with a letter or digit")
    return text


Name = Annotated[str, AfterValidator(_checked_name)]
Json = Any


class Coordinate(Record):
    """Where a record rests: the address of a full value (DESIGN §2, payloads)."""

    topic: str
    partition: int
    offset: int


class ThresholdContext(Record):
    """For whom and for what a speculation was begun: what its threshold is looked up by, and learned from."""

    user: str = "default"
    domain: str = "default"
    workflow_type: str = "default"
