"""Access tokens by OAuth client credentials: the SDK's provider gets them, calls run side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from pml.streams.bridge.credentials import Wallet
from pml.streams.bridge.http_exchange import REFUSED
from pml.streams.bridge.server_specs import OAuth
from pml.streams.bridge.unavailable import ServerUnavailable

DETAIL_MAX_CHARACTERS = 200


class TokenAuth(httpx2.Auth):
    """Adds the token; after a 401 (none yet, expired, revoked) gets a new one, once for all who wait.

    The provider's own flow holds a lock while a request is answered, so calls to a server that answers in
    one piece would run one after the other. Here it only sees the 401 and makes the token.
    """

    def __init__(self, url: str, given: OAuth, wallet: Wallet) -> None:
        self._url, self._given, self._wallet = url, given, wallet
        self._lock = asyncio.Lock()
        self._client: tuple[str, str] | None = None
        self._provider: ClientCredentialsOAuthProvider | None = None

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send with the token that there is; on 401 get another and send again: nothing was done before."""
        used = self._authorise(request)
        response = yield request
        if response.status_code != 401:
            return
        async with self._lock:
            if self._token() == used:
                renewal = self._renewal(request, response)
                try:
                    outgoing = await anext(renewal)
                    while outgoing is not request:
                        outgoing = await renewal.asend((yield outgoing))
                except (OAuthFlowError, ServerUnavailable, ValueError) as error:
                    request.extensions = {**request.extensions, REFUSED: self._told(error)}
                finally:
                    await renewal.aclose()
        self._authorise(request)
        yield request

    async def _renewal(
        self, request: httpx2.Request, refused: httpx2.Response
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The requests that make a token, then the request itself."""
        flow = self._current_provider().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while outgoing is not request:  # a token that can be refreshed is, first
                outgoing = await flow.asend((yield outgoing))
            outgoing = await flow.asend(refused)
            while outgoing is not request:
                outgoing = await flow.asend((yield outgoing))
        finally:
            await flow.aclose()
        token = self._token()
        if token:
            self._wallet.remember(token)
        yield request

    def _current_provider(self) -> ClientCredentialsOAuthProvider:
        """A provider for the client's id and secret as they are now: the secret may have been replaced."""
        client = self._wallet.client()
        if self._provider is None or client != self._client:
            self._client = client
            self._provider = ClientCredentialsOAuthProvider(
                self._url, _Memory(), *client, scope=self._given.scope, issuer=self._given.issuer
            )
        return self._provider

    def _authorise(self, request: httpx2.Request) -> str | None:
        token = self._token()
        if token:
            request.headers["authorization"] = f"Bearer {token}"
        return token

    def _token(self) -> str | None:
        tokens = self._provider.context.current_tokens if self._provider else None
        return tokens.access_token if tokens else None

    def _told(self, error: Exception) -> str:
        if isinstance(error, ServerUnavailable):
            return error.message
        first = str(error).partition("\n")[0][:DETAIL_MAX_CHARACTERS]
        said = self._wallet.without_secrets(first.encode()).decode(errors="replace")
        return (
            f"no access token from {self._given.issuer}: {said}; check `oauth` of this server in "
            "mcp-servers.yaml (issuer, client_id, client_secret, scope)"
        )


class _Memory:
    """Tokens are kept in memory only: a bridge that starts gets a new one."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Nothing to keep: the client is the configured one."""
