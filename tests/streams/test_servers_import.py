"""Files of MCP clients: what is taken, what is hidden, what is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.servers_file import read_servers
from pml.streams.servers_import import Imported, as_yaml, import_servers, is_secret

DESKTOP = {
    "globalShortcut": "",
    "mcpServers": {
        "files": {"command": "npx", "args": ["-y", "@mcp/files", "/home/me/notes"]},
        "github": {
            "command": "docker",
            "args": ["run", "-e", "GITHUB_TOKEN", "--api-key=tulip-4711-secret", "--password", "hunter2x"],
            "env": {
                "GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                "LOG_LEVEL": "debug",
                "PORT": 8080,
                "CACHE": True,
                "WORKSPACE_ID": "T0A1-B2C3d4",
                "DATABASE": "postgres://me:tulip@db/x",
            },
        },
        "My Server": {
            "command": "x",
            "env": {"GITHUB_TOKEN": "another one of somebody"},
            "alwaysAllow": ["a"],
        },
        "pml": {"command": "/opt/venv/bin/pml", "args": ["mcp"]},
        "remote": {
            "type": "http",
            "url": "https://mcp.example/mcp?region=eu&api_key=tulip-0815",
            "headers": {"Authorization": "Bearer tulip-4712", "X-Org": "green", "X-Api-Key": "tulip-key"},
        },
        "old": {"type": "sse", "url": "https://mcp.example/sse"},
        "plain": {"url": "http://mcp.example/mcp"},
        "broken": {"args": ["x"]},
    },
}
SECRETS = ("ghp_", "tulip", "hunter2x", "another one", "T0A1")
VS_CODE = """\
{
\t// what the team uses
\t"inputs": [{"type": "promptString", "id": "api-key", "password": true}],
\t"servers": {
\t\t"own": {
\t\t\t"type": "stdio", /* here */
\t\t\t"command": "${workspaceFolder}/run",
\t\t\t"args": ["--url", "http://x//y", "${env:REGION}"],
\t\t\t"env": {"API_KEY": "${input:api-key}", "HOME_DIR": "${userHome}/x", "MODE": "${env:MODE:-fast}",},
\t\t},
\t},
}
"""


def imported(folder: Path, content: Any, name: str = "mcp.json") -> Imported:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else orjson.dumps(content))
    return import_servers(path)


def test_servers_are_taken_and_their_secrets_are_not(tmp_path: Path) -> None:
    found = imported(tmp_path, DESKTOP)

    assert list(found.servers) == ["files", "github", "My-Server", "remote"]
    assert found.renamed == {"My-Server": "My Server"}
    assert found.servers["files"] == DESKTOP["mcpServers"]["files"]  # type: ignore[index]
    assert found.servers["github"]["env"] == {
        "GITHUB_TOKEN": "${GITHUB_TOKEN}",
        "LOG_LEVEL": "debug",
        "PORT": "8080",
        "CACHE": "true",
        "WORKSPACE_ID": "${WORKSPACE_ID}",
        "DATABASE": "${DATABASE}",
    }
    assert found.servers["github"]["args"][-3:] == ["--api-key=${API_KEY}", "--password", "${PASSWORD}"]
    assert found.servers["My-Server"]["env"] == {"GITHUB_TOKEN": "${MY_SERVER_GITHUB_TOKEN}"}
    assert found.variables["GITHUB_TOKEN"] == ["github"]
    assert found.variables["MY_SERVER_GITHUB_TOKEN"] == ["My-Server"]
    text = as_yaml(found, tmp_path / "mcp.json")
    assert not [secret for secret in SECRETS if secret in text + repr(found)]


def test_what_is_left_out_says_why(tmp_path: Path) -> None:
    found = imported(tmp_path, DESKTOP)

    assert set(found.left_out) == {"pml", "broken", "old", "plain"}
    assert found.left_out["pml"] == "it is PML itself"
    assert "command" in found.left_out["broken"]
    assert "`sse` is out of use" in found.left_out["old"]
    assert "insecure_http" in found.left_out["plain"]


def test_servers_at_urls_are_taken_without_their_secrets(tmp_path: Path) -> None:
    found = imported(tmp_path, DESKTOP)

    assert found.servers["remote"] == {
        "type": "http",
        "url": "https://mcp.example/mcp?region=eu&api_key=${REMOTE_API_KEY}",
        "headers": {
            "Authorization": "Bearer ${REMOTE_TOKEN}",
            "X-Org": "green",
            "X-Api-Key": "${REMOTE_X_API_KEY}",
        },
    }
    assert found.variables["REMOTE_TOKEN"] == ["remote"]


def test_the_file_is_one_that_the_bridge_reads(tmp_path: Path) -> None:
    found = imported(tmp_path, DESKTOP)
    path = tmp_path / "mcp-servers.yaml"
    path.write_text(as_yaml(found, path))
    servers = read_servers(path, dict.fromkeys(found.variables, "given")).enabled()

    assert servers["github"].environment()["GITHUB_TOKEN"] == "given"
    assert servers["files"].command_line() == ["npx", "-y", "@mcp/files", "/home/me/notes"]


def test_what_vs_code_fills_is_written_as_pml_fills_it(tmp_path: Path) -> None:
    found = imported(tmp_path, VS_CODE, ".vscode/mcp.json")

    assert found.shape == "servers"
    assert found.servers["own"] == {
        "command": f"{tmp_path}/run",
        "args": ["--url", "http://x//y", "${REGION}"],
        "env": {"API_KEY": "${API_KEY}", "HOME_DIR": "${HOME}/x", "MODE": "${MODE:-fast}"},
    }
    assert list(found.variables) == ["API_KEY", "REGION"]
    below = {"mcp": {"servers": {"a": {"command": "b"}}}}
    assert imported(tmp_path, below).servers == {"a": {"command": "b"}}


@pytest.mark.parametrize("content", ["[1]", "{", "{}", '{"mcpServers": []}', "\x00{"])
def test_a_file_without_servers_is_refused_and_not_quoted(tmp_path: Path, content: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        imported(tmp_path, content)
    assert content not in raised.value.message or content == "{}"


def test_names_that_fall_together_are_told_apart(tmp_path: Path) -> None:
    servers = {
        "a b": {"command": "x"},
        "a-b": {"command": "y"},
        "é": {"command": "z"},
        "pml": {"command": "w"},
    }
    assert list(imported(tmp_path, {"mcpServers": servers}).servers) == [
        "a-b",
        "a-b-2",
        "server",
        "pml-server",
    ]


@pytest.mark.parametrize(
    "value", ["", "true", "8080", "info", "/data/x y", "~/notes", "us-east", "127.0.0.1"]
)
def test_what_is_plainly_harmless_is_copied(value: str) -> None:
    assert not is_secret("SETTING", value)


@pytest.mark.parametrize(
    "value", ["Xy7", "a1b2c3", "http://x", "two words here", "correct-horse-battery-staple"]
)
def test_everything_else_is_not(value: str) -> None:
    assert is_secret("SETTING", value)


def test_a_harmless_value_of_a_secrets_name_is_one() -> None:
    assert is_secret("API_KEY", "tulip")


def test_yaml_is_read_as_well(tmp_path: Path) -> None:
    text = yaml.safe_dump({"mcpServers": {"a": {"command": "b"}}})
    assert imported(tmp_path, text, "servers.yaml").servers == {"a": {"command": "b"}}
