"""What is known of the parameters of tools: from their schemas, and from the calls that were seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pml.processors.learning.argument_values import is_redacted, spelled

PARAMETERS_MOST: Final = 64
CONSTANTS_MOST: Final = 24
PATHS_MOST: Final = 48
CONSTANT_BYTES_MOST: Final = 200
# A value that only one session had is no habit, and may be somebody's own.
SESSIONS_LEAST: Final = 2
ANY: Final = "any"
_TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("string", "str", "text"), "string"),
    **dict.fromkeys(("integer", "int"), "integer"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("boolean", "bool"), "boolean"),
    **dict.fromkeys(("array", "list", "tuple"), "array"),
    **dict.fromkeys(("object", "dict"), "object"),
}

Call = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool or capability.

    Attributes:
        tool: whose it is.
        type: the JSON type that it wants, `any` where nothing is known or several are right.
        required: whether a call without it is refused.
        enum: JSON spellings of the only values it takes; empty: any.
        default: the spelling of what the schema says it is without; None: it does not say.
        constants: JSON spellings of values that several sessions gave it, the most frequent first.
        paths: earlier arguments and fields of results, as `source_of` writes them, that had its value.
        others_required: whether the tool's schema says of any parameter that it is required.
    """

    tool: str
    name: str
    type: str
    required: bool
    enum: tuple[bytes, ...]
    default: bytes | None
    constants: tuple[bytes, ...]
    paths: frozenset[str] = frozenset()
    others_required: bool = False


def declared(tool: str, schema: Mapping[str, Any] | None) -> dict[str, Parameter]:
    """The parameters that a JSON Schema names, by name; at most `PARAMETERS_MOST`, required ones first."""
    known = schema or {}
    properties = known.get("properties")
    named: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    told = known.get("required")
    required = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    order = [*required, *(name for name in named if name not in set(required))][:PARAMETERS_MOST]
    return {
        name: replace(
            _declared(tool, name, named.get(name), name in required), others_required=bool(required)
        )
        for name in order
    }


@dataclass(slots=True)
class Seen:
    """Values that one parameter was given: the sessions of each fold that gave it, by spelling, and types.

    `folds` counts the sessions of each fold that gave it any value.
    """

    sessions: dict[bytes, Counter[int]]
    types: Counter[str]
    paths: dict[str, Counter[int]]
    folds: Counter[int]

    def elsewhere(self, without: int | None) -> bool:
        """Whether a session of another fold gave it."""
        return _elsewhere(self.folds, without) > 0

    def paths_elsewhere(self, without: int | None) -> frozenset[str]:
        """The paths that had the value in other folds, the most frequent of them."""
        counted = {path: _elsewhere(folds, without) for path, folds in self.paths.items()}
        known = sorted((path for path in counted if counted[path]), key=lambda path: (-counted[path], path))
        return frozenset(known[:PATHS_MOST])

    def constants(self, without: int | None) -> tuple[bytes, ...]:
        """Spellings that several sessions of other folds gave, the most frequent first."""
        counted = {value: _elsewhere(folds, without) for value, folds in self.sessions.items()}
        counted = {value: count for value, count in counted.items() if count >= SESSIONS_LEAST}
        return tuple(sorted(counted, key=lambda value: (-counted[value], value))[:CONSTANTS_MOST])


def _elsewhere(folds: Counter[int], without: int | None) -> int:
    return folds.total() - (0 if without is None else folds[without])


def seen(sessions: Sequence[Iterable[Call]], folds: Sequence[int]) -> dict[tuple[str, str], Seen]:
    """What the calls of sessions gave to each parameter, by tool and name; `folds`: one for each session."""
    found: dict[tuple[str, str], Seen] = defaultdict(lambda: Seen({}, Counter(), {}, Counter()))
    for calls, fold in zip(sessions, folds, strict=True):
        given = {
            (tool, name, type_of(value), spelled(value))
            for tool, arguments in calls
            for name, value in list(arguments.items())[:PARAMETERS_MOST]
        }
        for tool, name, kind, value in sorted(given, key=repr):
            one = found[tool, name]
            one.types[kind] += 1
            one.folds[fold] += 1
            if value is not None and keepable(value):
                one.sessions.setdefault(value, Counter())[fold] += 1
    return dict(found)


def keepable(value: bytes) -> bool:
    """Whether a spelling may be kept as a constant: short, and nothing of it was taken out."""
    return len(value) <= CONSTANT_BYTES_MOST and not is_redacted(value) and b"_truncated" not in value


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    names = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def parameter(
    told: Parameter | None, tool: str, name: str, of: Seen | None, without: int | None
) -> Parameter:
    """What a schema and the calls of other folds together say of one parameter."""
    constants = of.constants(without) if of is not None else ()
    paths = of.paths_elsewhere(without) if of is not None else frozenset()
    kind = told.type if told is not None else ANY
    if kind == ANY and of is not None and len(of.types) == 1:
        kind = next(iter(of.types))
    if told is None:
        return Parameter(tool, name, kind, False, (), None, constants, paths)
    return replace(told, type=kind, constants=constants, paths=paths)


def _declared(tool: str, name: str, told: Any, required: bool) -> Parameter:
    schema = told if isinstance(told, Mapping) else {}
    kind = schema.get("type")
    enum = schema.get("enum")
    spellings = [spelled(value) for value in enum[:CONSTANTS_MOST]] if isinstance(enum, list) else []
    default = spelled(schema["default"]) if "default" in schema else None
    return Parameter(
        tool=tool,
        name=name,
        type=_TYPES.get(kind, ANY) if isinstance(kind, str) else ANY,
        required=required,
        enum=tuple(value for value in spellings if value is not None),
        default=default if default is not None and len(default) <= CONSTANT_BYTES_MOST else None,
        constants=(),
    )
