"""Events as rows: what goes into the store is what the view shows."""

from __future__ import annotations

import orjson
import pytest

from pml.clickhouse.client import Store
from pml.clickhouse.rows import EVENT_COLUMNS, EVENTS_TABLE, event_row
from pml.schemas.codec import encode
from pml.schemas.events import Cause, Event, EventData, PartitionTaken
from tests.log_writer import run_started, speculation_ended, task_completed, task_started

AT = "2026-11-22T10:00:00.123456Z"


def event(data: EventData, **fields: object) -> Event:
    given = {"id": "local/ses:100:7", "type": data.TYPE, "tenant": "local", "session_id": "ses", "epoch": 100}
    return Event.model_validate({**given, "seq": 7, "offset": 107, "occurred_at": AT, "data": data, **fields})


def row(item: Event) -> tuple[object, ...]:
    return event_row(3, orjson.loads(encode(item)))


def test_a_row_has_a_value_for_every_column() -> None:
    assert len(row(event(run_started()))) == len(EVENT_COLUMNS)


def test_what_an_event_leaves_out_is_empty() -> None:
    values = dict(zip(EVENT_COLUMNS, row(event(PartitionTaken(owner="me"))), strict=True))
    assert [values[name] for name in ("run_id", "principal", "command_id", "traceparent")] == [""] * 4
    assert (values["cause_topic"], values["cause_partition"], values["cause_offset"]) == ("", 0, 0)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("data", "tool"),
    [
        (run_started(name="Übersicht 😀", context={"text": 'quote " and \\ and \n newline'}), ("", "")),
        (task_started(tool="git:log:all"), ("git", "log:all")),
        (task_completed(result={"rows": [1.5, None, {"deep": [True]}]}), ("git", "log")),
        (speculation_ended(), ("git", "log")),
    ],
)
def test_the_view_shows_the_event_that_was_inserted(
    migrated_store: Store, data: EventData, tool: tuple[str, str]
) -> None:
    item = event(
        data,
        run_id="run_1",
        principal="ada",
        command_id="cmd_1",
        traceparent="00-ab-cd-01",
        cause=Cause(topic="pml.commands", partition=3, offset=2**40),
    )
    migrated_store.insert(EVENTS_TABLE, EVENT_COLUMNS, [row(item)], token="3-107-108")
    (shown,) = migrated_store.query("SELECT * FROM events").as_dicts()
    assert orjson.loads(shown["data"]) == orjson.loads(encode(item))["data"]
    assert (shown["id"], shown["log_offset"], shown["partition"]) == (item.id, 107, 3)
    assert (shown["run_id"], shown["principal"], shown["command_id"]) == ("run_1", "ada", "cmd_1")
    assert (shown["cause_topic"], shown["cause_offset"]) == ("pml.commands", 2**40)
    assert (shown["tool_server"], shown["tool_name"]) == tool
    assert shown["occurred_at"].replace(" ", "T").startswith("2026-11-22T10:00:00.123456")
