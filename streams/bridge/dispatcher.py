"""From records to answers: who waits, who runs, who joins, who is cancelled (DESIGN §2, rule 6)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from pml.schemas.calls import CallCancel, CallEnded, CallError, CallRun
from pml.schemas.identifiers import INTERNAL_SERVER, split_tool
from pml.streams.bridge.admission import Admission, Ticket
from pml.streams.bridge.call import Call, cancelled, ended, overdue, refused
from pml.streams.bridge.gate import Gate
from pml.streams.bridge.outcomes import Outcomes
from pml.streams.bridge.partition import Partition
from pml.streams.bridge.runner import Runner
from pml.streams.bridge.server import Server
from pml.streams.clock import Clock, now_ms
from pml.streams.crash_points import crash_point
from pml.streams.telemetry import TOOL_CALL_DURATION, TOOL_CALLS


class Dispatcher:
    """Every call in flight, of all partitions. `tasks` is what the whole bridge runs in and fails with."""

    def __init__(
        self,
        servers: Mapping[str, Server],
        admission: Admission,
        gate: Gate,
        *,
        runner: Runner,
        outcomes: Outcomes,
        tasks: asyncio.TaskGroup,
        now_ms: Clock = now_ms,
    ) -> None:
        self._servers, self._admission, self._gate = servers, admission, gate
        self._runner, self._outcomes, self._tasks = runner, outcomes, tasks
        self._now_ms = now_ms
        self._waiting: dict[Ticket, tuple[Partition, Call]] = {}
        self._running: dict[Ticket, tuple[Partition, Call]] = {}
        self.on_ended: Callable[[Partition], None] = lambda _: None
        self.answered = 0

    @property
    def waiting(self) -> int:
        """Calls without a slot."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Calls with a slot."""
        return len(self._running)

    def run_call(self, partition: Partition, call: Call) -> None:
        """A `call.run`: attach to the same call where it is known, else refuse or queue it."""
        known = partition.calls.get(call.run.call_id)
        if known is not None and known.let_go and not known.answering:
            # The partition is ours again before that call has ended, and nobody will answer it.
            partition.drop(known)
            known = None
        if known is not None:
            partition.attach(known, call.offset)
            if not call.run.speculative:
                self._admission.promote(known.ticket)
                self._pump()
        elif partition.settled(call.run.call_id):
            partition.pass_over(call.offset)
        else:
            partition.take(call)
            self._begin(partition, call)

    def cancel_call(self, partition: Partition, cancel: CallCancel, offset: int) -> None:
        """A `call.cancel`: ends a call that waits or is safe; an unsafe one that started goes on."""
        partition.pass_over(offset)
        known = partition.calls.get(cancel.call_id)
        if known is not None:
            self._cancel(known, "CANCELLED")

    def answer_overdue(self) -> None:
        """Calls whose deadline passed while they waited were not started."""
        for ticket, (partition, call) in list(self._waiting.items()):
            if call.is_overdue(self._now_ms()):
                self._withdraw(ticket)
                self._answer_soon(partition, call, overdue(call.run))

    def stop_speculating(self) -> None:
        """Refuse the speculative calls that wait and cancel those that run, where they may not any more.

        Who was joined goes on.
        """
        for ticket, (partition, call) in list(self._waiting.items()):
            if ticket.speculative and not self._gate.lets(call.run):
                self._withdraw(ticket)
                self._answer_soon(partition, call, _not_allowed(call.run, "switched_off"))
        for ticket, (_, call) in list(self._running.items()):
            if ticket.speculative and not self._gate.lets(call.run):
                self._cancel(call, "SWITCHED_OFF")

    def let_go(self, partition: Partition) -> None:
        """The partition is not ours any more: only unsafe calls that started go on, and are answered."""
        for call in list(partition.calls.values()):
            if call.ticket in self._waiting:
                self._withdraw(call.ticket)
                partition.drop(call)
            elif not (call.unsafe and call.started):
                call.let_go = True
                call.interrupt()

    def _begin(self, partition: Partition, call: Call) -> None:
        refusal = self._refusal(call)
        if refusal is not None:
            self._answer_soon(partition, call, refusal)
            return
        self._waiting[call.ticket] = (partition, call)
        self._admission.wait(call.ticket)
        self._pump()

    def _refusal(self, call: Call) -> CallEnded | None:
        run = call.run
        if call.ticket.server not in (*self._servers, INTERNAL_SERVER):
            message = f"no MCP server {call.ticket.server!r} is configured; add it to mcp-servers.yaml"
            return ended(
                run, "error", error=CallError(code="UNKNOWN_SERVER", type="NOT_FOUND", message=message)
            )
        if run.speculative:
            reason = self._gate.refusal(run)
            if reason is not None:
                return _not_allowed(run, reason)
        return overdue(run) if call.is_overdue(self._now_ms()) else None

    def _pump(self) -> None:
        """Start what fits; where real calls still wait, let speculative ones give way."""
        for ticket in self._admission.admit():
            self._running[ticket] = self._waiting.pop(ticket)
            self._tasks.create_task(self._conduct(*self._running[ticket]))
        for ticket in self._admission.give_way():
            self._cancel(self._running[ticket][1], "GAVE_WAY")

    async def _conduct(self, partition: Partition, call: Call) -> None:
        """Run, answer, free the slot: results of calls that cannot be answered yet stay within the limits."""
        call.execution = self._tasks.create_task(self._runner.run(call, partition.claims))
        if call.interrupted:
            call.interrupt()
        await asyncio.wait({call.execution})
        if not call.execution.cancelled():
            await self._answer(partition, call, call.execution.result())
        elif call.let_go or call.cancel_code is None:
            partition.drop(call)
        else:
            await self._answer(partition, call, cancelled(call.run, call.cancel_code))
        del self._running[call.ticket]
        self._admission.leave(call.ticket)
        self._pump()

    def _cancel(self, call: Call, code: str) -> None:
        waiting = self._waiting.get(call.ticket)
        if waiting is not None:
            self._withdraw(call.ticket)
            self._answer_soon(waiting[0], call, cancelled(call.run, code))
        elif not (call.unsafe and call.started):
            call.cancel_code = call.cancel_code or code
            call.interrupt()

    def _withdraw(self, ticket: Ticket) -> None:
        del self._waiting[ticket]
        self._admission.leave(ticket)

    def _answer_soon(self, partition: Partition, call: Call, outcome: CallEnded) -> None:
        call.answering = True
        self._tasks.create_task(self._answer(partition, call, outcome))

    async def _answer(self, partition: Partition, call: Call, outcome: CallEnded | None) -> None:
        """Send the answer, then count the call as ended; None: it is not this runner's to run."""
        call.answering = True
        if outcome is None:
            partition.leave(call)
        else:
            await self._outcomes.send(outcome)
            crash_point("bridge.after_outcome")
            self._count(call, outcome)
            partition.end(call)
        self.on_ended(partition)

    def _count(self, call: Call, outcome: CallEnded) -> None:
        self.answered += 1
        server, tool = split_tool(call.run.tool)
        if server == INTERNAL_SERVER:
            return
        if server not in self._servers:
            server, tool = "unknown", "unknown"
        kind = outcome.error.type if outcome.error else ""
        speculative = str(call.ticket.speculative).lower()
        TOOL_CALLS.labels(server, tool, outcome.status, kind, speculative).inc()
        if outcome.started_at is not None:
            TOOL_CALL_DURATION.labels(server, tool).observe(outcome.duration_ms / 1000)


def _not_allowed(run: CallRun, reason: str) -> CallEnded:
    return refused(run, reason.upper(), f"{run.tool} is not run before it is asked for: {reason}")
