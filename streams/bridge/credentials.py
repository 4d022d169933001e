"""Credentials as they are at this moment: variables filled, files read again when they have changed."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from pydantic import SecretStr

from pml.schemas.sanitiser import sanitise
from pml.streams.bridge.secret_values import address_secrets, ways_to_write
from pml.streams.bridge.server_specs import Credentials, FromFile
from pml.streams.bridge.servers_file import filled
from pml.streams.bridge.unavailable import ServerUnavailable

FILE_MAX_BYTES = 64 * 1024
# Tokens that were renewed long ago are worth nothing.
REMEMBERED_MAX = 64
REMOVED = b"[credential removed]"


class Wallet:
    """What one server is shown for one tenant. Nothing of it is in an error, a log or a `repr`."""

    def __init__(
        self,
        server: str,
        given: Credentials,
        environment: Mapping[str, str] = os.environ,
        address: str = "",
    ) -> None:
        self._server, self._given, self._environment = server, given, environment
        self._in_address = _bytes_of(address_secrets(address))
        self._seen: deque[bytes] = deque(maxlen=REMEMBERED_MAX)

    def headers(self) -> dict[str, str]:
        """The headers of a request, read anew: a rotated file holds from the next request on.

        Raises:
            ServerUnavailable: a variable is not set, or a file cannot be read; it says which.
        """
        return {name: self._clear(f"headers.{name}", value) for name, value in self._given.headers.items()}

    def client(self) -> tuple[str, str]:
        """Id and secret of OAuth's client, read anew.

        Raises:
            ServerUnavailable: as for `headers`.
        """
        assert self._given.oauth is not None
        given = self._given.oauth
        client_id = self._fill("oauth.client_id", given.client_id)
        secret = self._clear("oauth.client_secret", given.client_secret)
        self.remember(b64encode(f"{quote(client_id, safe='')}:{quote(secret, safe='')}".encode()).decode())
        return client_id, secret

    def remember(self, secret: str) -> None:
        """This must not be told either: an access token, for instance."""
        for known in _bytes_of((secret, secret.rpartition(" ")[2])):
            if known not in self._seen:
                self._seen.append(known)

    def without_secrets(self, text: bytes) -> bytes:
        """The text with every credential that was used taken out: servers echo what they are sent."""
        for secret in (*self._in_address, *self._seen):
            text = text.replace(secret, REMOVED)
        return text

    def _clear(self, place: str, value: FromFile | SecretStr) -> str:
        text = self._read(place, value) if isinstance(value, FromFile) else self._fill(place, value)
        if not text.isprintable():
            raise self._missing(place, "holds characters that no header can have")
        name = place.rpartition(".")[2]
        if isinstance(value, FromFile) or sanitise({name: text}) != {name: text}:
            self.remember(text)  # a region or a language is no secret, and may be in any result
        return text

    def _fill(self, place: str, value: SecretStr) -> str:
        try:
            return filled(value.get_secret_value(), self._environment).strip()
        except KeyError as missing:
            raise self._missing(
                place, f"needs the environment variable {missing.args[0]}, which is not set where PML runs"
            ) from None

    def _read(self, place: str, value: FromFile) -> str:
        try:
            text = _content(value.file).decode().strip()
        except OSError as error:
            raise self._missing(
                place, f"needs {value.file}, which cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            raise self._missing(place, f"needs {value.file}, which is not UTF-8") from None
        if not text:
            raise self._missing(place, f"needs {value.file}, which is empty")
        return value.prefix + text

    def _missing(self, place: str, why: str) -> ServerUnavailable:
        return ServerUnavailable(f"the MCP server {self._server} has no credentials: `{place}` {why}")


def _bytes_of(secrets: Iterable[str]) -> list[bytes]:
    return [text.encode(errors="replace") for text in ways_to_write(secrets)]


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(FILE_MAX_BYTES)
