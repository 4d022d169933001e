from __future__ import annotations

from datetime import timedelta

import orjson
import pytest

from pml.clickhouse.client import Store
from pml.schemas.events import (
    ApprovalCall,
    ApprovalGranted,
    ApprovalRejected,
    ApprovalRequested,
    DecisionMade,
    DecisionRequired,
    InternalEnded,
    RunExpanded,
    RunReplanned,
    RunRetried,
)
from tests.clickhouse import history as h
from tests.clickhouse.history import History

PATTERN = (
    '{"has_file_path":false,"has_channel_ref":false,"argument_count":1,'
    '"types":{"max_count":"integer"},"categories":{}}'
)
REFUSED = {"code": "REFUSED", "type": "PERMISSION", "message": "it may not"}
pytestmark = pytest.mark.integration


@pytest.fixture
def store(migrated_store: Store) -> Store:
    return migrated_store


def _a_run() -> History:
    session = History()
    session.add(h.run_started())
    session.add(h.speculation("n2", "served", "hit", saved_ms=80.0))
    session.add(h.completed("n1"))
    session.add(h.failed("n2", attempt=1, final=False, retry_at=h.time_of(h.START)))
    session.add(
        h.completed("n2", attempt=2, layer=1, tool="files:read:all", served_by="joined", speculable=True)
    )
    session.add(h.run_completed(tasks=2, completed=2, hits=1, saved_ms=80.0))
    return session


def test_events_have_typed_columns_and_their_data(store: Store) -> None:
    session = _a_run()
    session.insert(store)
    rows = store.query("SELECT * FROM events ORDER BY seq").as_dicts()
    assert len(rows) == len(session.events)
    event, row = session.events[4], rows[4]
    assert (row["id"], row["type"], row["occurred_at"]) == (
        event["id"],
        "task.completed",
        event["occurred_at"],
    )
    assert (row["partition"], row["log_offset"], row["seq"]) == (3, event["offset"], 4)
    assert (row["task_id"], row["call_id"], row["principal"]) == ("n2", "call_n2", "ada")
    assert (row["tool_server"], row["tool_name"]) == ("files", "read:all")
    assert (row["cause_topic"], row["cause_partition"], row["cause_offset"]) == ("pml.commands", 3, 41)
    assert orjson.loads(row["data"]) == event["data"]


def test_an_event_of_no_session_is_a_row_too(store: Store) -> None:
    session = History(session_id="", tenant="")
    session.add(h.partition_taken(), run_id="")
    session.insert(store)
    assert store.query("SELECT type, run_id, task_id, tool_name FROM events").rows == [
        ["partition.taken", "", "", ""]
    ]


def test_a_batch_stored_twice_shows_once_in_every_view(store: Store) -> None:
    """The backstop: another token, so nothing but the order of the tables knows that these are the same."""
    views = ("events", "runs", "tasks", "speculations", "traces")
    session = _a_run()
    session.insert(store, "3-100-105")
    once = {view: store.query(f"SELECT * FROM {view} ORDER BY log_offset").rows for view in views}
    session.insert(store, "3-100-199")
    raw = store.query("SELECT (SELECT count() FROM events_raw), (SELECT count() FROM tasks_raw)").rows[0]
    assert raw == [12, 6]
    assert {view: store.query(f"SELECT * FROM {view} ORDER BY log_offset").rows for view in views} == once
    assert [len(once[view]) for view in views] == [6, 1, 3, 1, 1]


def test_the_same_token_stores_once_in_every_table(store: Store) -> None:
    session = _a_run()
    for _ in range(2):
        session.insert(store, "3-100-105")
    tables = ("events_raw", "runs_raw", "tasks_raw", "speculations_raw")
    counts = [store.query(f"SELECT count() FROM {table}").rows[0][0] for table in tables]
    assert counts == [6, 2, 3, 1]


