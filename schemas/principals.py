"""Who a command comes from: `person:NAME` is a person; agents, programs and services are not."""

from __future__ import annotations

PERSON = "person:"
"""What the principal of a person begins with. Only doors that a person stands at write it: the command line,
and tokens with the right `approvals:write`. An agent is `agent:NAME`; a program that says nothing `local`."""


def is_person(principal: str) -> bool:
    """Whether a principal may approve calls and settle what nobody knows (DESIGN §4, Approvals)."""
    return principal.startswith(PERSON) and len(principal) > len(PERSON)
