"""A program as a sandbox runs it, and the function that it begins with (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pml.processors.capabilities.analysing import read
from pml.processors.capabilities.program import Assign, Function, Inexpressible, Names, Program
from pml.processors.capabilities.reading import does
from pml.schemas.errors import WorkflowInvalid
from pml.schemas.structure import Language

ENTRIES = ("main", "run", "execute", "handler")
GIVEN = "args"
"""The variable that holds all that the caller gives."""


@dataclass(frozen=True, slots=True)
class Part:
    """A capability within a program: its line n is line `offset` + n of all that was written."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Prepared:
    """Source that an interpreter takes.

    Attributes:
        more: what stands after it, where the interpreter has to know which of it is the program.
        lines: of lines that moved, where they were written.
        parts: the capabilities that it is linked with, after its own lines.
    """

    code: str
    more: str = ""
    lines: Mapping[int, int] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()


def placed(said: Mapping[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    """What a program says, in which a line of a capability is not one of the program."""
    error = said.get("error") or {}
    line: int = error.get("line") or 0
    inside = [part for part in parts if line > part.offset]
    if not inside:
        return dict(said)
    part = inside[-1]
    message = f"capability {part.name}, line {line - part.offset}: {error['message']}"
    return {"error": {**error, "message": message, "line": None}}


@dataclass(frozen=True, slots=True)
class Entry:
    """The function that is meant to be called where a program only defines functions."""

    name: str
    asynchronous: bool
    parameters: tuple[Names, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What it takes by name; `GIVEN` for what takes everything."""
        return tuple(item.whole or GIVEN for item in self.parameters)

    def given(self, names: Collection[str]) -> Iterator[tuple[str, bool]]:
        """Each parameter, and whether it is given; one called `args`, or taken apart, is given everything.

        Raises:
            WorkflowInvalid: one without a default is not among the names.
        """
        wanted = [(item.whole or GIVEN, item.default is not None) for item in self.parameters]
        lacking = [name for name, optional in wanted if not optional and name != GIVEN and name not in names]
        if lacking:
            message = f"the program takes {', '.join(lacking)}, which the context does not give"
            raise WorkflowInvalid("MISSING_PARAMETER", message, missing=lacking)
        return ((name, name == GIVEN or name in names) for name, _ in wanted)


def entry_of(source: str, language: Language) -> Entry | None:
    """The function of a program to begin with; None where the program itself says what it does.

    Raises:
        SourceError: it is not of its language.
    """
    program = read(source, language)
    functions = dict(_functions(program))
    if not functions or not all(map(_defines, program.body)):
        return None
    given_out = [name for name, function in functions.items() if function.entry]
    known = [name for name in ENTRIES if name in functions]
    name = next(iter([*given_out, *known, *reversed(functions)]))
    return Entry(name, functions[name].asynchronous, functions[name].parameters)


def _functions(program: Program) -> Iterator[tuple[str, Function]]:
    for each in program.body:
        if isinstance(each, Assign) and isinstance(each.value, Function) and each.target.whole is not None:
            yield each.target.whole, each.value


def _defines(statement: Any) -> bool:
    """Whether a statement only says what a name means, or calls nothing."""
    match statement:
        case Assign(value=value):
            return isinstance(value, Function) or not does(value)
        case Inexpressible(body=body):
            return not does(body)
    return False
