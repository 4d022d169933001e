"""A call as a run of one task: what is sent, and what its events say. Pure."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from pml.schemas.events import (
    ApprovalRequested,
    ApprovalSettled,
    CommandRejected,
    Event,
    EventData,
    RunEnded,
    RunStarted,
    TaskCompleted,
    TaskFailed,
    TaskUnknown,
)

TASK = "call"


def workflow_of(tool: str, arguments: Mapping[str, Any], early: bool = True) -> dict[str, Any]:
    """One task. Arguments are literals, also where one looks like a reference.

    Its type is the tool, so that statistics group by it; without a name it is no capability to learn. Unless
    it may be `early`, it is not served by what ran before, and nothing runs early after it.
    """
    literals = {name: {"type": "literal", "value": value} for name, value in arguments.items()}
    return {
        "workflow_type": tool[:200],
        **({} if early else {"options": {"speculation": "off"}}),
        "tasks": [{"id": TASK, "tool": tool, "arguments": literals}],
    }


class OneCall:
    """What is known of a call: `ended` has the event that it ended with, `asked` what a person is asked."""

    def __init__(self, run_id: str, command_id: str) -> None:
        self.run_id, self.command_id = run_id, command_id
        self.ended: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self.asked: asyncio.Future[ApprovalRequested] = asyncio.get_running_loop().create_future()
        self.taken = False
        self.approval: ApprovalRequested | None = None

    def see(self, event: Event) -> None:
        """One more event of the session."""
        data = event.data
        if event.command_id == self.command_id and isinstance(data, CommandRejected):
            self._end(event)
        if event.run_id != self.run_id:
            return
        if isinstance(data, RunStarted):
            self.taken = True
        elif isinstance(data, ApprovalRequested):
            self._ask(data)
        elif isinstance(data, ApprovalSettled):
            self.approval = None
        elif is_end(data):
            self._end(event)

    def _ask(self, data: ApprovalRequested) -> None:
        self.approval = data
        if not self.asked.done():
            self.asked.set_result(data)

    def _end(self, event: Event) -> None:
        if not self.ended.done():
            self.ended.set_result(event)


def is_end(data: EventData) -> bool:
    """Whether nothing more comes of a call; an attempt that is followed by another one is none."""
    return isinstance(data, (TaskCompleted, TaskUnknown, RunEnded)) or (
        isinstance(data, TaskFailed) and data.final
    )


def early(event: Event) -> bool:
    """Whether a call was served by what had been run before it was asked for."""
    return isinstance(event.data, TaskCompleted) and event.data.served_by != "call"
