"""How sure it is that a task will run, beside a brute-force twin (DESIGN §4, condition 4)."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.speculation.branches import branch_key
from pml.processors.workflow import Step
from pml.schemas.catalog import BranchStats, CatalogRecord, ServerTools, ThresholdOverride
from pml.schemas.events import SpeculationStarted
from tests.processors.session_world import SessionWorld, catalog, data_of

DECISIONS = ("d1", "d2", "d3")
COUNTS = st.fixed_dictionaries({name: st.tuples(st.integers(0, 40), st.integers(0, 3)) for name in DECISIONS})


def world(counts: dict[str, tuple[int, int]], threshold: float | None = None, **policy: Any) -> SessionWorld:
    """What was learned of three decisions: how often each was true and false."""
    known = catalog(**policy)
    for name, (true, false) in counts.items():
        stats = BranchStats(
            tenant="local",
            workflow_type="default",
            decision_id=name,
            counts={"true": true, "false": false},
        )
        known = known.with_record(
            CatalogRecord(kind=stats.KIND, id=branch_key("local", "default", name), data=stats)
        )
    if threshold is not None:
        override = ThresholdOverride(
            tenant="local", level="default", value=threshold, changed_at="2023-11-14T22:13:20Z"
        )
        known = known.with_record(CatalogRecord(kind=override.KIND, id="local/default", data=override))
    return SessionWorld(catalog=known)


def workflow(wanted: dict[str, str]) -> dict[str, Any]:
    """`late` runs where each of these decisions has this outcome; all of them read a slow task."""
    return {
        "tasks": [
            {"id": "quick", "tool": "files:list_dir", "arguments": {"path": "docs"}},
            {"id": "slow", "tool": "files:search", "arguments": {"text": "todo"}},
            {
                "id": "late",
                "tool": "files:read_file",
                "arguments": {"path": "a.md"},
                "depends_on": ["quick"],
                "condition": [{"node": name, "outcome": outcome} for name, outcome in wanted.items()],
            },
        ],
        "decisions": [{"id": name, "expression": "slow.count > 0"} for name in wanted],
    }


@given(
    counts=COUNTS,
    wanted=st.dictionaries(st.sampled_from(DECISIONS), st.sampled_from(["true", "false"]), min_size=1),
    threshold=st.floats(0, 1),
)
@settings(max_examples=100, deadline=None)
def test_a_branch_runs_early_where_the_product_reaches_the_threshold(
    counts: dict[str, tuple[int, int]], wanted: dict[str, str], threshold: float
) -> None:
    found = world(counts, threshold)
    found.start(workflow(wanted))
    step = found.answer(found.call_of("quick"), {"first": "a.md"})
    index = {"true": 0, "false": 1}
    shares = [(counts[name][index[wanted[name]]] + 1) / (sum(counts[name]) + 2) for name in sorted(wanted)]
    expected = prod(shares)
    began = [event.type for event in step.events if event.type.startswith("speculation.")]
    if expected >= threshold:
        assert began == ["speculation.started"]
        told = data_of(step, "speculation.started")
        assert (told.kind, told.threshold) == ("branch", threshold)
    elif expected >= threshold - 0.05:
        assert began == ["speculation.planned"]
        told = data_of(step, "speculation.planned")
        assert not told.shadow
    else:
        assert began == []
        return
    assert told.confidence == expected, "to the last bit, or a replay would say something else"


@pytest.mark.parametrize("count", range(4, 16))
def test_a_confidence_is_multiplied_in_one_order_whatever_the_process(count: int) -> None:
    """The order of a set differs from process to process, and with it the last bit of a product."""
    names = [f"d{number}" for number in range(10, 10 + count)]
    counts = {name: (3 * index + 1, index % 4 + 1) for index, name in enumerate(names)}
    found = world(counts, threshold=0.0)
    found.start(workflow(dict.fromkeys(names, "true")))
    step = found.answer(found.call_of("quick"), {"first": "a.md"})
    assert data_of(step, "speculation.started").confidence == prod(
        (true + 1) / (true + false + 2) for true, false in counts.values()
    )


def test_a_decision_that_two_tasks_of_a_chain_wait_for_counts_once() -> None:
    """A deeper call runs where the one that it reads runs: their common condition is one chance."""
    found = world({"d1": (8, 0)}, threshold=0.8, speculation_depth=2)
    condition = [{"node": "d1", "outcome": "true"}]
    plan = workflow({"d1": "true"})
    plan["tasks"].append(
        {
            "id": "later",
            "tool": "files:parse",
            "arguments": {"text": {"type": "reference", "expression": "late.text"}},
            "condition": condition,
        }
    )
    found.start(plan)
    found.answer(found.call_of("quick"), {"first": "a.md"})
    step = found.answer(found.call_of("late"), {"text": "a"})
    told = data_of(step, "speculation.started")
    assert (told.task_id, told.kind) == ("later", "branch")
    assert told.confidence == pytest.approx(0.9)
    assert told.sources


def test_a_task_behind_one_that_failed_is_not_begun_however_deep() -> None:
    found = SessionWorld(catalog=catalog(speculation_depth=3))
    read = {"tool": "files:read_file", "arguments": {"path": "a.md"}}
    tasks: list[dict[str, Any]] = [
        {"id": "a", "tool": "files:list_dir", "arguments": {"path": "docs"}},
        {"id": "b", "tool": "files:search"},
        {"id": "c", **read, "depends_on": ["a"]},
        {"id": "d", **read, "depends_on": ["c"]},
        {"id": "e", "tool": "files:parse", "arguments": {"text": "x"}, "depends_on": ["b"]},
    ]
    found.start({"tasks": tasks})
    step = found.answer(found.call_of("a"), code="NOT_FOUND")
    started = [event.data for event in step.events if event.type == "speculation.started"]
    assert [getattr(data, "task_id", "") for data in started] == ["e"]


READ = {"tool": "files:read_file", "arguments": {"path": "a.md"}}
LIST = {"tool": "files:list_dir", "arguments": {"path": "docs"}}
SEARCH = {"tool": "files:search", "arguments": {"text": "todo"}}


def begun(step: Step) -> list[str]:
    """The tasks whose calls were begun early."""
    return [event.data.task_id for event in step.events if isinstance(event.data, SpeculationStarted)]


def test_a_confidence_of_just_the_threshold_begins() -> None:
    """(1 + 1) / (1 + 1 + 2) is one half exactly, as is the threshold."""
    found = world({"d1": (1, 1)}, threshold=0.5)
    found.start(workflow({"d1": "true"}))
    told = data_of(found.answer(found.call_of("quick"), {"first": "a.md"}), "speculation.started")
    assert (told.confidence, told.threshold, told.influence) == (0.5, 0.5, None)


def test_a_confidence_just_below_the_margin_is_planned_and_further_below_nothing() -> None:
    """One half is a margin of 0.05 below 0.55, to the bit."""
    for threshold, types in ((0.55, ["speculation.planned"]), (0.5500000001, [])):
        found = world({"d1": (1, 1)}, threshold=threshold)
        found.start(workflow({"d1": "true"}))
        step = found.answer(found.call_of("quick"), {"first": "a.md"})
        assert [event.type for event in step.events if event.type.startswith("speculation.")] == types


def test_what_lacked_confidence_is_planned_once() -> None:
    found = world({"d1": (1, 1)}, threshold=0.52)
    plan = workflow({"d1": "true"})
    plan["tasks"].insert(1, {"id": "other", **LIST, "arguments": {"path": "src"}})
    found.start(plan)
    found.answer(found.call_of("quick"), {"first": "a.md"})
    found.answer(found.call_of("other"), {"first": "b.md"})
    assert len(found.of_type("speculation.planned")) == 1


def test_what_lacked_confidence_begins_where_the_threshold_comes_down_to_it() -> None:
    found = world({"d1": (1, 1)}, threshold=0.52)
    plan = workflow({"d1": "true"})
    plan["tasks"].insert(1, {"id": "other", **LIST, "arguments": {"path": "src"}})
    found.start(plan)
    assert begun(found.answer(found.call_of("quick"), {"first": "a.md"})) == []
    found.catalog = world({"d1": (1, 1)}, threshold=0.5).catalog
    assert begun(found.answer(found.call_of("other"), {"first": "b.md"})) == ["late"]


def test_the_past_of_a_tool_moves_no_task_that_is_sure_to_run() -> None:
    found = world({"d1": (8, 0)}, threshold=0.8, memory_influence="on")
    plan = workflow({"d1": "true"})
    plan["tasks"].append(
        {"id": "sure", **READ, "arguments": {"path": "b.md"}, "depends_on": ["quick", "slow"]}
    )
    found.start(plan)
    found.answer(found.call_of("pml:recall"), {"tools": {READ["tool"]: {"successes": 1, "failures": 0}}})
    found.answer(found.call_of("quick"), {"first": "a.md"})
    told = {event.data.task_id: event.data for event in found.of_type("speculation.started")}
    assert told["late"].influence is not None
    assert (told["sure"].confidence, told["sure"].influence) == (1, None)


def test_a_read_that_waits_for_its_next_attempt_holds_nothing_back() -> None:
    """It changes nothing; a write that waits for one does, and nobody reads before it."""
    retried = {"approval": "auto", "touches": ["files:{path}"], "retryable": True, "idempotent": True}
    for tool, scope, expected in (("parse", "readonly", ["late"]), ("write_file", "filesystem", [])):
        found = SessionWorld(catalog=catalog({f"files:{tool}": {**retried, "scope": scope}}))
        again = {"id": "again", "tool": f"files:{tool}", "arguments": {"path": "a.md"}}
        found.start({"tasks": [again, {"id": "late", **READ, "depends_on": ["again"]}]})
        step = found.answer(found.call_of("again"), code="NETWORK", retryable=True)
        assert (step.events[0].type, begun(step)) == ("task.failed", expected)


def test_a_task_whose_decision_could_not_be_evaluated_is_not_begun() -> None:
    """Whatever the threshold: it will fail, as soon as its layer is released."""
    found = world({}, threshold=0.0)
    decision = {"id": "d1", "expression": "quick.missing > 0"}
    broken = {"id": "late", **READ, "depends_on": ["slow"], "condition": [{"node": "d1", "outcome": "true"}]}
    tasks = [{"id": "quick", **LIST}, {"id": "slow", **SEARCH}, broken]
    found.start({"tasks": tasks, "decisions": [decision]})
    step = found.answer(found.call_of("quick"), {"first": "a.md"})
    assert [event.type for event in step.events if event.type.startswith("speculation.")] == []


def test_runs_of_a_session_speculate_each_for_itself() -> None:
    """A task of the same name in another run has been tried: that says nothing of this one."""
    found = SessionWorld()
    for run_id, path in (("run_1", "a.md"), ("run_2", "b.md")):
        late = {"id": "late", **READ, "arguments": {"path": path}, "depends_on": ["quick"]}
        quick = {"id": "quick", **LIST, "arguments": {"path": run_id}}
        slow = {"id": "slow", "tool": "files:search", "arguments": {"text": run_id}}
        found.start({"tasks": [quick, slow, {**late, "depends_on": ["quick", "slow"]}]}, run_id)
    found.answer(found.call_of("quick", "run_1"), {"first": "x"})
    started = found.of_type("speculation.started")
    assert [(event.run_id, event.data.arguments) for event in started] == [
        ("run_1", {"path": "a.md"}),
        ("run_2", {"path": "b.md"}),
    ]


def test_what_was_tried_once_is_not_tried_again() -> None:
    found = SessionWorld()
    tasks = [
        {"id": "quick", **LIST},
        {"id": "slow", **SEARCH},
        {"id": "late", **READ, "depends_on": ["quick", "slow"]},
    ]
    tasks.insert(0, {"id": "other", **LIST, "arguments": {"path": "src"}})
    found.start({"tasks": tasks})
    assert begun(found.answer(found.call_of("quick"), {"first": "x"})) == ["late"]
    found.answer(found.call_of("late"), code="NOT_FOUND")
    assert begun(found.answer(found.call_of("other"), {"first": "x"})) == []


def chain(**policy: Any) -> SessionWorld:
    """`b` waits for `a` and a slow task, and its early result is there; `c` reads it."""
    found = SessionWorld(catalog=catalog(speculation_depth=2, **policy))
    reads = {"type": "reference", "expression": "b.next"}
    tasks = [
        {"id": "a", **LIST},
        {"id": "slow", **SEARCH},
        {"id": "other", **LIST, "arguments": {"path": "src"}},
        {"id": "b", **READ, "depends_on": ["a", "slow"]},
        {"id": "c", "tool": "files:read_file", "arguments": {"path": reads}},
    ]
    found.start({"tasks": tasks})
    found.answer(found.call_of("a"), {"first": "x"})
    return found


def test_a_deeper_call_reads_what_waits() -> None:
    found = chain()
    step = found.answer(found.call_of("b"), {"next": "n.md"})
    told = data_of(step, "speculation.started")
    assert (told.task_id, told.arguments) == ("c", {"path": "n.md"})
    assert told.sources == (data_of_first(found, "speculation.started").call_id,)


def data_of_first(found: SessionWorld, kind: str) -> Any:
    """The data of the first event of a type."""
    return found.of_type(kind)[0].data


def test_a_deeper_call_reads_nothing_that_is_gone_or_expired() -> None:
    """What waits is read until its TTL ends, not in that moment."""
    for wait_ms, expected in ((299_999, ["c"]), (300_000, [])):
        found = chain()
        found.catalog = catalog(speculation_depth=1)
        found.answer(found.call_of("b"), {"next": "n.md"})
        found.catalog = catalog(speculation_depth=2, run_timeout_ms=10_000_000)
        found.time_ms += wait_ms
        assert begun(found.answer(found.call_of("other"), {"first": "x"})) == expected
    lost = chain()
    lost.catalog = catalog(speculation_depth=1)
    lost.answer(lost.call_of("b"), {"next": "n.md"})
    assert lost.session is not None
    entry = next(iter(lost.session.speculations.values()))
    assert entry.result is not None
    lost.catalog = catalog(speculation_depth=2)
    lost.lose(entry.result)
    assert begun(lost.answer(lost.call_of("other"), {"first": "x"})) == []


def test_a_server_that_is_not_there_is_asked_nothing_early() -> None:
    for status in ("unavailable", None):
        found = SessionWorld()
        slow = {"id": "slow", "tool": "web:get", "arguments": {"url": "u"}}
        late = {"id": "late", **READ, "depends_on": ["quick", "slow"]}
        quick = {"id": "quick", "tool": "time:now", "arguments": {}}
        found.start({"tasks": [quick, slow, late]})
        if status:
            gone = ServerTools(server="files", status=status, error="it does not start")
            found.catalog = found.catalog.with_record(CatalogRecord(kind="tool", id="files", data=gone))
        else:
            left = {name: item for name, item in found.catalog.servers.items() if name != "files"}
            found.catalog = replace(found.catalog, servers=left)
        assert begun(found.answer(found.call_of("quick"), {"now": "x"})) == []


def test_a_task_that_ran_and_failed_does_not_doom_what_never_needed_it() -> None:
    """Only what waits for a task that will be skipped is skipped with it."""
    found = SessionWorld(catalog=catalog(speculation_depth=3))
    tasks = [
        {"id": "a", **LIST},
        {"id": "b", **SEARCH},
        {"id": "b2", **READ, "depends_on": ["b"]},
        {"id": "c", "tool": "files:parse", "arguments": {"text": "c"}, "depends_on": ["a", "b2"]},
        {"id": "d", "tool": "files:parse", "arguments": {"text": "d"}, "depends_on": ["b2"]},
        {"id": "e", "tool": "files:parse", "arguments": {"text": "e"}, "depends_on": ["d"]},
    ]
    found.start({"tasks": tasks})
    assert begun(found.answer(found.call_of("a"), code="NOT_FOUND")) == ["b2", "d", "e"]


def test_a_task_behind_a_branch_that_was_not_taken_is_begun() -> None:
    """A skipped task satisfies order, and that it waits for one that will fail changes nothing."""
    found = SessionWorld(catalog=catalog(speculation_depth=3))
    condition = [{"node": "d1", "outcome": "true"}]
    parse = {"tool": "files:parse", "arguments": {"text": "x"}}
    tasks = [
        {"id": "count", **LIST},
        {"id": "broken", **READ},
        {"id": "slow", **SEARCH},
        {"id": "doomed", **READ, "depends_on": ["broken", "slow"]},
        {"id": "other", **parse, "depends_on": ["doomed"], "condition": condition},
        {"id": "late", **parse, "depends_on": ["other"]},
    ]
    found.start({"tasks": tasks, "decisions": [{"id": "d1", "expression": "count.files > 0"}]})
    found.answer(found.call_of("broken"), code="NOT_FOUND")
    assert begun(found.answer(found.call_of("count"), {"files": 0})) == ["late"]
    found.answer(found.call_of("slow"))
    reasons = {event.data.task_id: event.data.reason for event in found.of_type("task.skipped")}
    assert reasons == {"doomed": "dependency_failed", "other": "condition"}
    found.answer(found.call_of("late"))
    assert data_of_first(found, "speculation.ended").fate == "served"


def test_a_decision_that_was_taken_makes_its_branch_certain() -> None:
    found = world({"d1": (1, 1), "d2": (8, 0)}, threshold=0.5)
    plan = workflow({"d1": "true", "d2": "true"})
    sure = {"id": "sure", **READ, "arguments": {"path": "b.md"}, "depends_on": ["slow"]}
    plan["tasks"].append({**sure, "condition": [{"node": "d1", "outcome": "true"}]})
    plan["decisions"][0]["expression"] = "quick.count > 0"
    found.start(plan)
    step = found.answer(found.call_of("quick"), {"count": 1})
    told = {event.data.task_id: event.data for event in found.of_type("speculation.started")}
    assert begun(step) == ["late", "sure"]
    assert (told["late"].confidence, told["late"].kind) == (0.9, "branch")
    assert (told["sure"].confidence, told["sure"].kind) == (1, "layer")


def test_a_deeper_call_is_as_sure_as_all_that_it_reads() -> None:
    """Whether `b` runs is decided later; `c` reads it, and `d` reads `c`."""
    found = world({"d1": (8, 0)}, threshold=0.8, speculation_depth=3)
    tasks = [{"id": "a", **LIST}, {"id": "slow", **SEARCH}]
    tasks.append({"id": "b", **READ, "depends_on": ["a"], "condition": [{"node": "d1", "outcome": "true"}]})
    for name, source in (("c", "b"), ("d", "c")):
        reads = {"type": "reference", "expression": f"{source}.next"}
        tasks.append({"id": name, "tool": "files:read_file", "arguments": {"path": reads}})
    found.start({"tasks": tasks, "decisions": [{"id": "d1", "expression": "slow.count > 0"}]})
    found.answer(found.call_of("a"))
    for name in ("b", "c"):
        found.answer(found.call_of(name), {"next": f"{name}.md"})
    told = {event.data.task_id: event.data for event in found.of_type("speculation.started")}
    assert {name: (one.confidence, one.kind) for name, one in told.items()} == dict.fromkeys(
        "bcd", (0.9, "branch")
    )


def test_a_deeper_call_reads_a_result_whose_own_source_is_gone() -> None:
    """`b` was served, and its time is over; `c`, which read it, began later and waits."""
    found = SessionWorld(catalog=catalog(speculation_depth=2, run_timeout_ms=10_000_000))
    tasks = [{"id": "a", **LIST}, {"id": "slow", **SEARCH}, {"id": "b", **READ, "depends_on": ["a", "slow"]}]
    tasks.append({"id": "slower", "tool": "files:search", "depends_on": ["slow"]})
    for name, source in (("c", "b"), ("d", "c")):
        reads = {"type": "reference", "expression": f"{source}.next"}
        tasks.append({"id": name, "tool": "files:read_file", "arguments": {"path": reads}})
    found.start({"tasks": tasks})
    found.answer(found.call_of("a"))
    found.time_ms += 200_000
    found.answer(found.call_of("b"), {"next": "c.md"})
    found.answer(found.call_of("slow"))
    found.time_ms += 200_000
    assert begun(found.answer(found.call_of("c"), {"next": "d.md"})) == ["d"]
    assert found.session is not None
    assert "b" not in {entry.task_id for entry in found.session.speculations.values()}


def test_a_deeper_call_reads_the_waiting_result_of_its_own_run() -> None:
    found = chain(budget_name="high")
    found.catalog = catalog(speculation_depth=1)
    found.answer(found.call_of("b"), {"next": "first.md"})
    reads = {"type": "reference", "expression": "b.next"}
    tasks = [
        {"id": "a", **LIST, "arguments": {"path": "lib"}},
        {"id": "slow", "tool": "files:search", "arguments": {"text": "other"}},
        {"id": "b", **READ, "arguments": {"path": "b.md"}, "depends_on": ["a", "slow"]},
        {"id": "c", "tool": "files:read_file", "arguments": {"path": reads}},
    ]
    found.start({"tasks": tasks}, "run_2")
    found.answer(found.call_of("a", "run_2"))
    found.catalog = catalog(speculation_depth=2)
    step = found.answer(found.call_of("b", "run_2"), {"next": "second.md"})
    arguments = {
        event.run_id: event.data.arguments for event in step.events if event.type.endswith("started")
    }
    assert arguments == {"run_1": {"path": "first.md"}, "run_2": {"path": "second.md"}}


def test_a_deeper_call_reads_nothing_that_has_served_another_run() -> None:
    """Such a result may go without a word, and what was taken from it would not go with it."""
    found = chain()
    found.catalog = catalog(speculation_depth=1)
    found.answer(found.call_of("b"), {"next": "n.md"})
    found.start({"tasks": [{"id": "same", **READ}]}, "run_2")
    assert found.types()[-1] == "run.completed"
    found.catalog = catalog(speculation_depth=2)
    assert begun(found.answer(found.call_of("other"))) == []


def test_the_sources_of_a_deeper_call_are_told_in_one_order_whatever_the_process() -> None:
    found = SessionWorld(catalog=catalog(speculation_depth=2, budget_name="high"))
    names = [f"b{number}" for number in range(7)]
    late = {"tool": READ["tool"], "depends_on": ["a", "slow"]}
    early = [{"id": name, **late, "arguments": {"path": name}} for name in names]
    reads = {name: {"type": "reference", "expression": f"{name}.text"} for name in names}
    last = {"id": "c", "tool": "files:parse", "arguments": reads}
    found.start({"tasks": [{"id": "a", **LIST}, {"id": "slow", **SEARCH}, *early, last]})
    found.answer(found.call_of("a"))
    began = {event.data.task_id: event.data.call_id for event in found.of_type("speculation.started")}
    for name in reversed(names):
        step = found.answer(found.call_of(name), {"text": name})
    assert data_of(step, "speculation.started").sources == tuple(began[name] for name in names)


def test_what_a_waiting_result_lacks_the_real_one_may_have() -> None:
    """Only what a task really gave says for certain that an argument cannot be had."""
    found = chain()
    found.answer(found.call_of("b"), {})
    assert found.of_type("speculation.unresolvable") == []
    write = {"id": "w", "tool": "files:write_file", "arguments": {"path": "a.md"}}
    found.start({"tasks": [write]}, "run_2")
    assert begun(found.answer(found.call_of("w"))) == ["b"]
    assert begun(found.answer(found.call_of("b"), {"next": "n.md"})) == ["c"]


def test_a_write_that_waits_for_its_next_attempt_holds_back_only_what_it_touches() -> None:
    entry = {"scope": "filesystem", "approval": "auto", "touches": ["files:{path}"]}
    retried = {**entry, "retryable": True, "idempotent": True}
    for path, expected in (("a.md", []), ("b.md", ["late"])):
        found = SessionWorld(catalog=catalog({"files:write_file": retried}))
        again = {"id": "again", "tool": "files:write_file", "arguments": {"path": path}}
        found.start({"tasks": [again, {"id": "late", **READ, "depends_on": ["again"]}]})
        assert begun(found.answer(found.call_of("again"), code="NETWORK", retryable=True)) == expected


@pytest.mark.parametrize(
    ("write", "held"),
    [
        ({"scope": "filesystem", "approval": "auto", "touches": ["files:{path}"]}, ["read", "log"]),
        ({"scope": "filesystem", "approval": "auto", "touches": ["files:log"]}, ["log"]),
        ({"scope": "filesystem", "approval": "auto"}, ["read", "log"]),
        (None, ["read", "log"]),
    ],
)
def test_a_write_that_has_not_begun_holds_back_all_that_its_entry_names(
    write: dict[str, Any] | None, held: list[str]
) -> None:
    """Its arguments are not known yet; one that nobody has allowed may touch its whole server."""
    known = catalog({"files:write_file": write} if write else None, speculation_depth=2)
    if write is None:
        file = known.permissions.model_copy(
            update={
                "tools": {name: one for name, one in known.permissions.tools.items() if "write" not in name}
            }
        )
        known = replace(known, permissions=file)
    found = SessionWorld(catalog=known)
    reads = {"type": "reference", "expression": "slow.path"}
    tasks = [{"id": "a", **LIST}, {"id": "slow", "tool": "web:get", "arguments": {"url": "u"}}]
    tasks.append({"id": "w", "tool": "files:write_file", "arguments": {"path": reads}})
    tasks.append({"id": "w2", "tool": "files:parse", "arguments": {"text": "x"}, "depends_on": ["slow"]})
    for name, path in (("read", "a.md"), ("log", "log/x")):
        tasks.append({"id": name, **READ, "arguments": {"path": path}, "depends_on": ["w2"]})
    tasks.append({"id": "get", "tool": "web:get", "arguments": {"url": "v"}, "depends_on": ["w2"]})
    found.start({"tasks": tasks})
    began = begun(found.answer(found.call_of("a")))
    assert began == ["w2", *(name for name in ("read", "log") if name not in held), "get"]
