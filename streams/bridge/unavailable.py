"""A server that cannot be called now."""

from __future__ import annotations

from pml.schemas.errors import PMLError


class ServerUnavailable(PMLError):
    """The server could not be started or reached, or ended."""

    code = "SERVER_UNAVAILABLE"
    retryable = True
