"""What a program's expressions stand for while it is analysed: where values will come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities import program
from pml.processors.workflow.references import Path
from pml.schemas.workflow import Condition


@dataclass(frozen=True, slots=True)
class Known:
    """A constant."""

    value: Any


@dataclass(frozen=True, slots=True)
class Reference:
    """Where in a node's result a value is; of several, that of the first node that ran."""

    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a caller gives under this name."""

    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """An object whose fields are understood one by one."""

    entries: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list whose items are understood one by one."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Operated:
    """An operator, `item`, `choice` or `template` over values that are not all known."""

    operator: str
    operands: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Called:
    """A function of the language, or a method of `receiver`, that does nothing but compute."""

    function: str
    receiver: Value | None
    positional: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Coded:
    """What only the program's own language computes: its text, and what its variables stand for."""

    code: str
    names: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Tools:
    """`mcp`, `mcp.server` or `mcp.server.tool`, by how many names there are."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Capabilities:
    """`capabilities`, or `capabilities.name`."""

    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Arguments:
    """`args`: everything that a caller gives."""


@dataclass(frozen=True, slots=True)
class Builtin:
    """A name of the language itself, such as `len` or `JSON.parse`."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """What is not understood: why was said where it was met, or is the `reason` where it is used."""

    code: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)


@dataclass(eq=False, slots=True)
class Closure:
    """A function and the variables around it; `defaults` by parameter, where its definition computes them."""

    function: program.Function
    around: Scope
    defaults: tuple[tuple[str, Value], ...] = ()


@dataclass(eq=False, slots=True)
class Pending:
    """A call that was made and not awaited.

    Attributes:
        begun: how many calls were drawn when it was made, where making it begins it; else None.
        around: the variables that it reads, as they were then, where it reads them when it is begun.
        loop: the loop in which it was made.
        arms: the ways at the same time, one inside of the other, in which it was waited for.
        conditions: the branches in which it was begun, and once it has a value, in which it was waited for.
        value: what it gave, once it has been waited for.
    """

    work: Work
    line: int
    begun: int | None = None
    around: tuple[tuple[Scope, str, Value], ...] = ()
    loop: str | None = None
    arms: tuple[int, ...] = ()
    value: Value | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(eq=False, slots=True)
class TaskGroup:
    """What begins tasks, and those that it began."""

    begun: list[Pending] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ToolWork:
    """A call of a tool or of a capability."""

    target: Tools | Capabilities
    arguments: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class FunctionWork:
    """A call of a function of the program."""

    closure: Closure
    positional: tuple[Value, ...]
    named: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class LoopWork:
    """A function for every item of a value that only a run knows."""

    items: Value
    function: Value


@dataclass(frozen=True, slots=True)
class TogetherWork:
    """Several calls at once."""

    items: Value
    settled: bool


@dataclass(frozen=True, slots=True)
class ThenWork:
    """A call, and a function of what it gives."""

    first: Pending
    function: Value


Work = ToolWork | FunctionWork | LoopWork | TogetherWork | ThenWork
Data = Known | Reference | Parameter | Record | Items | Operated | Called | Coded | Arguments | Opaque
Value = Data | Tools | Capabilities | Builtin | Closure | Pending | TaskGroup


@dataclass(eq=False, slots=True)
class Scope:
    """Variables of a function or block; `captured` where a function was made that sees them later."""

    parent: Scope | None = None
    values: dict[str, Value] = field(default_factory=dict)
    captured: bool = False

    def find(self, name: str) -> Scope | None:
        """The nearest scope that has a variable of this name."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values:
            scope = scope.parent
        return scope


UNSET = Known(None)


def is_data(value: Value) -> bool:
    """Whether a value is what tools take and give."""
    return isinstance(value, Data)


def node(name: str, *steps: str | int) -> Reference:
    """A reference to a node's result, or into it."""
    return Reference((Path(name, steps),))


def item_of(value: Reference, key: str | int) -> Reference:
    """A field or element of what a reference leads to."""
    return Reference(tuple(Path(path.node, (*path.steps, key)) for path in value.paths))


def parts(value: Value) -> tuple[Value, ...]:
    """The values that a value is made of."""
    match value:
        case Record(entries=entries):
            return tuple(item for _, item in entries)
        case Items(items=items):
            return items
        case Operated(operands=operands):
            return operands
        case Called(receiver=receiver, positional=positional, named=named):
            own = () if receiver is None else (receiver,)
            return (*own, *positional, *(item for _, item in named))
        case Coded(names=names) | Closure(defaults=names):
            return tuple(item for _, item in names)
    return ()


def nodes_in(value: Value) -> Iterator[str]:
    """The nodes whose results a value needs."""
    if isinstance(value, Reference):
        yield from (path.node for path in value.paths)
    for part in parts(value):
        yield from nodes_in(part)
