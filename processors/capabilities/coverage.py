"""Which outputs of one tool fill which inputs of another (DESIGN §6, Provides edges; spec story 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal

from pml.processors.capabilities.aliases import same_name

Coverage = Literal["strict", "partial", "optional"]
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """An output that is called like an input, and whether a value of the one may be given to the other."""

    from_field: str
    to_field: str
    type_compatible: bool


def compute_coverage(
    outputs: Set[str], required: Set[str], optional: Set[str] = frozenset()
) -> Coverage | None:
    """How far outputs fill inputs; None where not one of them is called alike.

    All required inputs: strict; some of them: partial; only optional ones, or none are required: optional.
    """
    filled = {name for name in required if _provided(outputs, name)}
    if required and filled == required:
        return "strict"
    if filled:
        return "partial"
    return "optional" if any(_provided(outputs, name) for name in optional) else None


def field_mapping(output_schema: Schema | None, input_schema: Schema | None) -> tuple[FieldMapping, ...]:
    """Output by output and input by input, what is called alike; nothing where a schema is missing."""
    outputs, inputs = _properties(output_schema), _properties(input_schema)
    return tuple(
        FieldMapping(given, wanted, types_compatible(outputs[given], inputs[wanted]))
        for wanted in inputs
        for given in outputs
        if same_name(given, wanted)
    )


def candidates(output_schema: Schema | None, input_schema: Schema | None, to_field: str) -> tuple[str, ...]:
    """The outputs that may fill one input: the one of its very name, else all that are called alike."""
    found = [
        item.from_field
        for item in field_mapping(output_schema, input_schema)
        if item.to_field == to_field and item.type_compatible
    ]
    return (to_field,) if to_field in found else tuple(found)


def types_compatible(given: Any, wanted: Any) -> bool:
    """Whether every declared type of an output is one that the input takes; what is not declared fits."""
    have, take = types_of(given), types_of(wanted)
    return not have or not take or all(_takes(take, name) for name in have)


def value_fits(value: Any, wanted: Any) -> bool:
    """Whether a value is of a type that a schema declares; where it declares none, any is."""
    take = types_of(wanted)
    return not take or _takes(take, _type_of(value))


def types_of(schema: Any) -> frozenset[str]:
    """The JSON types that a schema declares; empty where it does not say, or says it in another way."""
    if not isinstance(schema, Mapping):
        return frozenset()
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    return frozenset(name for name in names if isinstance(name, str))


def property_of(schema: Schema | None, name: str) -> Any:
    """What a schema says of one field; None where it says nothing."""
    return _properties(schema).get(name)


def _properties(schema: Schema | None) -> Mapping[str, Any]:
    found = (schema or {}).get("properties")
    return found if isinstance(found, Mapping) else {}


def _provided(outputs: Set[str], wanted: str) -> bool:
    return any(same_name(given, wanted) for given in outputs)


def _takes(types: Set[str], name: str) -> bool:
    return name in types or (name == "integer" and "number" in types)


def _type_of(value: Any) -> str:
    """The JSON type of a value; a number without a fraction is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    names = {float: "number", str: "string", list: "array", dict: "object"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "unknown")
