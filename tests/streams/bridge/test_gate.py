"""What the bridge refuses to run early: by switches for all and for some, in silence, by the guard."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pml.schemas.calls import CallRun
from pml.schemas.catalog import SpeculationMode
from pml.schemas.permissions import PermissionFile
from pml.streams.bridge import gate as gate_module
from pml.streams.bridge.gate import Gate

READ = {"scope": "readonly", "approval": "auto"}
PERMISSIONS = PermissionFile.model_validate({"tools": {"files:read": READ, "git:log": READ}})


def call(tool: str = "files:read", tenant: str = "local", **fields: Any) -> CallRun:
    return CallRun(
        call_id="call_1",
        tenant=tenant,
        session_id="s1",
        run_id="run_1",
        task_id="n1",
        tool=tool,
        arguments={},
        speculative=True,
        timeout_ms=1_000,
        deadline_at="2026-11-22T00:00:00.000000Z",
        **{"effect": "read", **fields},
    )


def heard(mode: SpeculationMode = "on", **switches: SpeculationMode) -> Gate:
    """A gate in contact with the broker."""
    gate = Gate(mode, {})
    gate.permissions = PERMISSIONS
    gate.switches = dict(switches)
    gate.heard()
    return gate


async def test_what_the_guard_allows_may_run() -> None:
    assert heard().refusal(call()) is None
    assert heard().refusal(call("files:write")) == "tool_not_approved"
    assert heard().refusal(call(effect="write")) == "effect"


@pytest.mark.parametrize("mode", ["off", "shadow"])
async def test_nothing_runs_early_where_everything_is_off_or_planned_only(mode: SpeculationMode) -> None:
    for gate in (heard(mode), heard(speculation=mode)):
        assert not gate.open
        assert gate.refusal(call()) == "switched_off"


@pytest.mark.parametrize("mode", ["off", "shadow"])
@pytest.mark.parametrize(
    ("scope", "stopped"),
    [
        ("tool=files:read", {"files:read"}),
        ("server=files", {"files:read"}),
        ("tenant=local", {"files:read", "git:log"}),
        ("tenant=other", set()),
        ("tool=git:status", set()),
    ],
)
async def test_a_switch_stops_what_it_is_for(mode: SpeculationMode, scope: str, stopped: set[str]) -> None:
    gate = heard()
    gate.switches[scope] = mode
    assert gate.open
    for tool in ("files:read", "git:log"):
        assert gate.lets(call(tool)) is (tool not in stopped)


async def test_the_strictest_switch_holds() -> None:
    gate = heard("on", speculation="on")
    gate.switches |= {"server=files": "on", "tool=files:read": "off"}
    assert not gate.lets(call())
    gate.switches["tool=files:read"] = "on"
    assert gate.lets(call())


async def test_a_broker_that_is_not_heard_of_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = heard()
    now_s = asyncio.get_running_loop().time()
    late_s = now_s + gate_module.CONTACT_MAX_S + 1
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: late_s)
    assert gate.refusal(call()) == "switched_off"
