"""An analysis that is under way: what is drawn, the variables, and what could not be expressed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from pml.processors.capabilities import merging
from pml.processors.capabilities.draft import Draft, End
from pml.processors.capabilities.program import Default, Expression, Language
from pml.processors.capabilities.rendering import TooLong
from pml.processors.capabilities.values import (
    Closure,
    FunctionWork,
    Opaque,
    Parameter,
    Pending,
    Scope,
    ToolWork,
    Value,
    Work,
    parts,
)
from pml.schemas.structure import StructureParameter, Unsupported
from pml.schemas.workflow import Condition

STEPS_MAX = 50_000
INLINED_MAX = 20
UNROLLED_MAX = 200
PARAMETER_NAME_MAX = 200


class TooManySteps(Exception):
    """An analysis that would not end in time."""


@dataclass
class Frame:
    """A function that is gone through: the ways on which it returned, and with what."""

    conditions: tuple[Condition, ...]
    asynchronous: bool = True
    returned: list[tuple[Value, tuple[Condition, ...], Value]] = field(default_factory=list)
    ends: tuple[End, ...] = ()


class Situation(ABC):
    """Where an analysis is.

    Attributes:
        draft: what is drawn so far.
        scope: the variables of the innermost block; `scopes` are all that anything may still see.
        parameters: what the program takes from outside.
        unsupported: what no DAG expresses.
        pending: the calls that were made, awaited or not.
        frame, guard: the function that is gone through, and when the way through it is taken.
        arms: the ways at the same time, one inside of the other, that are gone.
        read_bare: how often parameters are read without a default beside them.
        reads: variables that were read since somebody cleared them.
    """

    def __init__(self, language: Language) -> None:
        self.language = language
        self.draft = Draft()
        self.scope = Scope()
        self.scopes: list[Scope] = [self.scope]
        self.parameters: dict[str, StructureParameter] = {}
        self.unsupported: dict[tuple[int, str], Unsupported] = {}
        self.pending: list[Pending] = []
        self.frame = Frame(())
        self.depth = 0
        self.steps = 0
        self.guard: Value = merging.TRUE
        self.arms: tuple[int, ...] = ()
        self.reads: set[str] = set()
        self.read_bare: dict[str, int] = {}

    @abstractmethod
    def evaluate(self, expression: Expression) -> Value:
        """What an expression stands for."""

    @abstractmethod
    def call(
        self,
        function: Value,
        positional: tuple[Value, ...],
        named: tuple[tuple[str, Value], ...],
        line: int,
    ) -> Value:
        """What a function gives: a value, or something to wait for."""

    @abstractmethod
    def item(self, value: Value, key: Value, at: Expression) -> Value:
        """A field or an element of a value."""

    @abstractmethod
    def data(self, value: Value, expression: Expression) -> Value:
        """A value that a tool or an operator can take."""

    @abstractmethod
    def default(self, expression: Default, value: Value, otherwise: Expression) -> Value:
        """A value, or another where it is not given."""

    @abstractmethod
    def coded(self, expression: Expression, names: Sequence[str]) -> Value:
        """An expression as it stands there, over the variables around it."""

    @abstractmethod
    def statements_of(self, closure: Closure, scope: Scope) -> Value:
        """Go through the body of a function; whether it has returned."""

    def refuse(self, line: int, reason: str) -> None:
        """Write down what no DAG expresses."""
        self.unsupported.setdefault((line, reason), Unsupported(line=line, reason=reason))

    def opaque(self, line: int, reason: str, code: str = "") -> Opaque:
        """A value that is not understood."""
        self.refuse(line, reason)
        return Opaque(code)

    def say(self, value: Value, line: int) -> None:
        """Write down why a value that is used is not understood."""
        if isinstance(value, Opaque) and value.reason:
            self.refuse(line, value.reason)
        for part in parts(value):
            self.say(part, line)

    def parameter(self, name: str) -> Parameter:
        """A value that the caller gives.

        Raises:
            TooLong: nobody can give a value of such a name.
        """
        _check_name(name)
        self.parameters.setdefault(name, StructureParameter(name=name))
        self.read_bare[name] = self.read_bare.get(name, 0) + 1
        return Parameter(name)

    def optional(self, name: str, default: Value, line: int) -> Value:
        """A value that the caller may give; raises as `parameter`."""
        _check_name(name)
        try:
            wanted = StructureParameter(name=name, required=False, default=merging.constant(default))
        except LookupError:
            return self.opaque(line, f"the default of `{name}` is not a constant")
        known = self.parameters.get(name)
        if known is not None and known not in (wanted, StructureParameter(name=name)):
            return self.opaque(line, f"`{name}` has two defaults")
        self.parameters[name] = wanted
        return Parameter(name)

    def variables(self) -> list[dict[str, Value]]:
        """A copy of all variables."""
        return [dict(scope.values) for scope in self.scopes]

    def set_variables(self, copied: Sequence[dict[str, Value]]) -> None:
        """Give all variables the values of a copy."""
        for scope, values in zip(self.scopes, copied, strict=False):
            scope.values = dict(values)

    def is_shared(self, value: Value) -> bool:
        """Whether more than one variable holds this very list or object, by itself or inside of another."""
        holders = [item for scope in self.scopes for item in scope.values.values()]
        waiting = [item for each in self.pending if each.value is None for item in _given_to(each.work)]
        return sum(_holds(item, value) for item in (*holders, *waiting)) > 1


def _given_to(work: Work) -> tuple[Value, ...]:
    match work:
        case FunctionWork(positional=positional, named=named):
            return (*positional, *(item for _, item in named))
        case ToolWork(arguments=arguments):
            return tuple(item for _, item in arguments)
    return ()


def _check_name(name: str) -> None:
    if not 1 <= len(name) <= PARAMETER_NAME_MAX:
        raise TooLong


def _holds(holder: Value, value: Value) -> bool:
    return holder is value or any(_holds(part, value) for part in parts(holder))
