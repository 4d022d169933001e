"""A call that comes again, after a person was asked: what they said is sent, and their run is followed on."""

from __future__ import annotations

from pml.schemas.errors import Refused
from pml.streams.mcp_server.door import Call
from pml.streams.mcp_server.following import follow, send_word
from pml.streams.mcp_server.lookups import GetRunAsked, get_run
from pml.streams.mcp_server.person import Resumed
from pml.streams.mcp_server.run_answer import RunAnswer


async def resume(call: Call, again: Resumed, wait_s: float) -> RunAnswer:
    """The run that a person was asked about; nothing begins a second time.

    Raises:
        BrokerUnavailable, StoreUnavailable: where it is looked up does not answer.
        Busy: as many requests wait as may.
        InputNeeded: they are to be asked about something else of it.
    """
    call.door.remembered.keep(call.caller.tenant, again.run_id, again.session_id)
    if again.word is not None and call.person is not None:
        try:
            submission = await send_word(call, again.run_id, again.session_id, again.word)
            return await follow(call, submission, wait_s)
        except Refused:
            pass  # somebody else decided, or the time was over: how it stands now says it
    return await get_run(call, GetRunAsked(run_id=again.run_id, session=again.session_id))
