"""`pml_discover`: which tools and capabilities fit an intent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from pml.schemas.base import Json
from pml.schemas.discovery import (
    DISCOVERED_DEFAULT,
    DISCOVERED_MAX,
    OFFSET_MAX,
    Discovered,
    DiscoverRequest,
    Kind,
)
from pml.streams.mcp_server.bounds import TEXT_BYTES_MAX, cut, cut_bytes, wire_bytes
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.shapes import Answer, Asked

FOUND_BYTES_MAX = 24_000
NOT_WHOLE = "The catalog was not read to its end yet; ask again for what is newest."


class FilterAsked(Asked):
    """What may be found."""

    type: Annotated[Kind | None, Field(description="Only tools, or only capabilities.")] = None
    min_score: Annotated[float, Field(ge=0, le=1, description="From this score upwards.")] = 0.0


class DiscoverAsked(Asked):
    """Find what fits an intent."""

    intent: Annotated[
        str, Field(min_length=1, max_length=10_000, description="What is to be done, in words.")
    ]
    filter: FilterAsked = FilterAsked()
    limit: Annotated[int, Field(ge=1, le=DISCOVERED_MAX)] = DISCOVERED_DEFAULT
    offset: Annotated[int, Field(ge=0, le=OFFSET_MAX, description="`next_offset` of the last page.")] = 0


class FoundAnswer(Answer):
    """What was found, the best first; `total` in all. A field that `shortened` names was cut."""

    items: tuple[Discovered, ...] = ()
    total: int = 0
    next_offset: int | None = None
    complete: bool = True
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """How much of each result is told: characters of texts, bytes of schemas and definitions."""

    text: int
    code: int
    schema: int


# The first that fits is taken; the last fits whatever tools say of themselves (a property of the tests).
CUTS = (
    Cut(text=2_000, code=8_000, schema=8_000),
    Cut(text=500, code=2_000, schema=2_000),
    Cut(text=200, code=500, schema=600),
    Cut(text=100, code=0, schema=0),
    Cut(text=0, code=0, schema=0),
)
NAME_CHARACTERS_MAX = 100
ID_CHARACTERS_MAX = 1_000
FIELDS_TOLD = 10


async def discover(call: Call, asked: DiscoverAsked) -> FoundAnswer:
    """What fits an intent among the tools and this tenant's capabilities.

    Raises:
        BrokerUnavailable: no broker answers.
    """
    request = DiscoverRequest.model_validate(asked.model_dump())
    found = await call.door.finder.discover(call.caller.tenant, request)
    items = fitting_items(found.items, FOUND_BYTES_MAX)
    behind = request.offset + len(items)
    return FoundAnswer(
        items=items,
        total=found.total,
        next_offset=behind if items and behind < found.total else None,
        complete=found.complete,
        notice=None if found.complete else NOT_WHOLE,
    )


def fitting_items(items: Sequence[Discovered], bytes_max: int) -> tuple[Discovered, ...]:
    """The results, each cut alike and no more than needed; the first ones where even names are too many."""
    for most in CUTS:
        told = tuple(_cut(item, most) for item in items)
        if _bytes(told) <= bytes_max:
            return told
    sizes = accumulate(_bytes((item,)) for item in told)
    return told[: sum(1 for size in sizes if size <= bytes_max)]


def _bytes(items: Sequence[Discovered]) -> int:
    return wire_bytes([item.model_dump(mode="json") for item in items])


def render(answer: FoundAnswer) -> str:
    """A line for each result, for a model that reads text alone."""
    lines = [line(item) for item in answer.items] or ["nothing fits"]
    if answer.next_offset is not None:
        lines.append(f"{answer.total} in all; more with offset {answer.next_offset}")
    lines += [text for text in (answer.notice,) if text]
    return cut_bytes("\n".join(lines), TEXT_BYTES_MAX)


def line(item: Discovered) -> str:
    """A result in one line: its score, what it is, what it takes, what it says of itself."""
    asks = " (a person is asked)" if item.needs_approval else ""
    takes = ", ".join(item.takes[:FIELDS_TOLD])
    return f"{item.score:.2f} {item.type} {item.id}({takes}){asks}: {cut(item.description, 120)}"


def _cut(item: Discovered, most: Cut) -> Discovered:
    cuts: dict[str, Any] = {
        "description": cut(item.description, most.text),
        "code": None if item.code is None else cut(item.code, most.code) or None,
        "input_schema": _schema(item.input_schema, most.schema),
        "output_schema": _schema(item.output_schema, most.schema),
        "definition": _whole(item.definition, most.schema),
        "parameters": item.parameters if _small(item.parameters, most.schema) else (),
        "tools": item.tools if wire_bytes(item.tools) <= most.schema else (),
        "name": cut(item.name, NAME_CHARACTERS_MAX),
        "id": cut(item.id, ID_CHARACTERS_MAX),
    }
    changed = tuple(name for name, value in cuts.items() if value != getattr(item, name))
    return item.model_copy(update={**cuts, "shortened": changed})


def _schema(schema: dict[str, Json] | None, bytes_max: int) -> dict[str, Json] | None:
    """The schema; one that is too large without what lies inside of its fields; else none."""
    if schema is None or wire_bytes(schema) <= bytes_max:
        return schema
    properties, required = schema.get("properties"), schema.get("required")
    plain: dict[str, Json] = {"type": schema.get("type", "object")}
    if isinstance(properties, Mapping):
        plain["properties"] = {str(name): _type_of(field) for name, field in properties.items()}
    if isinstance(required, list):
        plain["required"] = required
    return plain if wire_bytes(plain) <= bytes_max else None


def _type_of(field: Any) -> dict[str, Json]:
    kind = field.get("type") if isinstance(field, Mapping) else None
    return {"type": kind} if isinstance(kind, (str, list)) else {}


def _whole(value: dict[str, Json] | None, bytes_max: int) -> dict[str, Json] | None:
    return value if value is not None and wire_bytes(value) <= bytes_max else None


def _small(parameters: Sequence[Any], bytes_max: int) -> bool:
    return wire_bytes([taken.model_dump(mode="json") for taken in parameters]) <= bytes_max
