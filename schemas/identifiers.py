"""Names that are derived, never random: keys, event ids, call ids (CONTRACT.md, Identifiers)."""

from __future__ import annotations

import hashlib
import re

DEFAULT_TENANT = "local"
INTERNAL_SERVER = "pml"
"""The server that the bridge has built in; no configured one may have its name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}")


def is_name(text: str) -> bool:
    """Whether a tenant, session, run or command id is one that keys and paths can carry."""
    return _NAME.fullmatch(text) is not None


def session_key(tenant: str, session_id: str) -> bytes:
    """The Kafka key of every record of a session, in all session topics."""
    return f"{tenant}/{session_id}".encode()


def split_session_key(key: bytes | None) -> tuple[str, str] | None:
    """Tenant and session of a record key; None where the key is not one of ours."""
    try:
        tenant, separator, session_id = (key or b"").decode().partition("/")
    except UnicodeDecodeError:
        return None
    return (tenant, session_id) if separator and is_name(tenant) and is_name(session_id) else None


def event_id(tenant: str, session_id: str, epoch: int, seq: int) -> str:
    """The id of the event `seq` of a session's life that began at log offset `epoch`."""
    return f"{tenant}/{session_id}:{epoch}:{seq}"


def call_id(started_event_id: str) -> str:
    """The id of the call that a `task.started` or `speculation.started` event begins."""
    return "call_" + hashlib.blake2b(started_event_id.encode(), digest_size=12).hexdigest()


def approval_id(requested_event_id: str) -> str:
    """The id of the approval that an `approval.requested` event asks for."""
    return "apr_" + hashlib.blake2b(requested_event_id.encode(), digest_size=12).hexdigest()


def derived_run_id(tenant: str, session_id: str, command_id: str) -> str:
    """The run of a command that names none: the same command asks for the same run."""
    asked = f"{tenant}/{session_id}:{command_id}"
    return "run_" + hashlib.blake2b(asked.encode(), digest_size=16).hexdigest()


def split_tool(tool: str) -> tuple[str, str]:
    """Server and name of a tool id `server:name`; the name is empty where there is no colon."""
    server, _, name = tool.partition(":")
    return server, name
