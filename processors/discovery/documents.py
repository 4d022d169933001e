"""What is found: a tool or a capability as a text, with the names of what it takes and gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pml.processors.discovery.words import TEXT_CHARACTERS, spoken

Kind = Literal["tool", "capability"]
Schema = Mapping[str, Any]

# A schema is a tree that its server wrote: what lies deeper or comes later is not looked at.
SCHEMA_DEPTH = 4
SCHEMA_FIELDS = 200


@dataclass(frozen=True, slots=True)
class Document:
    """One thing to be found.

    `name` and `text` are what is compared; `takes` are the required inputs, `gives` the outputs by their
    names; `tools` are those that a capability is made of.
    """

    id: str
    kind: Kind
    name: str
    text: str
    takes: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


def tool_document(
    tool: str, description: str, input_schema: Schema | None = None, output_schema: Schema | None = None
) -> Document:
    """A tool (`server:name`): its name in words, its description, and its inputs with theirs."""
    name = spoken(tool)
    parts = (name, description, *_fields(input_schema or {}))
    return Document(
        id=tool,
        kind="tool",
        name=name,
        text=_text(parts),
        takes=_names(input_schema, "required"),
        gives=_names(output_schema, "properties"),
    )


def capability_document(
    capability: str, name: str, intent: str, description: str = "", tools: Sequence[str] = ()
) -> Document:
    """A capability (`cap_…`): its name, what it was learned for, and its tools by name."""
    parts = (spoken(name), intent, description, *(spoken(tool) for tool in tools))
    return Document(
        id=capability,
        kind="capability",
        name=spoken(name),
        text=_text(parts),
        tools=tuple(dict.fromkeys(tools)),
    )


def _text(parts: Sequence[str]) -> str:
    return ". ".join(part.strip() for part in parts if part.strip())[:TEXT_CHARACTERS]


def _names(schema: Schema | None, key: str) -> tuple[str, ...]:
    """Field names under a key, whether it is a list of names or a mapping; a schema may say anything."""
    found = schema.get(key) if isinstance(schema, Mapping) else None
    if not isinstance(found, (Mapping, list, tuple)):
        return ()
    return tuple(name for name in list(found)[:SCHEMA_FIELDS] if isinstance(name, str))


def _fields(schema: Schema) -> Iterator[str]:
    """Each field's name and description, from the outside in, so many at most."""
    level: list[Any] = [schema]
    left = SCHEMA_FIELDS
    for _ in range(SCHEMA_DEPTH):
        named = [pair for each in level for pair in _properties(each)][:left]
        left -= len(named)
        for name, field in named:
            told = field.get("description") if isinstance(field, Mapping) else None
            yield f"{spoken(name)} {told}" if isinstance(told, str) else spoken(name)
        level = [field for _, field in named]


def _properties(schema: Any) -> list[tuple[str, Any]]:
    """The fields of an object, or of the items of a list."""
    if not isinstance(schema, Mapping):
        return []
    found = schema.get("properties")
    if isinstance(found, Mapping):
        return [(name, field) for name, field in found.items() if isinstance(name, str)]
    return _properties(schema.get("items"))
