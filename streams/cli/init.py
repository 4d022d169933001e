"""`pml init`: files to begin with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pml.streams.cli.output import Json, note, print_json

PML_TOML = """\
# Settings of PML; `pml config` shows all of them. A variable PML_KAFKA__PORT goes before [kafka] port.
data_dir = ".pml"
mcp_servers = "mcp-servers.yaml"
mcp_permissions = "mcp-permissions.yaml"

[kafka]
# bootstrap_servers = "localhost:9092"   # a broker of your own instead of the embedded one
port = 0                                 # 0: any free one

[clickhouse]
port = 0

[speculation]
mode = "on"
budget = "normal"                        # off, low, normal, high
"""
MCP_SERVERS = """\
# The MCP servers that workflows may call. ${NAME} is replaced by the environment variable NAME.
mcpServers:
  time:
    command: @PYTHON@
    args: [-m, mcp_server_time, --local-timezone, UTC]  # pip install mcp-server-time
"""
MCP_PERMISSIONS = """\
# What may run, and what may run early. A tool that is not named here does not run at all.
# `pml tools list` shows what there is, `pml tools approve SERVER:TOOL` adds an entry.
version: 1
tools:
  "time:*": {scope: minimal, approval: auto, cacheable: false, touches: []}
"""
WORKFLOW = """\
# Try it: pml up --detach && pml submit workflow.yaml --wait
version: 1
name: two-clocks
intent: Say what time it is here and elsewhere
context: {elsewhere: Asia/Tokyo}
tasks:
  - id: here
    tool: time:get_current_time
    arguments: {timezone: Etc/UTC}
  - id: elsewhere
    tool: time:get_current_time
    arguments: {timezone: {type: parameter, parameter_name: elsewhere}}
    depends_on: [here]
"""
FILES = {
    "pml.toml": PML_TOML,
    "mcp-servers.yaml": MCP_SERVERS,
    "mcp-permissions.yaml": MCP_PERMISSIONS,
    "workflow.yaml": WORKFLOW,
}


def init(
    folder: Annotated[Path, typer.Argument(help="Where to; made if it is missing.")] = Path("."),
    json: Json = False,
) -> None:
    """Write files to begin with: pml.toml, mcp-servers.yaml, mcp-permissions.yaml, workflow.yaml.

    What exists is left as it is.

    Examples: pml init · pml init my-project
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [name for name in FILES if not (folder / name).exists()]
    for name in written:
        text = FILES[name].replace("@PYTHON@", sys.executable)
        (folder / name).write_text(text, encoding="utf-8")
    for name in FILES:
        note(f"{folder / name}: {'written' if name in written else 'exists, left as it is'}")
    if json:
        print_json({"folder": str(folder.absolute()), "written": written})
