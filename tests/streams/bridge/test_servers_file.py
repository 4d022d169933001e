"""`mcp-servers.yaml`: the usual shape, variables, clear errors, no secrets shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pml.schemas.errors import ConfigurationError
from pml.streams.bridge.server_specs import FromFile, HttpServer, StdioServer
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
    assert isinstance(spec, StdioServer)
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
    server = file.servers["a"]
    assert isinstance(server, StdioServer)
    assert server.cwd == tmp_path / "tools"


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    file = read_servers(written(tmp_path, YAML), {"GIT_TOKEN": "t0p-secret"})
    assert "t0p-secret" not in repr(file) + str(file) + file.model_dump_json()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("mcpServers: {a: {command: x, env: {T: '${MISSING}'}}}", "environment variable MISSING"),
        ("mcpServers: {a: {args: [x]}}", "a.stdio.command: Field required"),
        ("mcpServers: {a: {command: x, isolated: true}}", "isolated"),
        ("mcpServers: {a: {url: 'https://secret@example.org'}}", "holds a user or password"),
        ("mcpServers: {a: {url: 'http://example.org/secret'}}", "use https, or `insecure_http: true`"),
        ("mcpServers: {a: {url: 'ftp://example.org/secret'}}", "must begin with https://"),
        ("mcpServers: {a: {url: 'https://x', command: secret}}", "a.http.command: Extra inputs"),
        ("mcpServers: {a: {url: 'https://x', type: sse}}", "`sse` is out of use"),
        ("mcpServers: {a: {url: 'https://x', headers: {Host: secret}}}", "Host is written by the transport"),
        (
            "mcpServers: {a: {url: 'https://x', isolation: shared, tenants: {t: {headers: {A: secret}}}}}",
            "would use one tenant's credentials for another",
        ),
        (
            "mcpServers: {a: {url: 'https://x', headers: {authorization: secret}, "
            "oauth: {issuer: 'https://y', client_id: secret, client_secret: secret}}}",
            "give one of the two",
        ),
        (
            "mcpServers: {a: {url: 'https://x', "
            "oauth: {issuer: 'http://y', client_id: secret, client_secret: secret}}}",
            "`oauth.issuer` must be https",
        ),
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


AT_URLS = """
mcpServers:
  plain: {url: "https://mcp.example/mcp?key=${KEY}", type: streamable-http}
  own: {url: "http://[::1]:8080/mcp", headers: {X-Key: {file: keys/own}, X-Org: 7}}
  many:
    url: https://mcp.example/mcp
    concurrency: 2
    tenants:
      green: {headers: {Authorization: "Bearer ${NOT_SET}"}}
      blue: {oauth: {issuer: "https://login.example", client_id: c, client_secret: {file: /run/blue}}}
"""


def test_servers_at_urls_with_credentials_that_are_filled_later(tmp_path: Path) -> None:
    servers = read_servers(written(tmp_path, AT_URLS), {"KEY": "t0p-secret"}).servers
    plain, own, many = (servers[name] for name in ("plain", "own", "many"))
    assert isinstance(plain, HttpServer)
    assert isinstance(own, HttpServer)
    assert isinstance(many, HttpServer)
    assert (plain.address(), plain.shown()) == (
        "https://mcp.example/mcp?key=t0p-secret",
        "https://mcp.example",
    )
    assert own.headers["X-Key"] == FromFile(file=tmp_path / "keys/own")
    assert (many.isolation, many.concurrency) == ("tenant", 2)
    blue = many.tenants["blue"].oauth
    assert blue is not None
    assert blue.client_secret == FromFile(file=Path("/run/blue"))
    assert "t0p-secret" not in repr(servers) + plain.model_dump_json()


def test_whose_credentials_are_shown(tmp_path: Path) -> None:
    many = read_servers(written(tmp_path, AT_URLS), {"KEY": "k"}).servers["many"]
    assert isinstance(many, HttpServer)
    assert many.credentials("blue") is many.tenants["blue"]
    assert many.credentials("red") is None
    assert many.credentials("") is many.tenants["green"], "the tools are listed with the first tenant's"
    with_own = many.model_copy(update={"headers": {"X-Key": FromFile(file=Path("/k"))}})
    assert with_own.credentials("") is with_own
    assert with_own.credentials("red") is None, "a tenant that is not named gets nobody's"


def test_plain_http_off_this_machine_is_the_operators_word(tmp_path: Path) -> None:
    text = "mcpServers: {a: {url: 'http://mcp.internal/mcp', insecure_http: true}}"
    server = read_servers(written(tmp_path, text)).servers["a"]
    assert isinstance(server, HttpServer)
    assert server.shown() == "http://mcp.internal"
