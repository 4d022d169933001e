"""Where settings come from besides `PML_…` variables, and which source each value came from."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from pml.schemas.errors import ConfigurationError

PREFIX = "PML_"
CONFIG_VARIABLE = "PML_CONFIG"
SettingPath = tuple[str, ...]

ALIASES: dict[str, SettingPath] = {
    "KAFKA_BOOTSTRAP_SERVERS": ("kafka", "bootstrap_servers"),
    "CLICKHOUSE_URL": ("clickhouse", "url"),
}
SECRETS: tuple[tuple[str, str], ...] = (
    ("kafka", "sasl_password"),
    ("kafka", "ssl_key_password"),
    ("clickhouse", "url"),
)
PATHS = ("data_dir", "mcp_servers", "mcp_permissions")
GROUP_PATHS = {"kafka": ("ssl_cafile", "ssl_certfile", "ssl_keyfile"), "learning": ("models_folder",)}


class MappingSource(PydanticBaseSettingsSource):
    """A source whose values were read already."""

    def __init__(self, settings_cls: type[BaseSettings], values: dict[str, Any]) -> None:
        super().__init__(settings_cls)
        self.values = values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return self.values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self.values


def sources(
    settings_cls: type[BaseSettings], variables: PydanticBaseSettingsSource
) -> tuple[PydanticBaseSettingsSource, ...]:
    """All sources but arguments, the strongest first: `PML_…` variables, aliases, secret files, the file."""
    own = _without_secret_files(variables())
    found = (own, alias_values(os.environ), secret_file_values(os.environ), toml_values())
    return tuple(MappingSource(settings_cls, values) for values in found)


def files() -> list[Path]:
    """The `pml.toml` in force, if there is one.

    Raises:
        ConfigurationError: PML_CONFIG names a file that does not exist.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    path = Path(named or "pml.toml").absolute()
    if path.is_file():
        return [path]
    if named:
        raise ConfigurationError(f"{CONFIG_VARIABLE} names {path}, which is no file")
    return []


def toml_values() -> dict[str, Any]:
    """What `pml.toml` says, its relative paths made relative to it."""
    values: dict[str, Any] = {}
    for path in files():
        values = _read_toml(path)
        _anchor(values, PATHS, path.parent)
        for group, names in GROUP_PATHS.items():
            if isinstance(values.get(group), dict):
                _anchor(values[group], names, path.parent)
    return values


def alias_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """The variables that other tools use too."""
    values: dict[str, Any] = {}
    for variable, path in ALIASES.items():
        if environment.get(variable):
            _put(values, path, environment[variable])
    return values


def secret_file_values(environment: Mapping[str, str]) -> dict[str, Any]:
    """Secrets out of the files that `…_FILE` variables name.

    Raises:
        ConfigurationError: such a file cannot be read.
    """
    values: dict[str, Any] = {}
    for path in SECRETS:
        for variable in _file_variables(path):
            if environment.get(variable):
                _put(values, path, _read_secret(variable, environment[variable]))
                break
    return values


def origins(settings_cls: type[BaseSettings], environment: Mapping[str, str]) -> dict[SettingPath, str]:
    """For each value that is not a default, the variable or file that it came from."""
    found: dict[SettingPath, str] = {}
    for file in files():
        found |= {path: str(file) for path, _ in leaves(toml_values())}
    for secret in SECRETS:
        named = [variable for variable in _file_variables(secret) if environment.get(variable)]
        if named:
            found[secret] = named[0]
    found |= {path: variable for variable, path in ALIASES.items() if environment.get(variable)}
    upper = {name.upper(): name for name, value in environment.items() if value}
    for path in _all_paths(settings_cls):
        variable = PREFIX + "__".join(path).upper()
        if variable in upper:
            found[path] = upper[variable]
    return found


def leaves(values: Mapping[str, Any], above: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Every value of nested tables with its path."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _without_secret_files(values: dict[str, Any]) -> dict[str, Any]:
    """`PML_KAFKA__SASL_PASSWORD_FILE` is no setting of its own."""
    for group, name in SECRETS:
        if isinstance(values.get(group), dict):
            values[group].pop(name + "_file", None)
    return values


def _all_paths(settings_cls: type[BaseSettings]) -> Iterator[SettingPath]:
    for name, field in settings_cls.model_fields.items():
        nested = getattr(field.annotation, "model_fields", None)
        if nested is None:
            yield (name,)
        else:
            yield from ((name, inner) for inner in nested)


def _file_variables(path: SettingPath) -> list[str]:
    aliases = [alias for alias, aliased in ALIASES.items() if aliased == path]
    return [name + "_FILE" for name in (PREFIX + "__".join(path).upper(), *aliases)]


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not TOML: {error}") from None


def _read_secret(variable: str, name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ConfigurationError(f"{variable} names {name}, which cannot be read: {reason}") from None


def _anchor(values: dict[str, Any], names: tuple[str, ...], folder: Path) -> None:
    for name in names:
        if isinstance(values.get(name), str):
            values[name] = str(folder / Path(values[name]).expanduser())


def _put(values: dict[str, Any], path: SettingPath, value: str) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value
