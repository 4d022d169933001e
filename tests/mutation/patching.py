"""A mutant in a running process: in functions that are there already, or in a module imported anew."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutation.mutants import Module, Mutant

Where = tuple[str, str, int]


class Functions:
    """Every function that was made from a source file, wherever a decorator has put it."""

    def __init__(self) -> None:
        self._made: dict[Where, list[FunctionType]] = {}
        for item in gc.get_objects():
            if isinstance(item, FunctionType):
                self._made.setdefault(_where(item.__code__), []).append(item)
        self._files = {
            str(Path(file).resolve()): module.__name__
            for module in list(sys.modules.values())
            if isinstance(module, ModuleType) and (file := getattr(module, "__file__", None))
        }

    def of(self, mutant: Mutant, module: Module) -> list[FunctionType]:
        """The functions that this mutant changes; none where it changes what runs on import.

        Those that the function had made before, on import, come after it.
        """
        file = str(module.path.resolve())
        outer = self._made.get((file, mutant.function, mutant.first_line), []) if mutant.first_line else []
        if not outer:
            return []
        inside = f"{mutant.function}.<locals>."
        places = [where for where in self._made if where[0] == file and where[1].startswith(inside)]
        return [*outer, *(function for where in places for function in self._made[where])]

    def imported_as(self, module: Module) -> str | None:
        """The name that a module was imported under, None if it was not."""
        return self._files.get(str(module.path.resolve()))


def exchange(functions: Sequence[FunctionType], code: CodeType) -> None:
    """Give functions the code that they have in another version of their module, where they are in it."""
    there = {_where(item)[1:]: item for item in _codes(code)}
    for function in functions:
        function.__code__ = there.get(_where(function.__code__)[1:], function.__code__)


def _where(code: CodeType) -> Where:
    return _resolved(code.co_filename), code.co_qualname, code.co_firstlineno


@cache
def _resolved(path: str) -> str:
    return str(Path(path).resolve())


def _codes(code: CodeType) -> Iterator[CodeType]:
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield item
            yield from _codes(item)


class Importing(MetaPathFinder):
    """Has one module imported with this code."""

    def __init__(self, name: str, path: Path, code: CodeType) -> None:
        self._name = name
        self._path = str(path)
        self._code = code

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of that module, of no other."""
        if fullname != self._name:
            return None
        return ModuleSpec(fullname, _Loader(fullname, self._path, self._code), origin=self._path)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code


def forget(prefixes: Sequence[str], but: Sequence[str]) -> None:
    """Have these packages imported again by whoever imports them next, but for some."""
    for name in list(sys.modules):
        if _below(name, prefixes) and not _below(name, but):
            del sys.modules[name]


def _below(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)
