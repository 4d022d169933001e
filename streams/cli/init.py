"""`pml init`: files to begin with."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pml.streams.cli.output import Json, note, print_json

if TYPE_CHECKING:
    from pml.streams.servers_import import Imported

EXISTS = "exists, left as it is"
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
#  tickets:  # one at a URL
#    url: https://mcp.example.com/mcp
#    headers: {Authorization: "Bearer ${TICKETS_TOKEN}"}
"""
MCP_PERMISSIONS = """\
# What may run, and what may run early. A tool that is not named here asks a person first.
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
EXAMPLE_SERVERS = """\
# The MCP servers that the workflows here call. A relative `cwd` is relative to this file.
mcpServers:
  git:
    command: @PYTHON@
    args: [-m, mcp_server_git, --repository, .]  # pip install mcp-server-git
    cwd: repository
  time:
    command: @PYTHON@
    args: [-m, mcp_server_time, --local-timezone, UTC]  # pip install mcp-server-time
  files:
    command: @PYTHON@
    args: [-m, pml.deploy.examples.files_server, --root, world, --log, calls.jsonl]
    cwd: .
"""
NO_PERMISSIONS = """\
# What may run, and what may run early. A tool that is not named here asks a person first.
# `pml tools draft` proposes entries, `pml tools approve SERVER:TOOL` adds one.
version: 1
"""
FILES = {
    "pml.toml": PML_TOML,
    "mcp-servers.yaml": MCP_SERVERS,
    "mcp-permissions.yaml": MCP_PERMISSIONS,
    "workflow.yaml": WORKFLOW,
}
EXAMPLES = "pml.deploy.examples"


def init(
    folder: Annotated[Path, typer.Argument(help="Where to; made if it is missing.")] = Path("."),
    examples: Annotated[
        bool,
        typer.Option("--examples", help="Three servers, what they work on, and ten workflows to try."),
    ] = False,
    source: Annotated[
        Path | None,
        typer.Option(
            "--import",
            metavar="FILE",
            help="Take the servers of another client (Claude, Cursor, VS Code), without their secrets.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Write files to begin with: pml.toml, mcp-servers.yaml, mcp-permissions.yaml, workflow.yaml.

    What exists is left as it is. With --examples: a folder and a git repository of a small made-up product,
    servers and permissions for them, workflows/ and decisions/. With --import: the servers of another client,
    and what to write into its configuration so that it calls them through PML.

    Examples: pml init · pml init my-project · pml init try --examples · pml init --import .cursor/mcp.json
    """
    if source is not None:
        import_from(folder, source, as_json=json)
        return
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: text.replace("@PYTHON@", sys.executable) for name, text in _texts(examples).items()}
    written = [name for name in texts if _write(folder / name, texts[name])]
    for name in texts:
        note(f"{folder / name}: {'written' if name in written else EXISTS}")
    if examples:
        written += _build_world(folder)
    if json:
        print_json({"folder": str(folder.absolute()), "written": written})


def import_from(folder: Path, source: Path, *, as_json: bool) -> None:
    """Write the files with the servers that a client has.

    Raises:
        ConfigurationError: the client's file is wrong, or there are servers here already.
    """
    from pml.schemas.errors import ConfigurationError
    from pml.streams.client_configuration import over_http, over_stdio
    from pml.streams.servers_import import as_yaml, import_servers

    target = folder / "mcp-servers.yaml"
    if target.exists():
        raise ConfigurationError(f"{target} {EXISTS}: import into another folder, or move it away")
    found = import_servers(source)
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "pml.toml": PML_TOML,
        "mcp-servers.yaml": as_yaml(found, source),
        "mcp-permissions.yaml": NO_PERMISSIONS,
    }
    written = [name for name in texts if _write(folder / name, texts[name])]
    for name in texts:
        note(f"{folder / name}: {'written' if name in written else EXISTS}")
    told = {
        "stdio": over_stdio(found.shape, _own_command(), (folder / "pml.toml").absolute()),
        "http": over_http(found.shape),
    }
    if as_json:
        facts = {name: getattr(found, name) for name in ("variables", "left_out", "renamed")}
        print_json(
            {"folder": str(folder.absolute()), "written": written, "servers": list(found.servers)}
            | facts
            | {"client": told}
        )
        return
    _tell(found, told)


def _tell(found: Imported, told: dict[str, Any]) -> None:
    """What a person has to do now."""
    for name, own in found.renamed.items():
        note(f"{own!r} is called {name} here")
    for name, reason in found.left_out.items():
        note(f"{name} is left out: {reason}")
    for variable, servers in found.variables.items():
        note(
            f"set {variable} where `pml up` is started: {', '.join(servers)} needs it; it is not in the file"
        )
    note(
        "then: `pml tools draft` proposes permissions, `pml up --detach` starts, `pml status` has the address"
    )
    note("write one of these into the client's configuration instead of its servers: stdio, or HTTP")
    for configuration in told.values():
        print_json(configuration)


def _own_command() -> list[str]:
    """How this very `pml` is started."""
    script = Path(sys.executable).parent / "pml"
    return [str(script)] if script.exists() else [sys.executable, "-m", "pml.streams.cli"]


def _texts(examples: bool) -> dict[str, str]:
    """The files by their paths."""
    if not examples:
        return FILES
    place = files(EXAMPLES)
    workflows = {
        f"{kind}/{file.name}": file.read_text(encoding="utf-8")
        for kind in ("workflows", "decisions")
        for file in sorted((place / kind).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }
    permissions = (place / "mcp-permissions.yaml").read_text(encoding="utf-8")
    own = {"mcp-servers.yaml": EXAMPLE_SERVERS, "mcp-permissions.yaml": permissions}
    return {"pml.toml": PML_TOML, **own, **workflows}


def _write(path: Path, text: str) -> bool:
    """Whether it was not there."""
    if path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def _build_world(folder: Path) -> list[str]:
    """What the servers work on, where it does not exist."""
    from pml.deploy.examples import world

    made = []
    for name, build in (("world", world.build), ("repository", world.build_repository)):
        exists = (folder / name).exists()
        if not exists:
            build(folder / name)
            made.append(name)
        note(f"{folder / name}: {EXISTS if exists else 'written'}")
    return made
