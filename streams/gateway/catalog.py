"""`/v1/tools`, `/v1/models` and `/v1/dead-letters`: what there is, and what went wrong."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.errors import UndecodableRecord
from pml.streams.bridge.permissions_file import read_permissions
from pml.streams.dead_letter_reader import read_letter, read_tenant_letters
from pml.streams.gateway import requests
from pml.streams.gateway.answers import json_response, page
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors
from pml.streams.learning.listing import model_rows
from pml.streams.tool_listing import known_servers, tool_rows


async def tools(request: Request, caller: Caller, doors: Doors) -> Response:
    """Every tool that a bridge listed: whether it may run, whether it may run early, and why not."""
    caller.require("runs:read")
    permissions = read_permissions(doors.settings.mcp_permissions)
    return page(tool_rows(await known_servers(doors.settings), permissions))


async def models(request: Request, caller: Caller, doors: Doors) -> Response:
    """Every model of what comes next, the newest first, and which one serves the caller's tenant."""
    caller.require("runs:read")
    return page(await model_rows(doors.settings, caller.tenant))


async def dead_letters(request: Request, caller: Caller, doors: Doors) -> Response:
    """The tenant's newest records that could not be handled, without content; older by cursor."""
    caller.require("dlq:admin")
    limit, before = requests.limit(request), _before(request)
    found = await read_tenant_letters(doors.settings, caller.tenant, limit, before)
    older = None if found.before is None else str(found.before)
    return page([letter.summary() for letter in found.letters], older)


def _before(request: Request) -> int | None:
    """
    Raises:
        UndecodableRecord: the cursor is none.
    """
    text = request.query_params.get("cursor")
    if text is None:
        return None
    found = requests.whole_number(text)
    if found is None:
        raise UndecodableRecord("the cursor is none that a list of dead letters gave; begin without one")
    return found


async def dead_letter(request: Request, caller: Caller, doors: Doors) -> Response:
    """One of them, whole; of another tenant's nobody hears that it is there."""
    caller.require("dlq:admin")
    offset = requests.whole_number(str(request.path_params["letter_id"]))
    if offset is None:
        raise UndecodableRecord("a dead letter's id is its offset")
    return json_response((await read_letter(doors.settings, offset, caller.tenant)).as_dict())
