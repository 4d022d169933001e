"""The mutants of a module: where each differs, and its code.

Left out, because no test could or should notice: docstrings, annotations and aliases of types, decorators,
`__all__`, `__slots__`, what stands under `TYPE_CHECKING`, assertions (they tell the type checker what holds),
and texts for people: `message=…`, and whatever has a space in it.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType

from tests.mutation.operators import alternatives, conditions

_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "ctx", "bases", "pattern"}
_SKIPPED_NAMES = {"__all__", "__slots__"}
_SKIPPED_KEYWORDS = {"message", "strict", "maxsize"}
_SKIPPED_CALLS = {"cast", "TypeVar", "NewType"}
Slot = tuple[ast.AST, str, int | None]


@dataclass(frozen=True)
class Mutant:
    """One difference from a module.

    Attributes:
        module: its path below the folder of sources.
        function: the qualified name of the outermost function that it is in; empty at the top or in a class.
        first_line: the first line of that function's code, its decorators included.
        lines: of the statement, without the bodies of a compound one; 1-based, both inclusive.
        source: the line that differs.
        nth: counts what is alike in one function.
    """

    module: str
    function: str
    first_line: int
    lines: tuple[int, int]
    source: str
    was: str
    becomes: str
    slot: Slot
    new: ast.AST
    nth: int = 1

    @property
    def name(self) -> str:
        """The same as long as function, line and difference are: numbers of lines do not count."""
        again = f" ({self.nth})" if self.nth > 1 else ""
        return f"{self.module} {self.function or '-'}: {self.source} ⇒ {self.was} → {self.becomes}{again}"


class Module:
    """A source file and its mutants.

    Args:
        path: the file.
        name: its path below the folder of sources.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self._lines = path.read_text().splitlines()
        self._tree = ast.parse(path.read_text())
        self.mutants = _counted(self._found(self._tree, "", 0, None))

    def code(self, mutant: Mutant, filename: str) -> CodeType:
        """The module's code with this one difference."""
        holder, field, index = mutant.slot
        if index is None:
            setattr(holder, field, mutant.new)
        else:
            getattr(holder, field)[index] = mutant.new
        return compile(ast.fix_missing_locations(self._tree), filename, "exec")

    def _found(self, node: ast.AST, inside: str, first_line: int, owner: ast.AST | None) -> Iterator[Mutant]:
        """What differs below a node; `owner` is the statement (or except clause) that it is in."""
        for field, index, child in _children(node):
            if _is_skipped(child):
                continue
            stands_in = child if isinstance(child, (ast.stmt, ast.excepthandler)) else owner
            here, line = inside, first_line
            if field == "body" and isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not first_line:
                here = ".".join(filter(None, (inside, node.name)))
                line = _first_line(node) if isinstance(node, ast.FunctionDef) else 0
            place = _Place(self, here, line, stands_in)
            yield from (place.mutant(child, new, (node, field, index)) for new in alternatives(child))
            for name, new in conditions(child):
                yield place.mutant(getattr(child, name), new, (child, name, None))
            yield from self._found(child, here, line, stands_in)

    def line(self, number: int) -> str:
        """A line of the source, 1-based, without indentation."""
        return self._lines[number - 1].strip()


@dataclass(frozen=True)
class _Place:
    module: Module
    inside: str
    first_line: int
    statement: ast.AST | None

    def mutant(self, old: ast.AST, new: ast.AST, slot: Slot) -> Mutant:
        assert self.statement is not None
        first, last = _header(self.statement)
        was, becomes = _shown(old), _shown(new)
        ast.copy_location(new, old)
        source = self.module.line(getattr(old, "lineno", first))
        at = (first, last)
        named = (self.module.name, self.inside, self.first_line, at, source, was, becomes)
        return Mutant(*named, slot, new)


def modules(folders: list[Path], root: Path) -> list[Module]:
    """The modules in some folders, by path."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.py"))
    return [Module(path, str(path.relative_to(root))) for path in paths]


def _counted(found: Iterator[Mutant]) -> list[Mutant]:
    seen: Counter[str] = Counter()
    mutants = []
    for mutant in found:
        seen[mutant.name] += 1
        mutants.append(replace(mutant, nth=seen[mutant.name]))
    return mutants


def _children(node: ast.AST) -> Iterator[tuple[str, int | None, ast.AST]]:
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS or (isinstance(node, ast.JoinedStr) and field == "values"):
            continue
        if isinstance(value, ast.AST):
            yield field, None, value
        elif isinstance(value, list):
            yield from ((field, index, item) for index, item in enumerate(value) if isinstance(item, ast.AST))


def _is_skipped(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name in _SKIPPED_NAMES or (name[0].isupper() and _is_type(node.value))
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.keyword(arg=name):
            return name in _SKIPPED_KEYWORDS
        case ast.Call(func=ast.Name(id=name)):
            return name in _SKIPPED_CALLS
    return False


def _is_type(node: ast.expr) -> bool:
    """`Name = tuple[…]` or `Name = A | B`: an alias of a type."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_type(node.left) and _is_type(node.right)
    return isinstance(node, (ast.Subscript, ast.Name)) or (
        isinstance(node, ast.Constant) and node.value is None
    )


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _header(statement: ast.AST) -> tuple[int, int]:
    first, last = statement.lineno, statement.end_lineno  # type: ignore[attr-defined]
    body = getattr(statement, "body", None)
    return (first, max(first, body[0].lineno - 1)) if isinstance(body, list) and body else (first, last)


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.If):
        return f"if {ast.unparse(node.test)}"
    return ast.unparse(ast.fix_missing_locations(node))
