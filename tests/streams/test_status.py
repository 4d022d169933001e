"""`pml status` on parts that said nothing: they do not run, are only being started, or run elsewhere."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupCoordinatorNotAvailableError

from pml.streams import status
from pml.streams.connection import client_options
from pml.streams.health import Health
from pml.streams.local.processes import ProcessId
from pml.streams.local.stack import WORKERS, Part, Stack, write_stack
from pml.streams.settings import Settings
from pml.streams.status import Status, read_members, read_status, role_inputs
from pml.streams.topics import ensure_topics

pytestmark = pytest.mark.integration
ROLES = {role for roles in WORKERS for role in roles}
STARTED_AT = "2026-01-01T00:00:00.000000Z"


@pytest.fixture
async def settings(
    kafka: str, clickhouse_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """Broker and store are there, with topics; nothing was started in the data folder."""
    # Topics that were just made have no leaders yet, and a machine may be busy.
    monkeypatch.setattr(status, "BROKER_TIMEOUT_S", 60.0)
    settings = Settings.load(
        data_dir=tmp_path,
        kafka={"bootstrap_servers": kafka, "topic_prefix": f"status{uuid.uuid4().hex[:8]}."},
        clickhouse={"url": clickhouse_url},
    )
    await ensure_topics(settings)
    return settings


def states(found: Status) -> dict[str, str]:
    return {part.name: part.state for part in found.parts if part.name not in ("kafka", "clickhouse")}


def up(settings: Settings, *parts: Part) -> None:
    """A supervisor that runs, and what it knows of its workers."""
    write_stack(settings.data_dir, Stack(supervisor=ProcessId.own(), started_at=STARTED_AT, parts=parts))


def joined(settings: Settings, role: str) -> AIOKafkaConsumer:
    """A member of the group of a role, as one that another machine runs."""
    return AIOKafkaConsumer(
        *role_inputs(settings.topics)[role], **client_options(settings), group_id=settings.group(role)
    )


async def test_with_nothing_started_no_role_runs_and_nothing_is_ready(settings: Settings) -> None:
    found = await read_status(settings)
    assert states(found) == dict.fromkeys(ROLES, "absent")
    assert (found.reachable, found.up, found.ready) == (True, False, False)
    assert {part.name for part in found.parts if not part.needed} == {"gateway"}


async def test_a_stack_whose_workers_said_nothing_yet_is_not_ready(settings: Settings) -> None:
    up(settings, Part(name="bridge", state="starting"))
    found = await read_status(settings)
    assert states(found) == dict.fromkeys(ROLES, "absent") | {"bridge": "starting"}
    assert (found.reachable, found.up, found.ready) == (True, True, False)
    assert all(part.needed for part in found.parts)


async def test_a_worker_that_died_before_it_said_anything_is_told(settings: Settings) -> None:
    for role in ROLES - {"gateway"}:
        Health(settings.data_dir, role).ready()
    up(settings, Part(name="gateway", state="restarting", restarts=3, last_error="its port is taken"))
    found = await read_status(settings)
    (gateway,) = (part for part in found.parts if part.name == "gateway")
    assert (gateway.state, gateway.restarts, gateway.last_error) == ("restarting", 3, "its port is taken")
    assert not found.ready
    Health(settings.data_dir, "gateway").ready()
    assert (await read_status(settings)).ready


async def test_roles_that_are_run_by_hand_need_no_gateway(settings: Settings) -> None:
    for role in ROLES - {"gateway"}:
        Health(settings.data_dir, role).ready()
    found = await read_status(settings)
    assert (states(found)["gateway"], found.up, found.ready) == ("absent", False, True)


async def test_a_role_that_another_machine_runs_is_elsewhere(settings: Settings) -> None:
    for role in ROLES - {"gateway", "bridge"}:
        Health(settings.data_dir, role).ready()
    async with joined(settings, "bridge") as member:
        await member.getmany(timeout_ms=0)
        found = await read_status(settings)
        assert (states(found)["bridge"], found.ready) == ("elsewhere", True)
        asked = await read_members(settings, ("orchestrator", "bridge"))
        # A stack that is up answers for its own bridge.
        up(settings)
        assert states(await read_status(settings))["bridge"] == "absent"
    assert asked == {"orchestrator": 0, "bridge": 1}
    assert (await read_members(settings, ("bridge",))) == {"bridge": 0}


async def test_a_broker_that_does_not_know_its_groups_yet_is_there(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(admin: AIOKafkaAdminClient, group: str) -> int:
        raise GroupCoordinatorNotAvailableError(group)

    monkeypatch.setattr(AIOKafkaAdminClient, "find_coordinator", unknown)
    found = await read_status(settings)
    assert states(found) == dict.fromkeys(ROLES, "absent")
    assert (found.reachable, found.ready) == (True, False)
