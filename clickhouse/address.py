"""Where ClickHouse is: `http://user:password@host:port/database`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

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
        parts = _parts(url)
        name = database or parts.path.strip("/") or DEFAULT_DATABASE
        if not _DATABASE.fullmatch(name):
            raise ConfigurationError(
                "A ClickHouse database is named with letters, digits and _, at most 64.", name=name
            )
        return cls(
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or _PORTS[parts.scheme],
            user=unquote(parts.username or "default"),
            password=unquote(parts.password or ""),
            database=name,
        )

    @property
    def base_url(self) -> str:
        """Scheme, host and port alone."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.base_url}/{self.database}"


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    except ValueError:  # a port that is no number, an IPv6 address without its bracket
        pass
    raise ConfigurationError("The ClickHouse URL must look like http://user:password@host:8123/database.")
