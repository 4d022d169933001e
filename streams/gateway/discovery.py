"""`/v1/discover` and `/v1/capabilities`: what fits an intent, and what was learned."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from pml.schemas.codec import explain
from pml.schemas.discovery import DiscoverRequest
from pml.schemas.errors import UndecodableRecord
from pml.streams.capability_listing import read_capabilities
from pml.streams.gateway import requests
from pml.streams.gateway.answers import json_response, page
from pml.streams.gateway.callers import Caller
from pml.streams.gateway.doors import Doors


async def discover(request: Request, caller: Caller, doors: Doors) -> Response:
    """The tools, and the tenant's learned capabilities, that fit an intent, the best first."""
    caller.require("runs:read")
    try:
        asked = DiscoverRequest.model_validate(await requests.json_body(request))
    except ValidationError as error:
        raise UndecodableRecord(f"the body is wrong: {explain(error)}") from None
    found = await doors.finder.discover(caller.tenant, asked)
    return json_response(found.model_dump(mode="json", exclude={"items": {"__all__": {"shortened"}}}))


async def capabilities(request: Request, caller: Caller, doors: Doors) -> Response:
    """Every capability of the tenant, drafts too: its parameters, calls, and what it may do."""
    caller.require("runs:read")
    return page([item.as_dict() for item in await read_capabilities(doors.settings, caller.tenant)])
