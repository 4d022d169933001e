"""Tests as judges: which tests run which line, and whether one of them notices a mutant."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from coverage import Coverage

# A mutant that needs an example as rare as the last of a hundred is left to the full suite.
EXAMPLES = 20
Lines = dict[str, set[int]]


@dataclass
class Reach:
    """What the tests reach without a mutant.

    Attributes:
        seconds: of each test, by node id, in the order of collection.
        lines: by node id and file, the lines that a test runs.
        failed: tests that fail without a mutant; nothing can be learned from them.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, Lines] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def running(self, path: Path, lines: tuple[int, int]) -> list[str]:
        """The tests that run one of these lines, fastest first."""
        wanted = set(range(lines[0], lines[1] + 1))
        found = [name for name, files in self.lines.items() if wanted & files.get(str(path), set())]
        return sorted(found, key=self.seconds.__getitem__)

    @property
    def all(self) -> list[str]:
        """Every test, fastest first: what a module brings on import may show where none of its lines runs."""
        return sorted(self.seconds, key=self.seconds.__getitem__)


class Verdicts:
    """A plugin that keeps nothing of a test but whether it failed: no traces, no differences of texts."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """A report without words."""
        broken = call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception)
        if broken:
            self.failed.append(item.nodeid)
        when: Any = call.when
        outcome: Any = "failed" if broken else "passed" if call.excinfo is None else "skipped"
        where: Any = ("", 0, "") if outcome == "skipped" else None
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, where, when)


def tame(item: pytest.Item) -> None:
    """Have hypothesis play the same few examples each time, and stop at the first that fails."""
    test = getattr(item, "obj", None)
    chosen = getattr(test, "_hypothesis_internal_use_settings", None)
    if chosen is None:
        return
    test._hypothesis_internal_use_settings = hypothesis.settings(  # type: ignore[union-attr]
        chosen,
        max_examples=min(EXAMPLES, chosen.max_examples),
        derandomize=True,
        database=None,
        deadline=None,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
    )


def measure(items: Sequence[pytest.Item], verdicts: Verdicts, sources: Sequence[Path]) -> Reach:
    """Run every test once and write down which lines each runs."""
    reach = Reach()
    coverage = Coverage(data_file=None, config_file=False, include=[f"{path}/*" for path in sources])
    coverage.start()
    for index, item in enumerate(items):
        coverage.switch_context(item.nodeid)
        began = time.process_time()
        run(item, items[index + 1] if index + 1 < len(items) else None)
        reach.seconds[item.nodeid] = time.process_time() - began
    coverage.stop()
    reach.failed = list(verdicts.failed)
    data = coverage.get_data()
    for file in data.measured_files():
        for line, names in data.contexts_by_lineno(file).items():
            for name in filter(None, names):
                reach.lines.setdefault(name, {}).setdefault(os.path.realpath(file), set()).add(line)
    return reach


def run(item: pytest.Item, following: pytest.Item | None) -> None:
    """One test, with its fixtures."""
    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)


def first_to_notice(items: Sequence[pytest.Item], verdicts: Verdicts) -> str | None:
    """The first of these tests that fails."""
    for index, item in enumerate(items):
        run(item, items[index + 1] if index + 1 < len(items) else None)
        if verdicts.failed:
            return verdicts.failed[0]
    return None
