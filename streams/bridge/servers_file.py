"""`mcp-servers.yaml`: which MCP servers there are and how to reach them (CONTRACT.md, Configuration)."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, ConfigDict, Field, ValidationError, field_validator

from pml.schemas.base import Model
from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError
from pml.schemas.identifiers import INTERNAL_SERVER
from pml.streams.bridge.server_specs import (
    AnyServer,
    Credentials,
    FromFile,
    HttpServer,
    OAuth,
    ServerName,
    ServerSpec,
)
from pml.streams.yaml_text import NotYAML, read_yaml

FILE_MAX_BYTES = 1024 * 1024
_CREDENTIALS = frozenset({"headers", "oauth", "tenants"})
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class ServersFile(Model):
    """The whole file. What other programs keep beside `mcpServers` is passed over."""

    model_config = ConfigDict(extra="ignore")

    servers: dict[ServerName, AnyServer] = Field(
        default={}, validation_alias=AliasChoices("mcpServers", "mcp_servers", "servers")
    )

    @field_validator("servers")
    @classmethod
    def _not_ours(cls, servers: dict[str, ServerSpec]) -> dict[str, ServerSpec]:
        if INTERNAL_SERVER in servers:
            raise ValueError(f"{INTERNAL_SERVER!r} is the name of the built-in server; choose another one")
        return servers

    def enabled(self) -> dict[str, ServerSpec]:
        """The servers that are not disabled."""
        return {name: spec for name, spec in self.servers.items() if not spec.disabled}


def read_servers(path: Path, environment: Mapping[str, str] | None = None) -> ServersFile:
    """The servers of a YAML or JSON file; a file that does not exist names none.

    `${NAME}` in a value is the variable NAME, `${NAME:-text}` has a default; in the credentials of a
    server at a URL it is filled when they are used. Relative paths are relative to the file.

    Raises:
        ConfigurationError: the file cannot be read, is no YAML, has a wrong shape, or names a
            variable that is not set. Values are never part of the message.
    """
    if not path.exists():
        return ServersFile()
    content = load_yaml(path)
    filled = _fill(content, os.environ if environment is None else environment, path, "")
    try:
        file = ServersFile.model_validate(filled)
    except ValidationError as error:
        raise ConfigurationError(f"{path}: {explain(error)}") from None
    return file.model_copy(update={"servers": {n: _placed(s, path.parent) for n, s in file.servers.items()}})


def load_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML (so also JSON) file of at most 1 MiB; an empty file is an empty mapping.

    Raises:
        ConfigurationError: as its message says.
    """
    try:
        if path.stat().st_size > FILE_MAX_BYTES:
            raise ConfigurationError(f"{path} is larger than {FILE_MAX_BYTES} bytes")
        content = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8") from None
    except NotYAML as error:
        raise ConfigurationError(f"{path} is no valid YAML{_where(error)}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} must hold a mapping at its top")
    return content


def _where(error: NotYAML) -> str:
    """Line and column only: what is wrong there may quote the file, and with it secrets."""
    return "" if error.place is None else f" at line {error.place[0]}, column {error.place[1]}"


def _fill(value: Any, environment: Mapping[str, str], path: Path, place: str) -> Any:
    if isinstance(value, dict):
        later = _CREDENTIALS if "url" in value else frozenset()
        return {
            name: item if name in later else _fill(item, environment, path, f"{place}.{name}".lstrip("."))
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_fill(item, environment, path, f"{place}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        return filled(value, environment)
    except KeyError as missing:
        name = missing.args[0]
        raise ConfigurationError(
            f"{path}: {place} needs the environment variable {name}, which is not set; "
            f"set it, or write ${{{name}:-default}}"
        ) from None


def filled(text: str, environment: Mapping[str, str]) -> str:
    """The text with its `${NAME}` replaced.

    Raises:
        KeyError: the variable that is not set.
    """

    def replacement(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        found = environment.get(name, default)
        if found is None:
            raise KeyError(name)
        return found

    return _VARIABLE.sub(replacement, text)


def _placed(spec: ServerSpec, folder: Path) -> ServerSpec:
    """With paths that no longer depend on where the file is."""
    if isinstance(spec, HttpServer):
        tenants = {
            tenant: given.model_copy(update=_found(given, folder)) for tenant, given in spec.tenants.items()
        }
        return spec.model_copy(update={**_found(spec, folder), "tenants": tenants})
    return spec.model_copy(update={"cwd": (folder / spec.cwd).absolute()}) if spec.cwd else spec


def _found(given: Credentials, folder: Path) -> dict[str, Any]:
    headers = {name: _in_folder(value, folder) for name, value in given.headers.items()}
    oauth: OAuth | None = given.oauth
    if oauth is not None:
        oauth = oauth.model_copy(update={"client_secret": _in_folder(oauth.client_secret, folder)})
    return {"headers": headers, "oauth": oauth}


def _in_folder(value: Any, folder: Path) -> Any:
    if isinstance(value, FromFile):
        return value.model_copy(update={"file": (folder / value.file).absolute()})
    return value
