"""The hunt: tests are collected once, and every mutant lives in a process of its own, forked from there."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Literal

import pytest

from tests.mutation.children import Children, Ended, alone
from tests.mutation.judging import Reach, Verdicts, first_to_notice, measure, tame
from tests.mutation.mutants import Module, Mutant
from tests.mutation.patching import Functions, Importing, exchange, forget

Fate = Literal["killed", "timed out", "survived", "not reached", "stillborn"]
# The judges of a mutant may take this many times as long as without it; then it hangs.
PATIENCE = 5
LEAST_S = 2
# Loading the tests again takes this long at most.
IMPORT_S = 10
OPTIONS = (
    "-qq",
    "-s",
    "--no-header",
    "--no-summary",
    "--assert=plain",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:xdist",
    "-o",
    "timeout=0",
)


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and which test noticed it."""

    mutant: Mutant
    fate: Fate
    test: str | None = None

    @property
    def killed(self) -> bool:
        """A test failed, or would not end."""
        return self.fate in {"killed", "timed out"}


@dataclass
class Hunt:
    """A pytest plugin that hunts mutants instead of running tests.

    Attributes:
        sources: the folders of the modules.
        tests: folders or files of the tests.
        told: called with each verdict.
        problem: why there was no hunt.
        interrupted: somebody ended it before the last mutant.
    """

    sources: Sequence[Path]
    tests: Sequence[str]
    chosen: Sequence[tuple[Module, Mutant]]
    jobs: int
    told: Callable[[Verdict], None]
    problem: str | None = None
    interrupted: bool = False
    _began: bool = False
    _verdicts: Verdicts = field(default_factory=Verdicts)
    _last: dict[tuple[str, str], str] = field(default_factory=dict)

    def run(self) -> None:
        """Collect and hunt."""
        options = [*OPTIONS, "-o", "addopts=--import-mode=importlib", *self.tests]
        # What pytest has to say is not the report.
        with redirect_stdout(sys.stderr):
            code = pytest.main(options, plugins=[self, self._verdicts])
        self.interrupted = code == pytest.ExitCode.INTERRUPTED and self._began
        if not self._began and not self.problem:
            self.problem = f"the tests could not be collected: {code!r}"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Everything happens here, where the tests are loaded and none has run."""
        for item in session.items:
            tame(item)
        functions = Functions()
        # Not before: what is frozen is not listed. Collecting in a child would copy every page.
        gc.collect()
        gc.freeze()
        reach: Reach = alone(lambda: measure(session.items, self._verdicts, self.sources))
        if reach.failed:
            self.problem = f"tests fail without a mutant: {', '.join(reach.failed[:5])}"
            return True
        self._began = True
        self._hunt({item.nodeid: item for item in session.items}, reach, functions)
        return True

    def _hunt(self, items: dict[str, pytest.Item], reach: Reach, functions: Functions) -> None:
        children = Children(self.jobs)
        try:
            self._hunt_each(children, items, reach, functions)
        finally:
            children.stop()

    def _hunt_each(
        self, children: Children, items: dict[str, pytest.Item], reach: Reach, functions: Functions
    ) -> None:
        for module, mutant in self.chosen:
            found = functions.of(mutant, module)
            names = self._judges(module, mutant, reach, bool(found))
            if not names:
                self.told(Verdict(mutant, "not reached"))
                continue
            work = self._work(module, mutant, functions, [items[name] for name in names], found)
            allowed = LEAST_S + math.ceil(PATIENCE * sum(map(reach.seconds.__getitem__, names)))
            allowed += 0 if found else IMPORT_S
            for ended in children.start(mutant, work, allowed):
                self._tell(ended)
        for ended in children.rest():
            self._tell(ended)

    def _judges(self, module: Module, mutant: Mutant, reach: Reach, patched: bool) -> list[str]:
        """The tests to ask, fastest first; before them the one that noticed the last mutant near by."""
        path = module.path.resolve()
        names = reach.running(path, mutant.lines) if patched else reach.all
        last = self._last.get((mutant.module, mutant.function))
        return sorted(names, key=lambda name: name != last)

    def _work(
        self,
        module: Module,
        mutant: Mutant,
        functions: Functions,
        items: list[pytest.Item],
        found: list[FunctionType],
    ) -> Callable[[], str]:
        """What the child does: it answers with the test that noticed, or with nothing."""
        if found:

            def judge() -> str:
                exchange(found, module.code(mutant, found[0].__code__.co_filename))
                return first_to_notice(items, self._verdicts) or ""

            return judge
        return lambda: self._import_and_judge(module, mutant, functions, items)

    def _import_and_judge(
        self, module: Module, mutant: Mutant, functions: Functions, items: list[pytest.Item]
    ) -> str:
        """The tests are loaded again, over the mutant."""
        name = functions.imported_as(module)
        assert name is not None, f"no test imports {module.name}"
        package = name.removesuffix("." + module.name.removesuffix(".py").replace("/", "."))
        file = sys.modules[name].__file__
        assert file is not None
        forget(
            [
                package,
                *{item.obj.__module__.split(".")[0] for item in items if isinstance(item, pytest.Function)},
            ],
            but=("tests.mutation",),
        )
        sys.meta_path.insert(0, Importing(name, Path(file), module.code(mutant, file)))
        again = _Again([item.nodeid for item in items])
        paths = sorted({str(item.path) for item in items})
        code = pytest.main(
            [*OPTIONS, "-x", "-o", "addopts=--import-mode=importlib", *paths], plugins=[again, again.verdicts]
        )
        failed = again.verdicts.failed
        return failed[0] if failed else "" if code == pytest.ExitCode.OK else "(import)"

    def _tell(self, ended: Ended) -> None:
        mutant: Mutant = ended.key
        if ended.by_limit:
            self.told(Verdict(mutant, "timed out"))
        elif ended.value is None:
            self.told(Verdict(mutant, "stillborn"))
        elif not ended.value:
            self.told(Verdict(mutant, "survived"))
        else:
            self._last[mutant.module, mutant.function] = ended.value
            self.told(Verdict(mutant, "killed", ended.value))


class _Again:
    """A plugin for the second collection: the same tests, in the same order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.verdicts = Verdicts()
        self._order = {name: index for index, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep those that were asked for."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )
        for item in items:
            tame(item)


def each(modules: Sequence[Module]) -> Iterator[tuple[Module, Mutant]]:
    """All mutants."""
    return ((module, mutant) for module in modules for mutant in module.mutants)
