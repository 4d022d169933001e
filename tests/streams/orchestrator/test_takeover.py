"""What seldom happens to an owner: overtaken, in doubt, fenced, stale states, older markers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.admin import RecordsToDelete
from aiokafka.structs import TopicPartition

from pml.schemas.identifiers import session_key
from pml.streams.connection import partition_for, producer_options
from pml.streams.log.append import Appender, InDoubt, Outgoing
from pml.streams.log.reader import counted, event_type
from pml.streams.log.recovery import Marker, taken_record
from pml.streams.orchestrator.table import marker_key, read_marker, read_stored, write_marker
from pml.streams.orchestrator.write_behind import WriteBehind
from pml.streams.topics import admin_client
from tests.streams.orchestrator.world import Installation, until, workflow

NUMBER = partition_for(session_key("local", "s"))


async def terms(installation: Installation) -> list[int]:
    """The offsets of the counted `partition.taken` of the session's partition."""
    records = await installation.records(installation.topics.events)
    mine = [record for record in records if record.partition == NUMBER and counted(record)]
    return [record.offset for record in mine if event_type(record) == "partition.taken"]


async def log_end(installation: Installation) -> int:
    records = await installation.records(installation.topics.events)
    return sum(record.partition == NUMBER for record in records)


async def intrude(installation: Installation, record: Outgoing) -> None:
    """Somebody else writes to the session's partition of the log."""
    appender = Appender(producer_options(installation.settings))
    await appender.send(installation.topics.events, NUMBER, [record])
    await appender.stop()


async def test_an_owner_that_another_one_overtook_takes_the_partition_again(
    installation: Installation,
) -> None:
    async with installation.orchestrator(), installation.bridge():
        await intrude(installation, taken_record(NUMBER, "zombie", await log_end(installation), 0))
        await installation.start_run("s")
        await installation.wait_for("s", "run.completed")
    owned = await terms(installation)
    assert len(owned) == 3, "ours, the other's, ours again"
    await installation.check()


async def test_a_void_record_of_a_late_owner_costs_a_read_and_no_new_term(installation: Installation) -> None:
    async with installation.orchestrator(), installation.bridge():
        await intrude(installation, taken_record(NUMBER, "zombie", 99, 0))
        await installation.start_run("s")
        await installation.wait_for("s", "run.completed")
    assert len(await terms(installation)) == 1
    await installation.check()


class Doubts:
    """Appends of events whose acknowledgement is lost; the batch lands, or it does not."""

    def __init__(
        self, installation: Installation, monkeypatch: pytest.MonkeyPatch, lands: list[bool]
    ) -> None:
        self._events = installation.topics.events
        self._lands = lands
        self._append = Appender.append
        monkeypatch.setattr(Appender, "append", self._doubtful())

    def _doubtful(self) -> Any:
        async def append(appender: Appender, topic: str, *rest: Any) -> None:
            of_session = topic == self._events and rest[-1][0].key is not None
            lands = self._lands.pop(0) if of_session and self._lands else None
            if lands is not False:
                await self._append(appender, topic, *rest)
            if lands is not None:
                raise InDoubt("the acknowledgement was lost")

        return append


@pytest.mark.parametrize("lands", [[True], [False], [True, False, True], [False, False, True, True]])
async def test_an_append_in_doubt_is_settled_by_reading(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, lands: list[bool]
) -> None:
    async with installation.orchestrator(), installation.bridge() as asked:
        Doubts(installation, monkeypatch, list(lands))
        await installation.start_run("s", definition=workflow(3))
        await installation.wait_for("s", "run.completed")
    assert len(asked) == 3
    await installation.check()


async def written_states(installation: Installation, session: str = "s") -> dict[bytes, list[bytes]]:
    """Every value that the changelog ever had of the session's state and of its partition's marker."""
    found: dict[bytes, list[bytes]] = {}
    for record in await installation.changelog():
        ours = record.key == marker_key(NUMBER) or (
            b"/session/" in record.key and record.key.endswith(session.encode())
        )
        if ours and record.value:
            found.setdefault(record.key, []).append(record.value)
    return found


async def overwrite(installation: Installation, changes: dict[bytes, bytes | None]) -> None:
    """A write of a late owner reaches the changelog."""
    topic = f"{installation.settings.group('orchestrator')}-sessions-changelog"
    for key, value in changes.items():
        await installation.producer.send_and_wait(topic, value, key=key, partition=NUMBER)


async def stopped_in_the_middle(installation: Installation) -> tuple[bytes, list[bytes]]:
    """A run of three tasks whose first is done, all states written; the session's key and values."""
    async with installation.orchestrator():
        await installation.start_run("s", definition=workflow(3))
        call = (await until(installation.calls, "the first call"))[0]

        async def written() -> bool:
            return any(b"/session/" in key for key in await written_states(installation))

        await until(written, "the first state")
    first = await written_states(installation)
    async with installation.orchestrator():
        await installation.answer(call)
        await installation.wait_for("s", "task.completed")
        end = await log_end(installation)

        async def marked() -> bool:
            values = (await written_states(installation))[marker_key(NUMBER)]
            return read_marker(values[-1]).folded == end

        await until(marked, "the marker")
    key = next(key for key in first if b"/session/" in key)
    return key, first[key]


