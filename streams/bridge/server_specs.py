"""The two kinds of entries of `mcp-servers.yaml`: a program that is started, and a server at a URL."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    SecretStr,
    StringConstraints,
    Tag,
    field_validator,
    model_validator,
)

from pml.schemas.base import Model
from pml.schemas.identifiers import is_name
from pml.streams.bridge.secret_values import SecretValues


def _text(value: Any) -> Any:
    """YAML reads `8080` as a number where a command line and an environment hold text."""
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Secret = Annotated[SecretStr, BeforeValidator(_text)]
ServerName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")]
Isolation = Literal["shared", "tenant", "session"]
# The transport and the protocol write these themselves.
RESERVED_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "connection",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
    ]
)
_HTTP_TYPES = {"http", "streamable-http", "streamableHttp", "streamable_http"}


class _Server(Model):
    """What both kinds have."""

    trusted: bool = False
    isolation: Isolation = "shared"
    concurrency: Annotated[int | None, Field(ge=1, le=1_000)] = None
    disabled: bool = False


class StdioServer(_Server):
    """One server over stdio. Arguments and environment may hold secrets: they are never shown."""

    command: Annotated[str, Field(min_length=1)]
    args: tuple[Secret, ...] = ()
    env: dict[str, Secret] = Field(default={})
    cwd: Path | None = None
    type: Literal["stdio"] = "stdio"

    def command_line(self) -> list[str]:
        """The command and its arguments, in clear."""
        return [self.command, *(argument.get_secret_value() for argument in self.args)]

    def environment(self) -> dict[str, str]:
        """The variables that this server gets besides the inherited ones, in clear."""
        return {name: value.get_secret_value() for name, value in self.env.items()}

    def secrets(self) -> SecretValues:
        """What it must not repeat in an error, in its log or in what it says of its tools."""
        return SecretValues.of(self.environment(), self.command_line()[1:])


class FromFile(Model):
    """A secret that rests in a file of its own and may be replaced there at any time."""

    file: Path
    prefix: str = ""


class OAuth(Model):
    """Client credentials (RFC 6749, section 4.4). The issuer says who may be given them."""

    issuer: str
    client_id: Secret
    client_secret: FromFile | Secret
    scope: str | None = None


class Credentials(Model):
    """What a server is shown. Text may hold `${NAME}`, which is filled when it is used."""

    headers: dict[HeaderName, FromFile | Secret] = Field(default={})
    oauth: OAuth | None = None

    @field_validator("headers")
    @classmethod
    def _not_the_protocols(cls, headers: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(name for name in headers if name.lower() in RESERVED_HEADERS)
        if taken:
            raise ValueError(f"{', '.join(taken)} is written by the transport itself; leave it out")
        return headers

    @model_validator(mode="after")
    def _one_authorisation(self) -> Credentials:
        if self.oauth and "authorization" in (name.lower() for name in self.headers):
            raise ValueError("`oauth` writes the header Authorization; give one of the two")
        return self


class HttpServer(_Server, Credentials):
    """One server over streamable HTTP. Its URL may hold secrets in its query: it is never shown whole."""

    url: Secret
    tenants: dict[str, Credentials] = Field(default={})
    insecure_http: bool = False
    type: Literal["http"] = "http"

    @model_validator(mode="before")
    @classmethod
    def _isolated_with_tenants(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("tenants"):
            return {"isolation": "tenant"} | value
        return value

    @field_validator("type", mode="before")
    @classmethod
    def _same_by_other_names(cls, value: Any) -> Any:
        if value == "sse":
            raise ValueError(
                "the transport `sse` is out of use in MCP; give the server's streamable HTTP url"
            )
        return "http" if value in _HTTP_TYPES else value

    @field_validator("tenants")
    @classmethod
    def _tenants_have_names(cls, tenants: dict[str, Credentials]) -> dict[str, Credentials]:
        if not all(is_name(tenant) for tenant in tenants):
            raise ValueError("a tenant's name is letters, digits and ._:@+-")
        return tenants

    @model_validator(mode="after")
    def _safe(self) -> HttpServer:
        if self.tenants and self.isolation == "shared":
            raise ValueError(
                "`isolation: shared` would use one tenant's credentials for another; with `tenants` it is "
                "`tenant` or `session`"
            )
        parts = urlsplit(self.address())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("`url` must begin with https:// (or http:// on this machine) and name a host")
        if "@" in parts.netloc:
            raise ValueError("`url` holds a user or password; give them in `headers` or `oauth`")
        if not self.insecure_http and not is_private(self.address()):
            raise ValueError(
                "plain http would show credentials to the network: use https, or `insecure_http: true`"
            )
        for given in (self, *self.tenants.values()):
            if given.oauth and not self.insecure_http and not is_private(given.oauth.issuer):
                raise ValueError("`oauth.issuer` must be https (or http on this machine)")
        return self

    def address(self) -> str:
        """The URL, in clear."""
        return self.url.get_secret_value()

    def shown(self) -> str:
        """Scheme, host and port: what may be told."""
        parts = urlsplit(self.address())
        return f"{parts.scheme}://{parts.netloc}"

    def credentials(self, tenant: str) -> Credentials | None:
        """What is shown for a tenant; None where the server has tenants and this is none of them.

        The bridge itself (no tenant) lists the tools with the server's own credentials, where it has
        none with those of the first tenant.
        """
        if not self.tenants or (not tenant and (self.headers or self.oauth)):
            return self
        return self.tenants.get(tenant) if tenant else next(iter(self.tenants.values()))


ServerSpec = StdioServer | HttpServer


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "http" if "url" in value else "stdio"
    return "http" if isinstance(value, HttpServer) else "stdio"


AnyServer = Annotated[
    Annotated[StdioServer, Tag("stdio")] | Annotated[HttpServer, Tag("http")], Discriminator(_kind)
]


def is_private(url: str) -> bool:
    """Whether nobody between reads what is sent there: https, or http that does not leave this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or ""))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
