"""The syntax tree that both languages are read into before anything is understood (DESIGN §6).

A front end says what is written; `analysis` says what it means. So a program means the same in both languages
because it is understood in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pml.schemas.errors import SourceError

Operator = Literal[
    "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "not"
]
Language = Literal["python", "typescript"]


def source_error(message: str, line: int, column: int) -> SourceError:
    """That code is not of its language, and where; both count from 1."""
    return SourceError(f"line {line}, column {column}: {message}", line=line, column=column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Anything in a program: its line, and its text as it was written."""

    line: int = field(default=0, compare=False)
    source: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Constant(Part):
    """A value that is written down: text, number, boolean or null."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name(Part):
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Item(Part):
    """A field or an element: `value.key`, `value["key"]`, `value[0]`."""

    value: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Spread(Part):
    """All items of a value in the place of one."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Call(Part):
    """A call with positional and named arguments; a named one without a name is spread."""

    function: Expression
    positional: tuple[Expression, ...] = ()
    named: tuple[tuple[str | None, Expression], ...] = ()


@dataclass(frozen=True, slots=True)
class Await(Part):
    """Waits for a call that was begun."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Mapping(Part):
    """A dictionary or object; an entry without a key is spread."""

    entries: tuple[tuple[str | None, Expression], ...]


@dataclass(frozen=True, slots=True)
class Sequence(Part):
    """A list, tuple or array."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Template(Part):
    """A text with values in it."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation(Part):
    """An operator and its one, two or more operands."""

    operator: Operator
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice(Part):
    """One of two values: a ternary."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Default(Part):
    """A value, and another where it is null or missing: `value ?? otherwise`."""

    value: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Function(Part):
    """A function.

    One that is `asynchronous` gives something to await; `entry` marks what a module gives out to be called.
    """

    parameters: tuple[Names, ...]
    body: tuple[Statement, ...]
    asynchronous: bool = False
    entry: bool = False


@dataclass(frozen=True, slots=True)
class Each(Part):
    """What a function gives for every item: a comprehension without a filter, or `.map`."""

    items: Expression
    function: Expression


@dataclass(frozen=True, slots=True)
class Together(Part):
    """What runs at the same time: `asyncio.gather(…)`, `Promise.all([…])`; where `settled`, all may fail."""

    items: Expression
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Native(Part):
    """What only its own language has.

    Attributes:
        what: what it is called in a message to the author.
        names: its free variables.
        inner: a function of the variables that it binds itself, with the calls in it.
        pure: whether it does nothing but compute.
    """

    what: str
    names: tuple[str, ...] = ()
    inner: Function | None = None
    pure: bool = True


Expression = (
    Constant
    | Name
    | Item
    | Spread
    | Call
    | Await
    | Mapping
    | Sequence
    | Template
    | Operation
    | Choice
    | Default
    | Function
    | Each
    | Together
    | Native
)


@dataclass(frozen=True, slots=True)
class Names(Part):
    """Variables that take a value apart: as a whole, by field (`keys`) or else by position.

    A part that is None is not kept; `default` stands for a value that is not given.
    """

    whole: str | None = None
    parts: tuple[Names | None, ...] = ()
    keys: tuple[str, ...] = ()
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Assign(Part):
    """Variables get a value; where it `declares` them, they are new in its block; `in_place`: `x += v`."""

    target: Names
    value: Expression
    declares: bool = False
    in_place: bool = False


@dataclass(frozen=True, slots=True)
class Store(Part):
    """A field of a variable's value gets a value: `name.key = value`, `name["key"] = value`."""

    name: str
    key: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Evaluate(Part):
    """An expression whose value nobody keeps."""

    value: Expression


@dataclass(frozen=True, slots=True)
class If(Part):
    """Two branches."""

    condition: Expression
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True)
class Case(Part):
    """A branch for some values; for all others where there are none."""

    values: tuple[Expression, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Switch(Part):
    """A branch for each value."""

    subject: Expression
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class ForEach(Part):
    """Statements for one item after another."""

    items: Expression
    variable: Names
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Group(Part):
    """Statements that begin tasks of a group by its name; all of them have ended at its end."""

    name: str
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Return(Part):
    """The function ends here."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Inexpressible(Part):
    """A statement that no DAG has, such as `try` or `while`, and the statements in it."""

    what: str
    body: tuple[Statement, ...] = ()


Statement = Assign | Store | Evaluate | If | Switch | ForEach | Group | Return | Inexpressible


@dataclass(frozen=True, slots=True)
class Program:
    """A whole source text."""

    language: Language
    body: tuple[Statement, ...]
