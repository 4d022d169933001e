"""Workflows and contexts as a user writes them on the command line."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pml.schemas.errors import ConfigurationError
from pml.streams.yaml_text import NotYAML, read_json_or_yaml

if TYPE_CHECKING:
    from pml.schemas.workflow import Workflow

# What a plan may have: its name tells people what it is.
PLAN = {"version", "name", "tasks", "decisions"}
# What the commands topic takes is 10 MiB; a definition is 256 KB.
FILE_BYTES_MAX = 10 * 1024 * 1024


def read_workflow(name: str) -> dict[str, Any]:
    """The workflow of a YAML or JSON file, or of standard input for `-`; its content is checked later.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is no mapping.
    """
    text = read_text(name)
    try:
        workflow = read_json_or_yaml(text)
    except NotYAML as error:
        raise ConfigurationError(f"{_named(name)} is neither YAML nor JSON{_place(error)}") from None
    if not isinstance(workflow, dict):
        raise ConfigurationError(f"{_named(name)} holds no workflow: it must be a mapping with `tasks`")
    return workflow


def read_plan(name: str) -> Workflow:
    """The tasks and decisions of a file for a run that goes on.

    Raises:
        ConfigurationError: it cannot be read, or says more of the run (an intent, a context, options), which
            has its own.
        WorkflowInvalid: it is not in the shape of a workflow.
    """
    from pydantic import ValidationError

    from pml.schemas.codec import explain
    from pml.schemas.errors import WorkflowInvalid
    from pml.schemas.workflow import Workflow

    try:
        plan = Workflow.model_validate(read_workflow(name))
    except ValidationError as error:
        wrong = f"{_named(name)} is no plan: {explain(error)}"
        raise WorkflowInvalid("WORKFLOW_INVALID", wrong) from None
    own = sorted(plan.model_fields_set - PLAN)
    if own:
        raise ConfigurationError(
            f"{_named(name)}: leave out {' and '.join(own)}; a plan has those of the run that it is for"
        )
    return plan


def read_context(given: Iterable[str]) -> dict[str, Any]:
    """The parameters that `--context` gives: JSON objects and `k=v`; later ones win.

    Raises:
        ConfigurationError: one is neither.
    """
    context: dict[str, Any] = {}
    for text in given:
        context |= _object(text) if text.lstrip().startswith("{") else _pair(text)
    return context


def _object(text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ConfigurationError(f"--context is no JSON object: {error}") from None
    assert isinstance(value, dict)
    return value


def _pair(text: str) -> dict[str, Any]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise ConfigurationError(f"--context takes a JSON object or k=v, not {text!r}")
    try:
        return {name: orjson.loads(value)}
    except orjson.JSONDecodeError:
        return {name: value}


def read_text(name: str) -> str:
    """What a file holds, or standard input for `-`.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is no UTF-8.
    """
    try:
        content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1) if name == "-" else _bytes(Path(name))
        if len(content) > FILE_BYTES_MAX:
            raise ConfigurationError(f"{_named(name)} is larger than {FILE_BYTES_MAX:,} bytes")
        return content.decode()
    except OSError as error:
        raise ConfigurationError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{_named(name)} is not UTF-8") from None


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _named(name: str) -> str:
    return "standard input" if name == "-" else name


def _place(error: NotYAML) -> str:
    if error.place is None:
        return f": {error.problem}"
    line, column = error.place
    return f": line {line}, column {column}: {error.problem}"
