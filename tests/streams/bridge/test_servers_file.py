"""`mcp-servers.yaml`: the usual shape, variables, clear errors, no secrets shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.servers_file import read_servers

YAML = """
mcpServers:
  git:
    command: uvx
    args: [mcp-server-git, --port, 8080]
    env: {TOKEN: "${GIT_TOKEN}", MODE: "${MODE:-read only}"}
    isolation: session
    concurrency: 2
    trusted: true
  spare: {command: false-command, disabled: true}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mcp-servers.yaml"
    path.write_text(text)
    return path


def test_the_usual_shape_and_what_pml_adds(tmp_path: Path) -> None:
    file = read_servers(written(tmp_path, YAML), {"GIT_TOKEN": "t0p-secret"})
    spec = file.servers["git"]
    assert spec.command_line() == ["uvx", "mcp-server-git", "--port", "8080"]
    assert spec.environment() == {"TOKEN": "t0p-secret", "MODE": "read only"}
    assert (spec.isolation, spec.concurrency, spec.trusted) == ("session", 2, True)
    assert list(file.enabled()) == ["git"]


def test_json_and_other_programs_settings_are_read_too(tmp_path: Path) -> None:
    text = json.dumps({"mcpServers": {"a": {"command": "x"}}, "globalShortcut": "Ctrl"})
    assert list(read_servers(written(tmp_path, text)).servers) == ["a"]


def test_a_file_that_does_not_exist_names_no_servers(tmp_path: Path) -> None:
    assert read_servers(tmp_path / "none.yaml").servers == {}


def test_a_relative_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    file = read_servers(written(tmp_path, "mcpServers: {a: {command: x, cwd: tools}}"))
    assert file.servers["a"].cwd == tmp_path / "tools"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = read_servers(written(tmp_path, YAML), {"GIT_TOKEN": "t0p-secret"})
    assert "t0p-secret" not in repr(file) + str(file) + file.model_dump_json()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mcpServers: {a: {command: x, env: {T: '${MISSING}'}}}", "environment variable MISSING"),
        ("mcpServers: {a: {args: [x]}}", "a.command: Field required"),
        ("mcpServers: {a: {command: x, isolated: true}}", "isolated"),
        ("mcpServers: {a: {url: 'https://secret@example.org'}}", "servers over HTTP"),
        ("mcpServers: {'a:b': {command: x}}", "a:b"),
        ("mcpServers: {a: {command: x, concurrency: 0}}", "concurrency"),
        ("mcpServers: [", "no valid YAML at line 1"),
        ("- a", "must hold a mapping"),
    ],
)
def test_a_mistake_is_named_without_values(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_servers(written(tmp_path, text), {})
    assert complaint in raised.value.message
    assert str(tmp_path) in raised.value.message
    assert "secret" not in raised.value.message


def test_a_yaml_error_does_not_quote_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_servers(written(tmp_path, "mcpServers: {a: {command: x, env: {TOKEN: t0p-secret: }}"))
    assert "t0p-secret" not in raised.value.message


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="larger than"):
        read_servers(written(tmp_path, "#" * 1_100_000))


def test_the_name_of_the_built_in_server_is_taken(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="built-in server"):
        read_servers(written(tmp_path, "mcpServers: {pml: {command: x}}"))
