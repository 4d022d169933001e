"""Who calls, and what they may."""

from __future__ import annotations

from dataclasses import dataclass

from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.gateway.tokens import Scope, Token, TokenFile

BEARER = "bearer"


class NotAuthenticated(PMLError):
    """No token, or none that is known."""

    code = "NOT_AUTHENTICATED"


class NotAllowed(PMLError):
    """A caller without the right that this needs."""

    code = "NOT_ALLOWED"


@dataclass(frozen=True, slots=True)
class Caller:
    """A tenant's principal, and what it may do."""

    tenant: str
    principal: str
    scopes: frozenset[Scope]

    def require(self, scope: Scope) -> None:
        """
        Raises:
            NotAllowed: this caller has not got the scope.
        """
        if scope not in self.scopes:
            raise NotAllowed(f"this needs the scope {scope}; make a token with `pml token create`")


# Whoever reaches loopback may run workflows there, as by the command line; a person's word needs more.
ANONYMOUS = Caller(DEFAULT_TENANT, "agent:http", frozenset({"runs:read", "runs:write"}))


class Callers:
    """Finds out who calls.

    Args:
        tokens: those that are known.
        open_to_all: whether a caller without a token may come in; only ever on loopback.
    """

    def __init__(self, tokens: TokenFile, open_to_all: bool) -> None:
        self._tokens = tokens
        self._open_to_all = open_to_all

    def of(self, authorization: str | None) -> Caller:
        """
        Raises:
            NotAuthenticated: there is no token where one is needed, or it is not known.
            ConfigurationError: the file of tokens is broken.
        """
        if authorization is None:
            if self._open_to_all and not self._tokens.all():
                return ANONYMOUS
            raise NotAuthenticated("send a token, `Authorization: Bearer pml_…`: `pml token create`")
        token = self._verified(authorization)
        if token is None:
            raise NotAuthenticated("this token is not known, or was revoked")
        return Caller(token.tenant, token.principal, frozenset(token.scopes))

    def token_id(self, authorization: str | None) -> str | None:
        """The id of the token that a header proves, for whoever counts callers; it lets nobody in."""
        try:
            token = None if authorization is None else self._verified(authorization)
        except ConfigurationError:
            # Told where somebody wants to come in; until then nobody has proved anything.
            return None
        return None if token is None else token.token_id

    def _verified(self, authorization: str) -> Token | None:
        kind, _, presented = authorization.partition(" ")
        return self._tokens.verified(presented.strip()) if kind.lower() == BEARER else None
