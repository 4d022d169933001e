"""The simulation's tools as files: what servers serve, what the bridge starts, what an operator allowed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from pml.schemas.catalog import ToolHints
from tests.simulation.tools import Toolbox, ToolSpec

ROOT = Path(__file__).parents[2]


def write_tools(folder: Path, toolbox: Toolbox) -> None:
    """`tools.json`, `mcp-servers.yaml` and `mcp-permissions.yaml` of an installation."""
    specs = [asdict(spec) | {"hints": spec.hints.model_dump()} for spec in toolbox.specs.values()]
    (folder / "tools.json").write_bytes(orjson.dumps(specs))
    names = sorted({spec.server for spec in toolbox.specs.values()})
    servers = {name: _server(name, folder, toolbox) for name in names}
    (folder / "mcp-servers.yaml").write_bytes(orjson.dumps({"mcpServers": servers}))
    entries = {spec.name: spec.entry for spec in toolbox.specs.values() if spec.entry is not None}
    (folder / "mcp-permissions.yaml").write_bytes(orjson.dumps({"version": 1, "tools": entries}))


def read_tools(folder: Path, server: str | None = None) -> Iterator[ToolSpec]:
    """The tools of a server, or of all."""
    for said in orjson.loads((folder / "tools.json").read_bytes()):
        lists = {name: tuple(said[name]) for name in ("required", "fields")}
        spec = ToolSpec(**{**said, **lists, "hints": ToolHints(**said["hints"])})
        if server is None or spec.server == server:
            yield spec


def toolbox_of(folder: Path) -> Toolbox:
    """The tools that an installation had."""
    return Toolbox({spec.name: spec for spec in read_tools(folder)})


def write_troubles(folder: Path, troubles: Mapping[str, float]) -> None:
    """How likely a call goes wrong, from now on."""
    aside = folder / "troubles.json.new"
    aside.write_bytes(orjson.dumps(dict(troubles)))
    aside.replace(folder / "troubles.json")


def _server(name: str, folder: Path, toolbox: Toolbox) -> dict[str, Any]:
    return {
        "command": sys.executable,
        "args": ["-m", "tests.servers.world_server", name, str(folder)],
        "env": {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        "trusted": name in toolbox.trusted,
        "concurrency": toolbox.concurrency.get(name, 4),
    }
