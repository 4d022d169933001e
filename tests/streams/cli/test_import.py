"""`pml init --import` and `pml tools draft`: from another client's servers to one's own project."""

from __future__ import annotations

import sys
from pathlib import Path

import orjson
import yaml

from pml.schemas.permissions import PermissionFile
from pml.streams.bridge.servers_file import read_servers
from pml.streams.settings import Settings
from tests.streams.cli.conftest import Pml

ARGUMENTS = ["-m", "pml.deploy.examples.files_server", "--root", "."]
CLIENT = {
    "mcpServers": {
        "files": {"command": sys.executable, "args": ARGUMENTS, "env": {"FILES_TOKEN": "tulip-4711"}},
        "gone": {"command": "/nowhere/server"},
        "half": {"args": ["x"]},
    }
}


def test_servers_of_another_client_become_a_project(pml: Pml) -> None:
    Path("claude.json").write_bytes(orjson.dumps(CLIENT))
    done = pml("init", "mine", "--import", "claude.json")

    assert done.exit_code == 0
    assert "set FILES_TOKEN where `pml up` is started: files needs it" in done.stderr
    assert "half is left out" in done.stderr
    stdio, http = (orjson.loads(line) for line in done.stdout.splitlines())
    entry = stdio["mcpServers"]["pml"]
    assert entry["args"][-3:] == ["mcp", "--tools", "proxy"]
    assert entry["env"] == {"PML_CONFIG": str(Path("mine/pml.toml").absolute())}
    assert http["mcpServers"]["pml"]["url"].endswith("/mcp?tools=proxy")
    written = "".join(path.read_text() for path in Path("mine").iterdir())
    assert "tulip" not in written + done.stdout + done.stderr
    assert {path.name for path in Path("mine").iterdir()} == {
        *("pml.toml", "mcp-servers.yaml", "mcp-permissions.yaml")
    }
    servers = read_servers(Path("mine/mcp-servers.yaml"), {"FILES_TOKEN": "given"}).enabled()
    assert servers["files"].environment() == {"FILES_TOKEN": "given"}


def test_servers_that_are_there_are_not_written_over(pml: Pml) -> None:
    Path("claude.json").write_bytes(orjson.dumps(CLIENT))
    facts = orjson.loads(pml("init", "--import", "claude.json", "--json").stdout)
    assert (facts["servers"], list(facts["left_out"])) == (["files", "gone"], ["half"])
    assert set(facts["client"]) == {"stdio", "http"}

    again = pml("init", "--import", "claude.json")
    assert again.exit_code == 2
    assert "import into another folder" in again.stderr
    assert pml("init", "other", "--import", "missing.json").exit_code == 2
    assert not Path("other").exists()


def test_a_draft_is_made_of_what_servers_say(pml: Pml) -> None:
    files = {"command": sys.executable, "args": ARGUMENTS}
    servers = {**CLIENT["mcpServers"], "files": files}
    Path("claude.json").write_bytes(orjson.dumps({"mcpServers": servers}))
    pml("init", "--import", "claude.json")
    assert Settings.load().mcp_servers == Path.cwd() / "mcp-servers.yaml"
    drafted = pml("tools", "draft")

    assert drafted.exit_code == 0
    assert '# "files:read_file": {scope: readonly, approval: auto, touches: [' in drafted.stdout
    assert "# gone could not be asked: " in drafted.stdout
    assert PermissionFile.model_validate(yaml.safe_load(drafted.stdout)).tools == {}
    Path("mcp-permissions.yaml").write_text('tools: {"files:*": {approval: auto}}\n')
    left = orjson.loads(pml("tools", "draft", "--json").stdout)
    assert (left["items"], list(left["absent"])) == ([], ["gone"])
