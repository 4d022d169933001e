"""`mcpServers` files of other programs as `mcp-servers.yaml`: without the secrets that lie in them.

Claude Desktop, Claude Code and Cursor write `mcpServers`, VS Code writes `servers` (alone, or below `mcp`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

import yaml
from pydantic import TypeAdapter, ValidationError

from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError
from pml.schemas.identifiers import INTERNAL_SERVER
from pml.schemas.sanitiser import sanitise
from pml.streams.bridge.server_specs import AnyServer, HttpServer, StdioServer
from pml.streams.bridge.servers_file import FILE_MAX_BYTES
from pml.streams.yaml_text import NotYAML, read_yaml

NAME_MAX = 64
# A value that needs no hiding: a switch, a number, a plain word, a path.
_HARMLESS = re.compile(r"(?i)true|false|yes|no|on|off|[0-9.:]{1,12}|[a-z][a-z_.-]{0,23}|[~.]?/[\w./ @+-]*")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.S)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.S)
_FLAG = re.compile(r"--?([A-Za-z][\w-]*)(?:=(.*))?", re.S)
_PLACE = re.compile(r"\$\{(?:(env|input):)?([\w.-]+)(:-[^}]*)?\}")
_SCHEME = re.compile(r"(?i)((?:bearer|basic|token) +)(.*)", re.S)
_KEPT = frozenset(StdioServer.model_fields) | frozenset(HttpServer.model_fields)
_SERVER: TypeAdapter[Any] = TypeAdapter(AnyServer)


@dataclass(frozen=True, slots=True)
class Imported:
    """What was found.

    Attributes:
        servers: what goes into the file, by name.
        variables: what has to be in the environment of `pml up`, and for which servers.
        left_out: servers that are not taken, and why.
        renamed: their own names, by the names that they have now.
        shape: how the client writes its servers.
    """

    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    variables: dict[str, list[str]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    shape: str = "mcpServers"


def import_servers(path: Path) -> Imported:
    """The servers that a client has.

    Raises:
        ConfigurationError: the file cannot be read, or names no servers.
    """
    shape, servers = _servers_in(path, _content(path))
    found, hidden = Imported(shape=shape), _Hidden(_workspace(path))
    for own, given in servers.items():
        name = _free_name(str(own), found.servers)
        taken = hidden.without_secrets(name, given)
        reason = _why_not(taken)
        if reason is not None:
            found.left_out[str(own)] = reason
            continue
        found.servers[name] = taken
        if name != own:
            found.renamed[name] = str(own)
    found.variables.update(hidden.used_by(found.servers))
    return found


def as_yaml(found: Imported, source: Path) -> str:
    """The text of `mcp-servers.yaml`."""
    lines = [
        f"# Imported from {source.name} by `pml init --import`. The MCP servers that workflows may call.",
        "# ${NAME} is replaced by the environment variable NAME: set it where `pml up` is started.",
    ]
    body = yaml.safe_dump({"mcpServers": found.servers}, sort_keys=False, allow_unicode=True, width=110)
    return "\n".join([*lines, body])


class _Hidden:
    """Puts variables in the place of secrets; one value has one variable, one variable one value."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._values: dict[str, str] = {}
        self._users: dict[str, set[str]] = {}

    def without_secrets(self, server: str, given: Any) -> dict[str, Any]:
        """A server with what PML knows of it, in its words."""
        fields = given if isinstance(given, dict) else {}
        taken = {key: value for key, value in fields.items() if key in _KEPT}
        if "serverUrl" in fields:  # as Windsurf writes it
            taken.setdefault("url", fields["serverUrl"])
        if isinstance(taken.get("url"), str):
            taken["url"] = self._address(server, taken["url"])
        if isinstance(taken.get("headers"), dict):
            taken["headers"] = {
                str(name): self._header(server, str(name), _text(value))
                for name, value in taken["headers"].items()
            }
        if isinstance(taken.get("args"), list):
            taken["args"] = self._arguments(server, [str(item) for item in taken["args"]])
        if isinstance(taken.get("env"), dict):
            taken["env"] = {
                key: self._variable_value(server, key, value) for key, value in taken["env"].items()
            }
        for key in ("command", "cwd"):
            if isinstance(taken.get(key), str):
                taken[key] = self._placed(server, taken[key])
        if taken.get("type") == "stdio":
            del taken["type"]
        return taken

    def used_by(self, servers: Mapping[str, Any]) -> dict[str, list[str]]:
        """The variables of these servers, with who needs each."""
        used = {name: sorted(self._users[name] & servers.keys()) for name in sorted(self._users)}
        return {name: users for name, users in used.items() if users}

    def _variable_value(self, server: str, key: Any, value: Any) -> str:
        text = _text(value)
        if _PLACE.search(text):
            return self._placed(server, text)
        return self._hide(server, str(key), text) if is_secret(str(key), text) else text

    def _address(self, server: str, text: str) -> str:
        """A URL without the secrets in its query."""
        if _PLACE.search(text):
            return self._placed(server, text)
        parts = urlsplit(text)
        query = [
            f"{quote(key)}={self._hide(server, key, value) if is_secret(key, value) else quote(value)}"
            for key, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        return urlunsplit(parts._replace(query="&".join(query)))

    def _header(self, server: str, name: str, text: str) -> str:
        """A header whose secret is a variable; `Bearer ` stays before it."""
        if _PLACE.search(text):
            return self._placed(server, text)
        scheme = _SCHEME.fullmatch(text)
        if scheme:
            return scheme[1] + self._hide(server, f"{server}_token", scheme[2])
        return self._hide(server, f"{server}_{name}", text) if is_secret(name, text) else text

    def _arguments(self, server: str, given: list[str]) -> list[str]:
        """Flags with secrets, as one word or as two; and words that are secrets by their look."""
        told: list[str] = []
        flag = ""
        for number, word in enumerate(given):
            match = _FLAG.fullmatch(word)
            if _PLACE.search(word):
                told.append(self._placed(server, word))
            elif match and match[2] is not None and _names_secret(match[1], match[2]):
                told.append(f"{word[: match.start(2)]}{self._hide(server, match[1], match[2])}")
            elif not match and flag and _names_secret(flag, word):
                told.append(self._hide(server, flag, word))
            elif sanitise(word) != word:
                told.append(self._hide(server, f"arg_{number}", word))
            else:
                told.append(word)
            flag = match[1] if match and match[2] is None else ""
        return told

    def _hide(self, server: str, key: str, value: str) -> str:
        plain = _variable(key) or "VALUE"
        prefix = _variable(server)
        own = f"{prefix if prefix[:1].isalpha() else 'SERVER_' + prefix}_{plain}"
        names = chain([] if plain[0].isdigit() else [plain], [own], (f"{own}_{n}" for n in count(2)))
        return self._use(server, next(n for n in names if self._values.setdefault(n, value) == value))

    def _placed(self, server: str, text: str) -> str:
        """The places that a client fills, as PML writes them."""

        def replaced(match: re.Match[str]) -> str:
            kind, name, default = match[1], match[2], match[3] or ""
            if kind is None and name == "workspaceFolder":
                return str(self._workspace)
            if kind is None and name == "userHome":
                return self._use(server, "HOME")
            return self._use(server, re.sub(r"\W", "_", name.upper() if kind == "input" else name), default)

        return _PLACE.sub(replaced, text)

    def _use(self, server: str, name: str, default: str = "") -> str:
        if not default and name != "HOME":
            self._users.setdefault(name, set()).add(server)
        return f"${{{name}{default}}}"


def is_secret(name: str, value: str) -> bool:
    """Whether a value of an environment is not to be copied: all but what is plainly harmless."""
    return bool(value) and (_names_secret(name, value) or not _HARMLESS.fullmatch(value))


def _names_secret(name: str, value: str) -> bool:
    return bool(sanitise({name: value}) != {name: value})


def _variable(text: str) -> str:
    """The text as variables are named."""
    return re.sub(r"\W", "_", text, flags=re.ASCII).strip("_").upper()


def _why_not(server: dict[str, Any]) -> str | None:
    words = [str(server.get("command", "")), *map(str, server.get("args") or ())]
    if words[0].rpartition("/")[2] in ("pml", "pml.exe") and "mcp" in words:
        return "it is PML itself"
    try:
        _SERVER.validate_python(server)
    except ValidationError as error:
        return explain(error)
    return None


def _free_name(own: str, taken: Mapping[str, Any]) -> str:
    """A name that the file may have, as near to the own one as can be."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", own).strip("-._")[:NAME_MAX] or "server"
    plain = f"{plain}-server" if plain == INTERNAL_SERVER else plain
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain[: NAME_MAX - 4]}-{number}", number + 1
    return name


def _servers_in(path: Path, content: Mapping[str, Any]) -> tuple[str, dict[Any, Any]]:
    below = content.get("mcp")
    for place in (content, below if isinstance(below, dict) else {}):
        for shape in ("mcpServers", "servers"):
            if isinstance(place.get(shape), dict):
                return shape, place[shape]
    raise ConfigurationError(f"{path} names no servers: it has neither `mcpServers` nor `servers`")


def _content(path: Path) -> dict[str, Any]:
    """JSON, with the comments and commas that people leave in it, or YAML. Errors never quote the file."""
    try:
        if path.stat().st_size > FILE_MAX_BYTES:
            raise ConfigurationError(f"{path} is larger than {FILE_MAX_BYTES} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8") from None
    try:
        content = read_yaml(_plain_json(text) if text.lstrip().startswith(("{", "/")) else text)
    except NotYAML:
        raise ConfigurationError(f"{path} is neither JSON nor YAML") from None
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} must hold an object at its top")
    return content


def _plain_json(text: str) -> str:
    """JSON without comments and without commas before a closing bracket; tabs are no indentation for YAML."""
    kept = _COMMENT.sub(lambda match: match[1] or " ", text)
    return _TRAILING_COMMA.sub(lambda match: match[1] or "", kept).replace("\t", " ")


def _workspace(path: Path) -> Path:
    folder = path.absolute().parent
    return folder.parent if folder.name in (".vscode", ".cursor") else folder


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
