"""Deciding chunks in slices of one batch, with the real core and no broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from pml.processors.workflow import Catalog, Input
from pml.schemas.calls import CallEnded, CallRecord, ToolResult
from pml.schemas.codec import decode_event
from pml.schemas.commands import Command, RunStart
from pml.schemas.errors import LogCorrupted
from pml.schemas.identifiers import session_key
from pml.schemas.workflow import Workflow
from pml.streams.log.append import BATCH_BYTES, Outgoing
from pml.streams.orchestrator import slices as slices_module
from pml.streams.orchestrator.payloads import PayloadCache
from pml.streams.orchestrator.slices import Decider, Slice
from pml.streams.orchestrator.states import States
from pml.streams.orchestrator.table import PartitionTable
from pml.streams.telemetry import ACCOUNT_BREACHES
from tests.processors.session_world import catalog
from tests.streams.orchestrator.world import workflow


class NoPayloads:
    """The inputs of these tests need none but their own."""

    async def get(self, addresses: Iterable[Any]) -> dict[Any, Any]:
        return {}


def decider() -> Decider:
    return Decider(States(0, PartitionTable({}, 0), {}), cast(PayloadCache, NoPayloads()))


def start(offset: int, session: str = "s", literal: str = "x") -> Input:
    definition = workflow(1)
    definition["tasks"][0]["arguments"]["path"] = literal
    data = RunStart(workflow=Workflow.model_validate(definition))
    command = Command(
        type="run.start", command_id=f"c{offset}", session_id=session, run_id=f"r{offset}", data=data
    )
    return Input("pml.commands", 0, offset, 1_700_000_000_000, "local", session, command)


async def slice_of(inputs: list[Input], handled: dict[str, int] | None = None, base: int = 100) -> Slice:
    known: Catalog = catalog()
    return await decider().slice(inputs, base, handled or {}, known)


async def test_events_of_all_inputs_lie_one_after_the_other_from_the_expected_offset() -> None:
    part = await slice_of([start(0), start(1), start(2, session="t")])
    events = [decode_event(record.value) for record in part.records]
    assert [event.offset for event in events] == list(range(100, 100 + len(events)))
    assert part.end == 100 + len(events)
    assert (part.inputs, part.handled, part.causes) == (3, {"pml.commands": 2}, {"pml.commands": 2})
    assert part.sessions.keys() == {b"local/s", b"local/t"}
    assert tuple(part.sessions[session_key("local", "s")].runs) == ("r0", "r1")
    assert len(part.messages) == 3


async def test_what_was_handled_is_passed_over_and_what_leads_to_nothing_has_no_cause() -> None:
    nobody = CallEnded(call_id="x", tenant="local", session_id="s", status="ok", result=ToolResult())
    outcome = Input("pml.tool-outcomes", 0, 9, 1_700_000_000_000, "local", "s", nobody)
    part = await slice_of([start(3), start(4), outcome], handled={"pml.commands": 3})
    assert part.inputs == 3
    assert part.handled == {"pml.commands": 4, "pml.tool-outcomes": 9}
    assert part.causes == {"pml.commands": 4}
    assert {event.command_id for event in part.events} == {"c4"}


async def test_a_slice_is_cut_between_inputs_at_a_mebibyte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices_module, "BATCH_BYTES", 12_000)
    inputs = [start(number) for number in range(9)]
    at, parts = 0, 0
    while at < len(inputs):
        part = await slice_of(inputs[at:])
        assert part.size <= 12_000
        assert part.handled["pml.commands"] == at + part.inputs - 1
        at += part.inputs
        parts += 1
    assert parts > 1
    assert at == 9
    assert BATCH_BYTES == 1024 * 1024


async def test_what_fits_no_batch_is_refused_and_the_next_input_is_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices_module, "LOG_BYTES_MAX", 9_000)
    large = start(0, literal="long words " * 700)
    part = await slice_of([large, start(1)])
    rejected = [event for event in part.events if event.type == "command.rejected"]
    assert [(event.command_id, event.data.model_dump()["error"]["code"]) for event in rejected] == [
        ("c0", "EVENTS_TOO_LARGE")
    ]
    assert any(event.command_id == "c1" and event.type == "run.started" for event in part.events)
    assert part.failures == []


async def test_what_cannot_even_be_refused_is_to_be_buried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices_module, "LOG_BYTES_MAX", 4_200)
    part = await slice_of([start(0)])
    assert (part.records, part.inputs) == ([], 1)
    assert [(source.offset, error.code) for source, error in part.failures] == [(0, "EVENTS_TOO_LARGE")]


async def test_a_defect_of_the_core_costs_its_input_and_not_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = slices_module.decide

    def defective(session: Any, source: Input, *rest: Any) -> Any:
        if source.offset == 1:
            raise KeyError("secret value")
        return real(session, source, *rest)

    monkeypatch.setattr(slices_module, "decide", defective)
    part = await slice_of([start(0), start(1), start(2)])
    ((source, error),) = part.failures
    assert (source.offset, error.code) == (1, "DECISION_FAILED")
    assert "secret value" not in error.message
    assert {event.command_id for event in part.events} == {"c0", "c2"}


async def test_a_log_that_does_not_follow_stops_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    def corrupted(*_: Any) -> Any:
        raise LogCorrupted("a gap")

    monkeypatch.setattr(slices_module, "decide", corrupted)
    with pytest.raises(LogCorrupted):
        await slice_of([start(0)])


async def test_the_same_inputs_give_the_same_bytes() -> None:
    inputs = [start(0), start(1, session="t"), replace(start(2), time_ms=1_700_000_000_500)]
    first, second = await slice_of(inputs), await slice_of(inputs)
    assert [record.value for record in first.records] == [record.value for record in second.records]


async def test_accounts_that_do_not_add_up_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    before = ACCOUNT_BREACHES._value.get()
    await decider().slice([start(0)], 0, {}, catalog())
    assert ACCOUNT_BREACHES._value.get() == before
    monkeypatch.setattr(slices_module, "balanced", lambda session: False)
    await decider().slice([start(0)], 0, {}, catalog())
    assert ACCOUNT_BREACHES._value.get() == before + 1


async def test_nothing_is_written_whose_calls_could_not_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(message: CallRecord) -> Outgoing:
        raise TypeError("Recursion limit reached")

    monkeypatch.setattr(slices_module, "outgoing", refuse)
    part = await slice_of([start(0)])
    assert (part.records, part.messages, part.inputs) == ([], [], 1)
    ((_, failure),) = part.failures
    assert failure.code == "DECISION_FAILED"
