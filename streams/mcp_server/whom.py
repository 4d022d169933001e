"""Who sits at a client and may approve: over stdio whoever runs this process, over HTTP whom a token names.

An agent's token never has the right. Where four eyes are wanted nobody at the client that submits is asked.
"""

from __future__ import annotations

from pml.schemas.principals import is_person
from pml.streams.gateway.callers import Caller
from pml.streams.local_person import local_person
from pml.streams.settings import Settings


def person_over_stdio(settings: Settings) -> str | None:
    """The user of this machine, as the command line names them."""
    asks = settings.mcp.elicitation != "off" and not settings.approvals.four_eyes
    return local_person() if asks else None


def person_over_http(settings: Settings, caller: Caller) -> str | None:
    """The person of the caller's token, where it has the right and the operator wants it."""
    asks = settings.mcp.elicitation == "on" and not settings.approvals.four_eyes
    able = "approvals:write" in caller.scopes and is_person(caller.principal)
    return caller.principal if asks and able else None