async def test_a_state_that_a_late_owner_wrote_is_rebuilt_from_the_log(installation: Installation) -> None:
    key, old = await stopped_in_the_middle(installation)
    assert read_stored(0, old[0]).term < (await terms(installation))[-1]
    await overwrite(installation, {key: old[0]})
    async with installation.orchestrator(), installation.bridge() as asked:
        await installation.wait_for("s", "run.completed")
        assert len(asked) == 3
    await installation.check()


async def test_an_older_marker_and_an_older_state_are_folded_past(installation: Installation) -> None:
    key, old = await stopped_in_the_middle(installation)
    stale = read_stored(0, old[0])
    causes = {installation.topics.commands: 0}
    marker = write_marker(Marker(stale.last_offset + 1, stale.term, causes))
    await overwrite(installation, {key: old[0], marker_key(NUMBER): marker})
    async with installation.orchestrator(), installation.bridge():
        await installation.wait_for("s", "run.completed")
    await installation.check()


async def test_a_table_that_is_gone_is_rebuilt_from_the_log(installation: Installation) -> None:
    await stopped_in_the_middle(installation)
    keys = {record.key for record in await installation.changelog()}
    await overwrite(installation, dict.fromkeys(keys))
    async with installation.orchestrator(), installation.bridge():
        await installation.wait_for("s", "run.completed")
    await installation.check()


async def test_a_table_write_in_doubt_begins_a_new_term(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may land late, over something newer of the same term, and nobody could tell."""
    failures = [True]
    write = WriteBehind._append

    async def doubtful(behind: WriteBehind, batch: list[Outgoing], term: int) -> bool:
        ours = any(record.key and record.key.endswith(b"/local/s") for record in batch)
        if ours and failures:
            failures.pop()
            raise InDoubt("the acknowledgement was lost")
        return await write(behind, batch, term)

    monkeypatch.setattr(WriteBehind, "_append", doubtful)
    async with installation.orchestrator(), installation.bridge():
        await installation.start_run("s")
        await installation.wait_for("s", "run.completed")

        async def retaken() -> bool:
            return len(await terms(installation)) == 2

        await until(retaken, "the second term")

        async def under_it() -> bool:
            values = await written_states(installation)
            newest = (await terms(installation))[-1]
            return all(_term(key, found[-1]) == newest for key, found in values.items()) and len(values) == 2

        await until(under_it, "everything under the new term")
    await installation.check()


def _term(key: bytes, value: bytes) -> int:
    return read_marker(value).term if key == marker_key(NUMBER) else read_stored(0, value).term


async def test_ended_lives_are_removed_after_their_time_and_a_returning_session_begins_anew(
    kafka: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pml.streams.orchestrator import write_behind

    monkeypatch.setattr(write_behind, "TOMBSTONE_SLACK_S", 0)
    monkeypatch.setattr(write_behind, "SWEEP_S", 0.2)
    timeouts = {"session_ttl_s": 1}
    async with Installation(kafka, tmp_path, **timeouts).opened() as installation:
        async with installation.orchestrator(), installation.bridge():
            await installation.start_run("s")
            first = await installation.wait_for("s", "run.completed")

            async def removed() -> bool:
                latest = {record.key: record.value for record in await installation.changelog()}
                of_session = {key: value for key, value in latest.items() if b"local/s" in key}
                return len(of_session) == 2 and not any(of_session.values())

            await until(removed, "the tombstones of state and definition")
            await installation.start_run("s")
            events = await installation.wait_for("s", "run.completed", count=2)
        assert events[-1].epoch > first[0].epoch
        await installation.check()


async def test_inputs_past_their_retention_are_no_lag(installation: Installation) -> None:
    async with installation.orchestrator():
        await installation.start_run("s")
        await installation.wait_for("s", "layer.released")
    for _ in range(5):
        await installation.send(installation.topics.tool_outcomes, "s", b"nothing that can be read")
    async with admin_client(installation.settings) as admin:
        place = TopicPartition(installation.topics.tool_outcomes, NUMBER)
        await admin.delete_records({place: RecordsToDelete(before_offset=5)})
    async with installation.orchestrator() as running, installation.bridge():
        await installation.wait_for("s", "run.completed")

        async def idle() -> bool:
            return bool(running.health.record.facts.get("lag") == 0)

        await until(idle, "no lag")
    await installation.check()


async def test_two_workers_share_the_partitions_and_one_goes_on_alone(installation: Installation) -> None:
    sessions = [f"s{number}" for number in range(12)]
    async with installation.bridge(), installation.orchestrator() as first:
        await start_all(installation, sessions, "a")
        async with installation.orchestrator() as second:
            await start_all(installation, sessions, "b")

            async def shared() -> bool:
                counts = [running.health.record.facts.get("partitions") for running in (first, second)]
                return counts == [6, 6]

            await until(shared, "six partitions each")
            await start_all(installation, sessions, "c")
        await start_all(installation, sessions, "d")
        for session in sessions:
            await installation.wait_for(session, "run.completed", count=4)
    await installation.check()


async def start_all(installation: Installation, sessions: Sequence[str], round_: str) -> None:
    await asyncio.gather(*(installation.start_run(session, f"{round_}-{session}") for session in sessions))
