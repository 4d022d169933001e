"""The exported schemas as lines, a field each: what one release promises, to compare with the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: whether what it lies in always has it, and all that it may be."""

    required: bool
    kinds: frozenset[str]

    def __str__(self) -> str:
        return f"{'always' if self.required else 'maybe'} {' '.join(sorted(self.kinds))}"


Contract = Mapping[str, Field]


def contract(schemas: Mapping[str, dict[str, Any]]) -> dict[str, Field]:
    """Every field of every message by `message path`, sorted."""
    found: dict[str, Field] = {}
    for name, schema in sorted(schemas.items()):
        for path, required, kinds in _fields(schema, schema, "", True, ()):
            before = found.get(f"{name} {path}")
            merged = kinds | (before.kinds if before else frozenset())
            found[f"{name} {path}"] = Field(required and (before is None or before.required), merged)
    return found


def written(lines: Contract) -> str:
    """One line a field."""
    return "".join(f"{name} {field}\n" for name, field in sorted(lines.items()))


def read(text: str) -> dict[str, Field]:
    """The lines of `written`."""
    found = {}
    for line in text.splitlines():
        message, path, required, *kinds = line.split(" ")
        found[f"{message} {path}"] = Field(required == "always", frozenset(kinds))
    return found


def breaks(before: Contract, after: Contract, is_input: frozenset[str]) -> list[str]:
    """What somebody who relies on `before` would miss in `after`; additions are none."""
    found = []
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            found.append(f"{name} is gone")
            continue
        lost = sorted(old.kinds - new.kinds)
        if lost:
            found.append(f"{name} is no {' '.join(lost)} any more")
        if name.split(" ")[0] not in is_input and old.required and not new.required:
            found.append(f"{name} may be absent now")
    return found + _demands(before, after, is_input)


def _demands(before: Contract, after: Contract, is_input: frozenset[str]) -> list[str]:
    """What inputs must have that they needed not have before."""
    messages = {name.split(" ")[0] for name in before}
    return [
        f"{name} must be given now"
        for name, new in after.items()
        if name.split(" ")[0] in is_input & messages and new.required and not _was_required(before, name)
    ]


def _was_required(before: Contract, name: str) -> bool:
    """A field of something that is new itself demands nothing of what there was."""
    if name in before:
        return before[name].required
    parent = name.rpartition(".")[0]
    return not parent.endswith(" ") and parent not in before


def _fields(
    schema: Any, root: dict[str, Any], path: str, required: bool, above: tuple[str, ...]
) -> Iterator[tuple[str, bool, frozenset[str]]]:
    """Path, presence and kinds of a schema and of all in it; what lies in itself is followed once."""
    for part, names in _alternatives(schema, root, above):
        yield path or ".", required, _kinds(part)
        for name, inner in part.get("properties", {}).items():
            yield from _fields(inner, root, f"{path}.{name}", name in part.get("required", ()), names)
        for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(part.get(key), dict):
                yield from _fields(part[key], root, f"{path}{mark}", False, names)


def _alternatives(
    schema: Any, root: dict[str, Any], above: tuple[str, ...]
) -> Iterable[tuple[dict[str, Any], tuple[str, ...]]]:
    if not isinstance(schema, dict):
        return
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        if name not in above:
            yield from _alternatives(root["$defs"][name], root, (*above, name))
        return
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices is None:
        yield schema, above
        return
    for choice in choices:
        yield from _alternatives(choice, root, above)


def _kinds(schema: dict[str, Any]) -> frozenset[str]:
    """Its type, or its constants where it has some."""
    constants = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if constants:
        return frozenset(repr(value).replace(" ", "_") for value in constants)
    kind = schema.get("type", "anything")
    return frozenset(kind if isinstance(kind, list) else [kind])
