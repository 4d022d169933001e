"""Tokens of callers: made once, shown once, kept as a hash (CONTRACT.md, `pml token`)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

import orjson
from pydantic import Field, ValidationError, model_validator

from pml.schemas.base import Model, Name
from pml.schemas.codec import explain
from pml.schemas.errors import ConfigurationError, Refused
from pml.schemas.principals import is_person
from pml.streams.local.stack import write_whole

Scope = Literal["runs:read", "runs:write", "approvals:write", "tools:admin", "dlq:admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FILE = "tokens.json"
TOKENS_MAX = 10_000
PREFIX = "pml"
# 256 bits of randomness cannot be guessed, so one fast hash of it is enough.
SECRET_BYTES = 32
ID_BYTES = 6
# (modified, size) of a file.
_Written = tuple[int, int]


class Token(Model):
    """What is kept of a token: whose it is, what it may, and a hash of its secret."""

    token_id: str
    tenant: Name
    principal: str = Field(min_length=1, max_length=200)
    scopes: tuple[Scope, ...]
    created_at: str
    secret_hash: str

    @model_validator(mode="after")
    def _a_person_approves(self) -> Token:
        if "approvals:write" in self.scopes and not is_person(self.principal):
            raise ValueError("approvals:write is for people: name the principal person:NAME")
        return self


class NoSuchToken(Refused):
    """No token has this id."""

    code = "NO_SUCH_TOKEN"


class TokenFile:
    """The tokens of an installation, in one file that only its owner reads."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / FILE
        self._read_at: _Written | None = None
        self._tokens: dict[str, Token] = {}

    def all(self) -> tuple[Token, ...]:
        """Every token, in the order in which they were made.

        Raises:
            ConfigurationError: the file is not what this release writes.
        """
        self._refresh()
        return tuple(self._tokens.values())

    def create(self, tenant: str, principal: str, scopes: Iterable[Scope], created_at: str) -> str:
        """Make a token; what is returned is told to nobody again.

        Raises:
            ConfigurationError: a name or scope is wrong, or there are too many.
        """
        token_id, secret = secrets.token_hex(ID_BYTES), secrets.token_urlsafe(SECRET_BYTES)
        kept = self.all()
        if len(kept) >= TOKENS_MAX:
            raise ConfigurationError(f"there are {len(kept)} tokens; revoke some")
        fields = {"tenant": tenant, "principal": principal, "scopes": tuple(scopes), "created_at": created_at}
        try:
            token = Token(token_id=token_id, secret_hash=hashed(secret), **fields)
        except ValidationError as error:
            raise ConfigurationError(f"the token is wrong: {explain(error)}") from None
        self._write((*kept, token))
        return f"{PREFIX}_{token_id}_{secret}"

    def revoke(self, token_id: str) -> Token:
        """Take a token away; whoever uses it is refused at once.

        Raises:
            NoSuchToken: there is none of that id.
        """
        kept = self.all()
        found = next((item for item in kept if item.token_id == token_id), None)
        if found is None:
            raise NoSuchToken(f"there is no token {token_id}; `pml token list` shows those there are")
        self._write([item for item in kept if item is not found])
        return found

    def verified(self, presented: str) -> Token | None:
        """The token that a caller presented, if it is one; the comparison takes the same time for all.

        Raises:
            ConfigurationError: the file is not what this release writes.
        """
        self._refresh()
        _, _, rest = presented.partition("_")
        token_id, _, secret = rest.partition("_")
        token = self._tokens.get(token_id)
        known = token.secret_hash if token else _HASH_OF_NOBODY
        same = hmac.compare_digest(known.encode(), hashed(secret).encode())
        return token if same and token is not None else None

    def _refresh(self) -> None:
        """Read the file again where it has changed."""
        try:
            written = self._written()
            if written is None or written != self._read_at:
                self._tokens = {} if written is None else self._read()
        except (OSError, orjson.JSONDecodeError, ValidationError, TypeError) as error:
            raise ConfigurationError(f"{self.path} cannot be read ({type(error).__name__})") from None
        self._read_at = written

    def _written(self) -> _Written | None:
        """What tells one state of the file from another; None where there is no file."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_size

    def _read(self) -> dict[str, Token]:
        found = [Token.model_validate(item) for item in orjson.loads(self.path.read_bytes())]
        return {item.token_id: item for item in found}

    def _write(self, tokens: Iterable[Token]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self.path, orjson.dumps([item.model_dump() for item in tokens]))
        self.path.chmod(0o600)
        self._read_at = None


def hashed(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


# Computed once: a token that is not known takes one hash as any other.
_HASH_OF_NOBODY = hashed("")
