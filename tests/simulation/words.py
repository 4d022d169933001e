"""What people were asked and said: nothing begins before, nor with a word that was for something else."""

from __future__ import annotations

from typing import Any

from pml.schemas.events import Event
from pml.schemas.stepping import STEP_TOOL
from tests.simulation.ledger import Ledger

BEGINS = {"layer.released", "task.started", "speculation.started", "speculation.planned"}


class Words:
    """Requests and their answers, as the log tells them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._requests: dict[str, Event] = {}
        self._held: dict[tuple[str, str, str], str] = {}
        self.granted: dict[str, Event] = {}
        self.shown: set[tuple[str, str, str, str]] = set()

    def look(self, event: Event) -> None:
        """One event that counts."""
        data: Any = event.data
        run = (event.tenant, event.session_id, event.run_id or "")
        if event.type == "approval.requested":
            self._requests[data.approval_id] = event
            if data.calls is not None:
                self._held[run] = data.approval_id
                self.shown |= {(*run, call.task_id) for call in data.calls}
        elif event.type.startswith("approval."):
            self._settled(event, run)
        elif event.type in BEGINS or (event.type == "internal.started" and data.tool == STEP_TOOL):
            waits = run in self._held
            self._ledger.check("nothing begins while a person is asked about all of it", not waits, event.id)
        if event.type == "task.started" and data.approval_id:
            self._begins(event)

    def _settled(self, event: Event, run: tuple[str, str, str]) -> None:
        data: Any = event.data
        known = data.approval_id in self._requests and data.approval_id not in self.granted
        self._ledger.check("a request is answered once", known, event.id)
        if self._held.get(run) == data.approval_id:
            del self._held[run]
        if event.type == "approval.granted":
            person = str(data.decided_by).startswith("person:")
            self._ledger.check("only a person approves", person, event.id)
            self.granted[data.approval_id] = event

    def _begins(self, event: Event) -> None:
        """A word is for what was shown: these arguments, or any where the person said so."""
        data: Any = event.data
        word: Any = self.granted.get(data.approval_id)
        asked: Any = self._requests[data.approval_id].data if word else None
        covered = word is not None and any(
            call.tool == data.tool
            and call.task_id in {data.task_id, ""}
            and call.definition == data.definition
            and (call.arguments_hash == data.arguments_hash
                 or (call.arguments_hash is None and word.data.computed is True))
            for call in asked.calls or (asked,)
        )  # fmt: skip
        self._ledger.check("a call begins with a word that is for it", covered, event.id)
