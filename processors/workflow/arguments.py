"""Arguments: from their definition to the values of one call (spec story 12.2, DESIGN §4.2).

One resolver, two modes. Strictly: every reference and every parameter must have a value, or there
is no call at all. Reporting: what a tool requires and cannot be had is an error of that task; what
it does not require is left out, and named.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pml.processors.workflow import conditions
from pml.processors.workflow.fields import Fields
from pml.processors.workflow.references import Missing, alternative, walk
from pml.schemas.workflow import Argument, Expression, ListOf, LiteralValue, ObjectOf, Reference

EXACT_MAX = 2**53
"""Above this a number of JavaScript is another one."""


@dataclass(frozen=True, slots=True)
class Uncomputed(Missing):
    """A value whose computation failed, as the program's would: the call is not made without it."""


@dataclass(frozen=True, slots=True)
class Values:
    """What arguments are taken from: the initial context, and results of completed tasks.

    `fields` chooses a field of a result where a reference alone does not lead to a value.
    """

    context: Mapping[str, Any]
    results: Mapping[str, Any]
    fields: Fields | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """The arguments of a call, and the names of optional ones that have no value.

    `mapped` names the field of a result that an argument was given by its edge's mapping.
    """

    arguments: dict[str, Any]
    omitted: tuple[str, ...] = ()
    mapped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """No call can be made: a reason for each argument that has no value."""

    reasons: dict[str, str]

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return "; ".join(f"{name}: {reason}" for name, reason in self.reasons.items())


def resolve_strictly(arguments: Mapping[str, Argument], values: Values) -> Resolved | Unresolved:
    """The arguments, or why there are none; never a part of them."""
    return _resolve(arguments, values, required=arguments.keys())


def resolve(
    arguments: Mapping[str, Argument], values: Values, required: Collection[str] | None
) -> Resolved | Unresolved:
    """The arguments of a real call.

    Args:
        required: what the tool's input schema requires; None where the schema is not known, and
            then everything that is written down is required.
    """
    absent = set(required or ()) - arguments.keys()
    resolved = _resolve(arguments, values, arguments.keys() if required is None else required)
    if not absent:
        return resolved
    reasons = dict.fromkeys(sorted(absent), "is required by the tool and not given")
    return Unresolved(reasons | (resolved.reasons if isinstance(resolved, Unresolved) else {}))


def _resolve(
    arguments: Mapping[str, Argument], values: Values, required: Collection[str]
) -> Resolved | Unresolved:
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    mapped: dict[str, str] = {}
    uncomputed: set[str] = set()
    for name, argument in arguments.items():
        value = _value(name, argument, values, mapped)
        if isinstance(value, Missing):
            missing[name] = value.reason
            uncomputed |= {name} if isinstance(value, Uncomputed) else set()
        else:
            found[name] = value
    fatal = {name for name in missing if name in required or name in uncomputed}
    if fatal:
        return Unresolved({name: reason for name, reason in missing.items() if name in fatal})
    return Resolved(found, tuple(sorted(missing)), mapped)


def _value(name: str, argument: Argument, values: Values, mapped: dict[str, str]) -> Any | Missing:
    match argument:
        case LiteralValue(value=value):
            return value
        case Reference():
            return _referenced(name, argument, values, mapped)
        case ObjectOf(fields=fields):
            found = [_inner(item, values) for item in fields.values()]
            return _missing(found) or dict(zip(fields, found, strict=True))
        case ListOf(items=items):
            found = [_inner(item, values) for item in items]
            return _missing(found) or found
        case Expression():
            return _computed(argument.text, values)
    if argument.parameter_name in values.context:
        return values.context[argument.parameter_name]
    return Missing(f"the context has no {argument.parameter_name!r}")


def _inner(argument: Argument, values: Values) -> Any | Missing:
    """A part of an argument: no schema says what it is called by, so no mapping chooses its field."""
    return _value("", argument, replace(values, fields=None), {})


def _computed(expression: str, values: Values) -> Any | Missing:
    """What every language would compute; where one would not, nothing is taken for it."""
    known = {conditions.CONTEXT: values.context}
    try:
        names = conditions.nodes_of(expression)
        value = conditions.evaluate(
            expression, known | {name: values.results[name] for name in names if name in values.results}
        )
    except conditions.ConditionError as error:
        return Uncomputed(str(error))
    return (
        value
        if _is_exact(value) or conditions.is_path(expression)
        else Uncomputed(f"{expression!r} is beyond what every language counts")
    )


def _is_exact(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_exact, value))
    return not isinstance(value, int) or abs(value) <= EXACT_MAX


def _missing(found: list[Any]) -> Missing | None:
    """An argument of which a part is missing is missing as a whole, and fails where one of them does."""
    failed = (item for item in found if isinstance(item, Uncomputed))
    return next(failed, next((item for item in found if isinstance(item, Missing)), None))


def _referenced(name: str, reference: Reference, values: Values, mapped: dict[str, str]) -> Any | Missing:
    """The exact field first; where it does not exist, or all of a result is named, the mapping decides."""
    path = alternative(reference.expression, values.results)
    if isinstance(path, Missing):
        return path
    result = values.results[path.node]
    value = walk(result, path)
    whole_or_missing = not path.steps or (isinstance(value, Missing) and len(path.steps) == 1)
    if values.fields is None or not whole_or_missing or not isinstance(result, Mapping):
        return value
    chosen = values.fields.choose(name, path, result)
    if isinstance(chosen, Missing):
        return chosen
    if chosen is None or chosen not in result:
        return value
    mapped[name] = chosen
    return result[chosen]