def test_tasks_have_a_row_an_attempt(store: Store) -> None:
    session = _a_run()
    session.add(h.unknown("n3"))
    session.add(h.skipped("n4"))
    session.insert(store)
    rows = store.query("SELECT * FROM tasks ORDER BY log_offset").as_dicts()
    told = [(row["task_id"], row["attempt"], row["final"], row["status"], row["served_by"]) for row in rows]
    assert told == [
        ("n1", 1, True, "completed", "call"),
        ("n2", 1, False, "failed", "call"),
        ("n2", 2, True, "completed", "joined"),
        ("n3", 1, True, "unknown", "call"),
        ("n4", 0, True, "skipped", ""),
    ]
    done, broken = rows[2], rows[1]
    assert (done["result"], done["arguments"]) == ('{"content":["n2"]}', '{"max_count":20}')
    assert (done["speculable"], done["mocked"], done["tool_ms"], done["duration_ms"]) == (
        True,
        False,
        100.0,
        120.5,
    )
    assert done["started_at"] == done["as_of"] == session.events[2]["data"]["started_at"]
    assert (broken["error_type"], broken["error_code"]) == ("NOT_FOUND", "TOOL_ERROR")
    assert (rows[4]["error_code"], rows[4]["started_at"]) == ("dependency_failed", None)
    # By this training knows what was a call.
    assert [bool(row["argument_pattern"]) for row in rows] == [True, True, True, True, False]


def test_speculations_have_their_fate(store: Store) -> None:
    _a_run().insert(store)
    (row,) = store.query("SELECT * FROM speculations").as_dicts()
    assert (row["task_id"], row["fate"], row["reason"], row["kind"]) == ("n2", "served", "hit", "layer")
    assert (row["tool_ms"], row["saved_ms"], row["confidence"], row["cancelled"]) == (100.0, 80.0, 1.0, False)


