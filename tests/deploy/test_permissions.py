"""The shipped permissions file has the right entry for every tool that the specification names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pml.processors.speculation.guard import can_speculate, may_run_early, requires_validation
from pml.schemas.permissions import PermissionFile

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "deploy" / "examples"
LISTS = yaml.safe_load((HERE / "speculation_lists.yaml").read_text(encoding="utf-8"))
PERMISSIONS = PermissionFile.model_validate(
    yaml.safe_load((EXAMPLES / "mcp-permissions.yaml").read_text(encoding="utf-8"))
)


def calls(names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Tool and arguments of each name in a list; `http POST/PUT` is a request with each of these methods."""
    for name in names:
        tool, _, methods = name.partition(" ")
        for method in methods.split("/"):
            yield _entry(tool), {"method": method} if method else {}


def _entry(name: str) -> str:
    """The one tool of the file that a list means: `server:tool`, a tool of any server, or a server."""
    found = [tool for tool in PERMISSIONS.tools if tool == name or name in tool.split(":")]
    assert len(found) == 1, f"{name} is {found or 'not'} in the file"
    return found[0]


@pytest.mark.parametrize(("tool", "arguments"), list(calls(LISTS["safe"])))
def test_what_the_specification_calls_safe_may_run_early(tool: str, arguments: dict[str, Any]) -> None:
    assert can_speculate(tool, arguments, PERMISSIONS, None).allowed
    assert not requires_validation(tool, PERMISSIONS)


@pytest.mark.parametrize(("tool", "arguments"), list(calls(LISTS["unsafe"])))
def test_what_the_specification_calls_unsafe_may_not(tool: str, arguments: dict[str, Any]) -> None:
    assert not can_speculate(tool, arguments, PERMISSIONS, None).allowed


def test_a_request_that_reads_may_run_early_but_not_with_results() -> None:
    get = {"method": "GET", "url": "https://example.org"}
    assert can_speculate("http:request", get, PERMISSIONS, None).allowed
    assert can_speculate("http:request", get, PERMISSIONS, None, True).reason == "open_world"


@pytest.mark.parametrize("tool", list(PERMISSIONS.tools))
def test_nothing_that_needs_a_word_runs_early(tool: str) -> None:
    if requires_validation(tool, PERMISSIONS):
        assert not may_run_early(tool, PERMISSIONS, None)
        assert not can_speculate(tool, {}, PERMISSIONS, None).allowed
