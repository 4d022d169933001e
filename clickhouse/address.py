"""Where ClickHouse is: `http://user:password@host:port/database`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from pml.schemas.errors import ConfigurationError

DEFAULT_DATABASE = "pml"
_PORTS = {"http": 8123, "https": 8443}
_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Address:
    """Host, port, user and database of a ClickHouse; `str()` has no password in it."""

    scheme: str
    host: str
    port: int
    user: str
    password: str = field(repr=False)
    database: str = DEFAULT_DATABASE

    @classmethod
    def parse(cls, url: str, database: str | None = None) -> Address:
        """The address a URL names; `database` goes before the one in it.

        Raises:
            ConfigurationError: no such URL. Its message does not show the password.
        """
        parts = urlsplit(url)
        name = database or parts.path.strip("/") or DEFAULT_DATABASE
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ConfigurationError(
                "The ClickHouse URL must look like http://user:password@host:8123/database."
            )
        if not _DATABASE.fullmatch(name):
            raise ConfigurationError(
                "A ClickHouse database is named with letters, digits and _, at most 64.", name=name
            )
        return cls(
            scheme=parts.scheme,
            host=parts.hostname,
            port=_port(parts.port, parts.scheme),
            user=unquote(parts.username or "default"),
            password=unquote(parts.password or ""),
            database=name,
        )

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}/{self.database}"


def _port(port: int | None, scheme: str) -> int:
    return port if port is not None else _PORTS[scheme]
