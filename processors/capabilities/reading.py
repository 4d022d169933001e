"""What a part of a program reads and whether it waits, found without running it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from pml.processors.capabilities.language_names import changes_its_receiver
from pml.processors.capabilities.program import (
    Assign,
    Await,
    Call,
    Constant,
    Expression,
    ForEach,
    Function,
    Inexpressible,
    Item,
    Name,
    Names,
    Native,
    Statement,
    Store,
    Together,
)


def waits(expression: Expression) -> bool:
    """Whether evaluating an expression may wait for a call."""
    return any(isinstance(part, (Await, Together)) for part in every_part(expression))


def does(expression: Expression | tuple[Statement, ...]) -> bool:
    """Whether an expression or some statements do more than compute: call, or wait for a call."""
    return any(isinstance(part, (Await, Call, Together)) for part in every_part(expression))


def changes(expression: Expression) -> bool:
    """Whether an expression, or a function in it, may change a variable or a value."""
    return any(map(_changes, every_part(expression)))


def _changes(part: Any) -> bool:
    match part:
        case Store() | Inexpressible() | Native(pure=False):
            return True
        case Assign(declares=declares):
            return not declares
        case Call(function=Item(key=Constant(value=str(name)))):
            return changes_its_receiver(name) or name == "assign"
    return False


def free_names(part: Expression) -> tuple[str, ...]:
    """The variables that an expression takes from around it, in the order of their first use."""
    found: dict[str, None] = {}
    bound: set[str] = set()
    for each in every_part(part):
        match each:
            case Name(name=name) | Store(name=name):
                found[name] = None
            case Native(names=names):
                found |= dict.fromkeys(names)
            case Function(parameters=parameters):
                bound |= {name for item in parameters for name in names_in(item)}
            case Assign(target=target) | ForEach(variable=target):
                bound |= set(names_in(target))
    return tuple(name for name in found if name not in bound)


def names_in(target: Names) -> Iterator[str]:
    """The variables of a target."""
    if target.whole is not None:
        yield target.whole
    for part in target.parts:
        if part is not None:
            yield from names_in(part)


def every_part(part: Any) -> Iterator[Any]:
    """A part of a program and all that it is made of."""
    if isinstance(part, tuple):
        for each in part:
            yield from every_part(each)
    elif is_dataclass(part) and not isinstance(part, Names):
        yield part
        for field in fields(part):
            yield from every_part(getattr(part, field.name))


def holds_function(parts: tuple[Expression, ...]) -> bool:
    """Whether a function is among what a call is given."""
    return any(isinstance(part, Function) for part in parts)
