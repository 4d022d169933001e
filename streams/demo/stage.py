"""Where the demo plays: a folder and a repository that are rebuilt before each run, real servers on them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import orjson
import yaml
from pydantic import ValidationError

from pml.deploy.examples import world
from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError
from pml.schemas.permissions import PermissionFile
from pml.schemas.workflow import Workflow
from pml.streams.local.stack import running_stack
from pml.streams.settings import Settings

EXAMPLES = "pml.deploy.examples"


class Stage:
    """The demo's folders under `<data_dir>/demo`, its servers and permissions.

    Args:
        settings: the user's; where a stack already runs on their data folder the demo takes one below it.
        checkout: the git repository that the workflows read.
        latency_ms: how much longer each call of the files server takes.
    """

    def __init__(self, settings: Settings, checkout: Path, latency_ms: int = 0) -> None:
        busy = running_stack(settings.data_dir) is not None
        data_dir = settings.data_dir / "demo-stack" if busy else settings.data_dir
        self.folder = data_dir / "demo"
        self.root = self.folder / "world"
        self.repository = self.folder / "repository"
        self.call_log = self.folder / "calls.jsonl"
        self.checkout, self.latency_ms = checkout, latency_ms
        self._snapshot = self.folder / "snapshot"
        examples = files(EXAMPLES)
        self.permissions = load_permissions(str(examples / "mcp-permissions.yaml"))
        self.settings = settings.model_copy(
            update={
                "data_dir": data_dir,
                "mcp_servers": Path(str(examples / "mcp-servers.yaml")),
                "mcp_permissions": Path(str(examples / "mcp-permissions.yaml")),
            }
        )

    def set_up(self) -> None:
        """Make the folders and take a snapshot of the checkout, so that all runs read the same commits."""
        self.settings.make_data_dir()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.call_log.write_bytes(b"")
        world.clone(self.checkout, self._snapshot)
        self.rebuild()

    def rebuild(self) -> None:
        """The folder and the repository as they were before any run."""
        world.build(self.root)
        world.clone(self._snapshot, self.repository, linked=True)

    def digest(self) -> str:
        """What a run left behind."""
        return f"{world.digest(self.root)} {world.digest(self.repository)}"

    @contextmanager
    def environment(self) -> Iterator[None]:
        """The variables that the servers file names, for the processes started meanwhile."""
        variables = {
            "PML_PYTHON": sys.executable,
            "PML_DEMO_REPOSITORY": str(self.repository),
            "PML_DEMO_ROOT": str(self.root),
            "PML_DEMO_CALL_LOG": str(self.call_log),
            "PML_DEMO_LATENCY_MS": str(self.latency_ms),
        }
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})

    def unsafe_speculations(self, since_bytes: int = 0) -> int:
        """Speculative calls of tools that may not be, in the files server's own log, from a position on."""
        with self.call_log.open("rb") as log:
            log.seek(since_bytes)
            calls = [orjson.loads(line) for line in log]
        return sum(
            bool(call["speculative"]) and not call["ended_at"] and self.is_unsafe(call["tool"])
            for call in calls
        )

    def is_unsafe(self, tool: str) -> bool:
        """Whether a tool of the files server may not be run early."""
        found = self.permissions.find(f"files:{tool}")
        return found is None or found[1].approval != "auto" or found[1].declared_effect == "write"

    def is_volatile(self, tool: str) -> bool:
        """Whether a tool's answer changes by itself."""
        found = self.permissions.find(tool)
        return found is not None and not found[1].cacheable


def load_permissions(path: str) -> PermissionFile:
    """The permissions of the demo's servers."""
    return PermissionFile.model_validate(yaml.safe_load(Path(path).read_text()))


def load_workflows() -> list[Workflow]:
    """The demo's workflows, by name.

    Raises:
        ConfigurationError: a file is no workflow.
    """
    with as_file(files(EXAMPLES) / "workflows") as folder:
        return [read_workflow(path) for path in sorted(folder.glob("*.yaml"))]


def read_workflow(path: Path) -> Workflow:
    """A workflow file, YAML or JSON.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        content: Any = yaml.safe_load(path.read_text())
        return Workflow.model_validate(content)
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError(f"{path} cannot be read as a workflow: {error}") from None
    except ValidationError as error:
        raise ConfigurationError(f"{path} is no workflow: {explain(error)}") from None
