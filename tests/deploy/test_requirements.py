"""What the code imports is what `requirements.lock` installs: a fresh clone has nothing else."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("streams", "processors", "schemas", "clickhouse", "deploy", "tests", "benchmarks")
# `compression` is Python's own from 3.14 on; the baseline `dbos` is installed by `make bench` only.
ELSEWHERE = {"compression", "dbos", "pml", "tests", "benchmarks"}


def normal(name: str) -> str:
    """A distribution's name as indexes compare them (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> set[str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return {normal(re.split(r"[=\s;]", line)[0]) for line in lines if line and not line.startswith("#")}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("room", ROOMS)
def test_every_import_is_pinned(room: str) -> None:
    known, distributions = pinned(), packages_distributions()
    unpinned = {
        f"{path.relative_to(ROOT)}: {module}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for module in imported(ast.parse(path.read_text()))
        if module not in sys.stdlib_module_names | ELSEWHERE
        and not known & {normal(name) for name in distributions.get(module, [module])}
    }
    assert not unpinned


def test_every_line_is_an_exact_version_and_names_no_registry() -> None:
    lines = [
        line for line in (ROOT / "requirements.lock").read_text().splitlines() if line[:1] not in ("", "#")
    ]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.\-\[\]]+==[\w.+]+( *; .+)?", line)] == []
