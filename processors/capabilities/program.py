"""The syntax tree that both languages are read into before anything is understood (DESIGN §6).

A front end says what is written; `analysis` says what it means. So a program means the same in both languages
because it is understood in one place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Operator = Literal[
    "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "not"
]


class SourceError(ValueError):
    """Code that is not of its language.

    Args:
        line, column: where, both from 1.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(f"line {line}, column {column}: {message}")
        self.line, self.column = line, column


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
class Call(Part):
    """A call with positional and named arguments; a named one without a name is spread."""

    function: Expression
    positional: tuple[Expression, ...] = ()
    named: tuple[tuple[str | None, Expression], ...] = ()
    awaited: bool = False


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
class Each(Part):
    """A value for every item: a comprehension without a filter, or `.map` with a function."""

    items: Expression
    variable: Pattern
    body: Expression


@dataclass(frozen=True, slots=True)
class Together(Part):
    """What runs at the same time: `asyncio.gather(…)`, `Promise.all([…])`; where `settled`, all may fail."""

    items: Expression
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Unknown(Part):
    """What has no counterpart here. `parts` are the expressions in it, which may hold calls."""

    reason: str
    parts: tuple[Expression, ...] = ()


Expression = (
    Constant
    | Name
    | Item
    | Call
    | Mapping
    | Sequence
    | Template
    | Operation
    | Choice
    | Each
    | Together
    | Unknown
)


@dataclass(frozen=True, slots=True)
class Names(Part):
    """Variables that take a value apart: by position, by field (`keys` then), or as a whole.

    `whole` names the variable of the whole value; a part that is None is not kept.
    """

    whole: str | None = None
    parts: tuple[Names | None, ...] = ()
    keys: tuple[str, ...] = ()


Pattern = Names


@dataclass(frozen=True, slots=True)
class Assign(Part):
    """Variables get a value."""

    target: Pattern
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
    variable: Pattern
    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Return(Part):
    """The function ends here."""

    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Define(Part):
    """A function with a name; `defaults` are those of its last parameters."""

    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]
    defaults: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Inexpressible(Part):
    """A statement that no DAG has, such as `try` or `while`, and the statements in it."""

    reason: str
    body: tuple[Statement, ...] = ()


Statement = Assign | Evaluate | If | Switch | ForEach | Return | Define | Inexpressible


@dataclass(frozen=True, slots=True)
class Program:
    """A whole source text."""

    language: Literal["python", "typescript"]
    body: tuple[Statement, ...]