def test_a_run_shows_its_last_status_also_while_it_runs(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.insert(store)
    (row,) = store.query("SELECT * FROM runs").as_dicts()
    assert (row["status"], row["ended_at"], row["log_offset"], row["tasks"]) == ("running", None, 100, 2)
    later = History(offset=101)
    later.add(h.run_completed(completed=2, hits=1, misses=1, saved_ms=5.5))
    later.insert(store)
    (row,) = store.query("SELECT * FROM runs").as_dicts()
    assert (row["status"], row["log_offset"], row["name"], row["intent"]) == (
        "completed",
        101,
        "notes",
        "Write notes",
    )
    assert (row["executed_path"], row["decisions"], row["context"]) == (
        ["n1", "n2"],
        {"d1": "true"},
        '{"repo":"."}',
    )
    assert (row["completed"], row["hits"], row["misses"], row["saved_ms"], row["duration_ms"]) == (
        2,
        1,
        1,
        5.5,
        900.0,
    )
    assert row["started_at"] == session.events[0]["occurred_at"]
    assert row["ended_at"] == later.events[0]["occurred_at"]


def test_a_run_of_a_later_epoch_is_another_run(store: Store) -> None:
    for epoch in (100, 900):
        session = History(epoch=epoch, offset=epoch)
        session.add(h.run_started())
        session.insert(store)
    assert store.query("SELECT epoch FROM runs WHERE run_id = 'run_1' ORDER BY epoch").rows == [[100], [900]]


def test_a_run_that_waits_has_not_ended(store: Store) -> None:
    waits = DecisionRequired(checkpoint_id="k1", following=1, deadline_at=h.time_of(h.START))
    session = History()
    session.add(h.run_started())
    session.add(waits)
    session.insert(store)
    (row,) = store.query("SELECT status, ended_at, tasks, name FROM runs").rows
    assert row == ["waiting", None, 2, "notes"]
    later = History(offset=102)
    later.add(DecisionMade(checkpoint_id="k1", choice="continue"))
    later.insert(store)
    assert store.query("SELECT status, ended_at FROM runs").rows == [["running", None]]


def _asked() -> ApprovalRequested:
    return ApprovalRequested(
        approval_id="apr_1",
        task_id="n1",
        layer=0,
        tool="files:delete_file",
        description="Deletes a file",
        arguments={"path": "a.md"},
        arguments_hash="a",
        effect="write",
        touches=("files:a.md",),
        code="APPROVAL_REQUIRED",
        message="it needs a person",
        expires_at=h.time_of(h.START),
    )


def test_an_approval_shows_what_was_asked_and_what_became_of_it(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.add(_asked())
    session.insert(store)
    (row,) = store.query("SELECT * FROM approvals").as_dicts()
    assert (row["status"], row["tool_server"], row["tool_name"]) == ("open", "files", "delete_file")
    assert (row["arguments"], row["touches"], row["settled_at"]) == ('{"path":"a.md"}', ["files:a.md"], None)
    later = History(offset=102)
    settled = {"approval_id": "apr_1", "task_id": "n1", "tool": "files:delete_file"}
    later.add(ApprovalRejected(**settled, decided_by="person:ada", reason="not that one"))
    later.insert(store)
    (row,) = store.query("SELECT * FROM approvals").as_dicts()
    assert (row["status"], row["decided_by"], row["reason"]) == ("rejected", "person:ada", "not that one")
    assert row["description"] == "Deletes a file"
    assert store.query("SELECT status FROM runs").rows == [["running"]]


def test_a_request_about_several_calls_shows_them_all_and_for_how_much_the_answer_was(store: Store) -> None:
    calls = tuple(
        ApprovalCall(
            task_id=name, tool="files:delete_file", effect="write", code="APPROVAL_REQUIRED", message=""
        )
        for name in ("n1", "n2")
    )
    many = {"task_id": "", "tool": "", "arguments": None, "calls": calls, "omitted": 3}
    session = History()
    session.add(h.run_started())
    session.add(_asked().model_copy(update=many))
    given = {"approval_id": "apr_1", "task_id": "", "tool": "", "decided_by": "person:ada"}
    session.add(ApprovalGranted.model_validate({**given, "computed": True, "via": "http"}))
    session.insert(store)
    (row,) = store.query("SELECT * FROM approvals").as_dicts()
    assert [call["task_id"] for call in orjson.loads(row["calls"])] == ["n1", "n2"]
    assert (row["status"], row["omitted"], row["computed"], row["via"]) == ("granted", 3, True, "http")
    assert (row["tool_server"], row["tool_name"], row["arguments"]) == ("", "", "")


def test_a_replanned_run_has_the_size_of_its_newest_plan(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    plan = {"checkpoint_id": "k1", "number": 1, "definition": {}, "kept": {}, "payload_ref": h.REF}
    session.add(RunReplanned.model_validate({**plan, "layers": 5, "tasks": 9}))
    session.insert(store)
    assert store.query("SELECT layers, tasks, name FROM runs").rows == [[5, 9, "notes"]]


def test_a_resolved_task_of_a_retried_run_ends_once_in_its_trace(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.add(h.unknown("n1"))
    session.add(h.run_failed())
    session.add(h.resolved("n1", result={"ok": True}))
    session.add(RunRetried(after_layer=0, deadline_at=h.time_of(h.START)))
    session.insert(store)
    assert store.query("SELECT status FROM runs").rows == [["running"]]
    later = History(offset=105)
    later.add(h.run_completed(completed=1))
    later.insert(store)
    (trace,) = store.query("SELECT task_results, success FROM traces").rows
    assert [(task["task_id"], task["status"], task["result"]) for task in trace[0]] == [
        ("n1", "completed", '{"ok":true}')
    ]
    assert [(task["args"], task["duration_ms"], task["argument_pattern"]) for task in trace[0]] == [
        ('{"max_count":20}', 120.5, PATTERN)
    ]
    assert trace[1]


@pytest.mark.parametrize("tokens", [("once",), ("once", "twice")])
def test_an_attempt_that_was_settled_is_one_row_with_what_was_called(
    store: Store, tokens: tuple[str, ...]
) -> None:
    session = History()
    session.add(h.unknown("n1", speculable=True, served_by="joined"))
    session.add(h.unknown("n2"))
    session.add(h.resolved("n1"))
    session.add(h.resolved("n2", resolution="not_done", result=None, error=REFUSED))
    for token in tokens:
        session.insert(store, token)
    done, broken = store.query("SELECT * FROM tasks ORDER BY log_offset").as_dicts()
    called = {name: done[name] for name in ("arguments", "arguments_hash", "argument_pattern", "call_id")}
    assert called == {
        "arguments": '{"max_count":20}',
        "arguments_hash": "ah",
        "argument_pattern": PATTERN,
        "call_id": "call_n1",
    }
    assert (done["started_at"], done["duration_ms"], done["tool_ms"]) == (h.time_of(h.START), 120.5, 0.0)
    assert (done["speculable"], done["served_by"], done["attempt"], done["final"]) == (
        True,
        "joined",
        1,
        True,
    )
    assert (done["status"], done["result"], done["result_hash"]) == ("completed", '{"content":["n1"]}', "rh")
    assert (done["error_type"], done["error_code"], done["error_message"]) == ("", "", "")
    assert (done["log_offset"], done["seq"]) == (102, 2)
    assert done["ended_at"] == session.events[2]["occurred_at"]
    assert (broken["status"], broken["arguments"], broken["result"]) == ("failed", '{"max_count":20}', "")
    assert (broken["error_type"], broken["error_code"]) == ("PERMISSION", "REFUSED")


def test_an_attempt_that_was_never_settled_keeps_its_row_beside_the_next_one(store: Store) -> None:
    session = History()
    session.add(h.unknown("n1"))
    session.add(h.resolved("n1", resolution="retry", result=None))
    session.add(h.completed("n1", attempt=2))
    session.add(h.failed("n2", call_id=None, arguments_hash="", started_at=None))
    session.insert(store)
    rows = store.query("SELECT task_id, attempt, status, error_code FROM tasks ORDER BY log_offset").rows
    assert rows == [
        ["n1", 1, "unknown", "OUTCOME_UNKNOWN"],
        ["n1", 2, "completed", ""],
        ["n2", 1, "failed", "TOOL_ERROR"],
    ]


def test_a_settlement_is_one_of_its_own_run_and_attempt(store: Store) -> None:
    session, other = History(), History(session_id="ses_2", offset=200)
    for history, run_id in ((session, "run_1"), (session, "run_2"), (other, "run_1")):
        history.add(h.unknown("n1"), run_id)
    session.add(h.resolved("n1"), "run_2")
    session.insert(store)
    other.insert(store)
    found = store.query("SELECT session_id, run_id, status FROM tasks ORDER BY session_id, run_id").rows
    assert found == [
        ["ses_1", "run_1", "unknown"],
        ["ses_1", "run_2", "completed"],
        ["ses_2", "run_1", "unknown"],
    ]


def test_what_narrows_tasks_narrows_settled_ones_too(store: Store) -> None:
    session = History()
    session.add(h.unknown("n1"))
    session.add(h.resolved("n1"))
    session.insert(store)
    ended = session.events[1]["occurred_at"]
    count = "SELECT count() FROM tasks WHERE "
    for condition, rows in (
        ("status = 'unknown'", 0),
        ("status = 'completed' AND arguments != ''", 1),
        (f"ended_at < parseDateTime64BestEffort('{ended}', 6)", 0),
        (f"ended_at >= parseDateTime64BestEffort('{ended}', 6)", 1),
        ("run_id = 'run_1' AND tool_name = 'git_log'", 1),
    ):
        assert store.query(count + condition).rows == [[rows]], condition


def test_tasks_have_the_types_of_their_table(store: Store) -> None:
    """A part of a union that has others would make those of all rows wider."""
    sql = (
        "SELECT name, type FROM system.columns WHERE database = currentDatabase() "
        "AND table = {table:String} ORDER BY name"
    )
    view, table = (store.query(sql, {"table": name}).rows for name in ("tasks", "tasks_raw"))
    assert view == table


def test_traces_are_ended_runs_with_their_final_tasks(store: Store) -> None:
    _a_run().insert(store)
    running = History(session_id="ses_2", offset=200)
    running.add(h.run_started(), run_id="run_2")
    running.insert(store)
    (row,) = store.query("SELECT * FROM traces").as_dicts()
    assert (row["run_id"], row["user"], row["success"], row["error_type"]) == ("run_1", "ada", True, "")
    assert (row["intent"], row["workflow_type"], row["initial_context"]) == (
        "Write notes",
        "release",
        '{"repo":"."}',
    )
    assert [task["task_id"] for task in row["task_results"]] == ["n1", "n2"]
    assert row["task_results"][1] == {
        "task_id": "n2",
        "tool": "files:read:all",
        "args": '{"max_count":20}',
        "result": '{"content":["n2"]}',
        "success": True,
        "status": "completed",
        "error_type": "",
        "duration_ms": 120.5,
        "layer": 1,
        "mocked": False,
        "argument_pattern": PATTERN,
    }
    assert store.query("SELECT DISTINCT argument_pattern FROM tasks").rows == [[PATTERN]]
    assert (row["exploratory"], row["priority"]) == (False, 0.5)


def test_a_trace_names_the_first_error_and_takes_its_priority(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.add(h.unknown("n1"))
    session.add(h.failed("n2"))
    session.add(h.run_failed())
    session.insert(store)
    key = ["tenant", "session_id", "epoch", "run_id", "priority", "updated_at"]
    for priority, moment in ((0.9, h.START), (0.1, h.START + timedelta(seconds=1))):
        store.insert("trace_priorities", key, [["local", "ses_1", 100, "run_1", priority, moment]])
    (row,) = store.query("SELECT * FROM traces WHERE run_id = 'run_1'").as_dicts()
    assert (row["success"], row["error_type"], row["error_code"]) == (False, "TIMEOUT", "TASK_FAILED")
    assert row["priority"] == 0.1


def test_a_run_without_tasks_is_a_trace_too(store: Store) -> None:
    session = History()
    session.add(h.run_started())
    session.add(h.run_failed())
    session.insert(store)
    (row,) = store.query("SELECT * FROM traces").as_dicts()
    assert (row["task_results"], row["error_type"]) == ([], "")


PROGRAM = {
    "capability_id": "cap_1",
    "language": "python",
    "intent": "Read notes",
    "structure": {"nodes": [{"id": "n1"}]},
    "source": "await mcp.files.read_file(path='a.md')",
}


def _of_a_program(run_id: str, session_id: str) -> History:
    session = History(session_id)
    session.add(h.run_started(capability_id=None), run_id=run_id)
    analysed = InternalEnded(call_id="c1", tool="pml:analyse", answer=PROGRAM, duration_ms=3)
    session.add(analysed, run_id=run_id)
    expanded = {"number": 1, "capability_id": "cap_1", "workflow_type": "cap_1", "definition": {}, "kept": {}}
    session.add(RunExpanded(**expanded, payload_ref=h.REF, layers=1, tasks=1), run_id=run_id)
    return session


def test_a_capability_is_what_was_analysed_and_its_runs_are_what_ran(store: Store) -> None:
    program = _of_a_program("run_1", "s1")
    program.add(h.run_completed(tasks=1, completed=1), run_id="run_1")
    program.add(h.run_started(capability_id="cap_2"), run_id="run_2")
    program.add(h.run_failed(), run_id="run_2")
    for token in ("once", "twice"):
        program.insert(store, token)
    rows = store.query("SELECT * FROM capabilities ORDER BY capability_id").as_dicts()
    told = [(row["capability_id"], row["source"], row["language"], row["intent"]) for row in rows]
    assert told == [("cap_1", "code", "python", "Read notes"), ("cap_2", "dag", "", "Write notes")]
    assert [row["analysed"] for row in rows] == [1, 1]
    assert (orjson.loads(rows[0]["structure"]), rows[0]["code"]) == (PROGRAM["structure"], PROGRAM["source"])
    runs = store.query("SELECT capability_id, run_id, status FROM capability_runs ORDER BY run_id").rows
    assert runs == [["cap_1", "run_1", "completed"], ["cap_2", "run_2", "failed"]]


def test_a_run_that_was_replanned_is_none_of_its_capability(store: Store) -> None:
    program = _of_a_program("run_1", "s1")
    replanned = {"checkpoint_id": "cp", "number": 2, "definition": {}, "kept": {}, "payload_ref": h.REF}
    program.add(RunReplanned(**replanned, layers=1, tasks=1), run_id="run_1")
    program.insert(store)
    assert store.query("SELECT run_id FROM capability_runs").rows == []
