"""Frozen dataclasses with slots, made and copied as fast as open ones.

Each event copies the session, its run and a task, and a frozen class assigns every field through a call. What
is here assigns the fields of an open class with the same slots, which the interpreter does faster than any
call; its object becomes a state once it is given that class. Written out as `dataclasses` writes `__init__`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

S = TypeVar("S")
P = ParamSpec("P")

_COPIERS: dict[tuple[Any, ...], Callable[..., Any]] = {}
"""By class and fields, as many as there are places in the code that copy."""


def maker(kind: Callable[P, S]) -> Callable[P, S]:
    """What makes objects of a class as calling it does, in a fraction of the time.

    Raises:
        TypeError: the class does more than to assign its fields.
    """
    known = _fields(kind)
    defaults = {f"_default_{name}": each.default for name, each in known.items()}
    makers = {f"_make_{name}": each.default_factory for name, each in known.items()}
    signature = ", ".join(map(_parameter, known.values()))
    lines = [
        f"if {name} is _missing: {name} = _make_{name}()"
        for name, each in known.items()
        if each.default_factory is not MISSING
    ]
    return _written(kind, signature, lines, {name: name for name in known}, {**defaults, **makers})


def _parameter(each: Field[Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=_missing"
    return each.name if each.default is MISSING else f"{each.name}=_default_{each.name}"


def replacer(kind: type[S], *names: str) -> Callable[..., S]:
    """`replace` for exactly these fields, whose values are given in this order; nothing is looked up.

    Raises:
        TypeError: a field that the class does not have, or a class that does more than to assign its fields.
    """
    known = _fields(kind)
    for name in names:
        if name not in known:
            raise TypeError(f"{kind.__name__} has no {name}")
    values = {name: name if name in names else f"_state.{name}" for name in known}
    return _written(kind, ", ".join(("_state", *names)), [], values, {})


def _written(
    kind: Any, signature: str, lines: Iterable[str], values: Mapping[str, str], scope: Mapping[str, Any]
) -> Callable[..., Any]:
    """A function of this signature that gives an object of the class with these values; no field begins
    with an underscore, so that none is called as what the function needs itself."""
    body = [*lines, "_copy = _new()", *(f"_copy.{name} = {value}" for name, value in values.items())]
    source = "\n    ".join((f"def made({signature}):", *body, "_copy.__class__ = _kind", "return _copy"))
    namespace: dict[str, Any] = {**scope, "_new": _opened(kind), "_kind": kind, "_missing": MISSING}
    exec(source, namespace)  # of nothing but the names of our own fields
    made: Callable[..., Any] = namespace["made"]
    return made


@cache
def _opened(kind: Any) -> Callable[[], Any]:
    """A class with the same slots, which can be written."""
    if hasattr(kind, "__post_init__") or not all(each.init for each in _fields(kind).values()):
        raise TypeError(
            f"{kind.__name__} does more than to assign its fields: make and copy it by dataclasses"
        )
    return type(kind.__name__, (), {"__slots__": tuple(_fields(kind))})


def _fields(kind: Any) -> dict[str, Field[Any]]:
    return {each.name: each for each in fields(kind)}


def _copied(state: S, /, **changes: Any) -> S:
    """The state with other values in some fields: `dataclasses.replace`, only faster.

    Raises:
        TypeError: a field that it does not have.
    """
    copier = _COPIERS.get((state.__class__, *changes))
    if copier is None:
        copier = _COPIERS[state.__class__, *changes] = replacer(type(state), *changes)
    copied: S = copier(state, **changes)
    return copied


if TYPE_CHECKING:  # a checker knows which fields may be given
    from dataclasses import replace
else:
    replace = _copied


__all__ = ["maker", "replace", "replacer"]
