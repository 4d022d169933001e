"""A backtest says of sessions what the pipeline would have done; the pipeline itself is its twin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.scene import Past
from pml.processors.speculation.backtest import (
    Backtest,
    Terms,
    ToolAccount,
    backtests,
    best_threshold,
)
from pml.processors.speculation.budget import BUDGETS, Budget
from pml.processors.speculation.played import PlayedCall, PlayedRun, paces
from pml.schemas.prediction import PREDICT_TOOL, PredictAnswer, PredictRequest
from tests.processors.session_world import SessionWorld, catalog
from tests.processors.speculation.predicted_world import call, done, foretell, predicted, world
from tests.processors.speculation.test_predictions import twice

READ, SEARCH, WRITE = "files:read_file", "files:list_dir", "files:write_file"
THRESHOLD = 0.92
TTL_MS = 300_000
Named = tuple[str, str, float]


@dataclass(frozen=True)
class Turn:
    """A run of one call so long after the last one, how long its tool took, and what was predicted then."""

    tool: str
    path: str
    gap_ms: int
    tool_ms: int
    named: tuple[Named, ...] = ()


def played(turns: Sequence[Turn]) -> list[PlayedRun]:
    """The turns as runs of a session."""
    runs, now_ms = [], 1_700_000_000_000
    for turn in turns:
        now_ms += turn.gap_ms
        made = PlayedCall(turn.tool, {"path": turn.path}, {"text": turn.path}, float(turn.tool_ms))
        element = Past(turn.tool, made.arguments, made.result)
        runs.append(PlayedRun(element, "", now_ms, now_ms + turn.tool_ms, (made,)))
        now_ms += turn.tool_ms
    return runs


def answers(*named: Sequence[Named]) -> Any:
    """A model that predicts these, one after another."""
    left = iter(named)

    def answer(request: PredictRequest) -> PredictAnswer:
        found = [(tool, {"path": path}, confidence) for tool, path, confidence in next(left)]
        return PredictAnswer.model_validate(predicted(*found)) if found else PredictAnswer(learner="none")

    return answer


def held_against(turns: Sequence[Turn], budget: Budget = BUDGETS["normal"]) -> Backtest:
    """What a backtest says of a session."""
    runs = played(turns)
    terms = Terms(THRESHOLD, budget, catalog(), {READ: 100.0, SEARCH: 100.0} | paces([runs]))
    return backtests([runs], answers(*(turn.named for turn in turns)), [terms])[0]


def right(turns: Sequence[Turn]) -> list[Turn]:
    """The same turns, each with the next one predicted."""
    following = [*turns[1:], None]
    return [
        Turn(t.tool, t.path, t.gap_ms, t.tool_ms, ((n.tool, n.path, 0.95),) if n else ())
        for t, n in zip(turns, following, strict=True)
    ]


def test_what_is_predicted_and_asked_for_saves_the_time_that_lies_between() -> None:
    turns = [Turn(READ, "a", 0, 100), Turn(READ, "b", 40, 100), Turn(SEARCH, "c", 500, 100)]
    found = held_against(right(turns))
    total = found.total
    assert (total.calls, total.begun, total.hits, total.wasted) == (3, 2, 2, 0)
    assert (total.saved_ms, total.wasted_ms) == (40 + 100, 0)
    assert (found.tools[READ].hits, found.tools[SEARCH].hits) == (1, 1)
    assert (found.sessions, found.runs, found.asked, found.withheld) == (1, 3, 3, {})


def test_what_nobody_asks_for_is_wasted_with_the_time_that_its_tool_takes_until_somebody_comes() -> None:
    turns = [Turn(READ, "a", 0, 80, ((READ, "b", 0.95),)), Turn(READ, "c", 50, 80, ((READ, "d", 0.95),))]
    total = held_against(turns).total
    assert (total.begun, total.hits, total.wasted, total.wasted_ms) == (2, 0, 2, 50 + 80)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ((READ, "b", 0.5), "below_threshold"),
        ((WRITE, "b", 0.95), "not_safe"),
        (("nobody:knows", "b", 0.95), "not_safe"),
    ],
)
def test_what_would_not_begin_is_told_with_its_reason(named: Named, reason: str) -> None:
    found = held_against([Turn(READ, "a", 0, 80, (named,)), Turn(READ, "b", 50, 80)])
    assert (found.total.begun, found.withheld) == (0, {reason: 1})


def test_a_budget_bounds_what_begins() -> None:
    turns = [Turn(READ, "a", 0, 80, tuple((READ, name, 0.95) for name in "bcd")), Turn(READ, "b", 50, 80)]
    found = held_against(turns, BUDGETS["low"])
    assert (found.total.begun, found.withheld) == (1, {"budget": 2})
    assert held_against(turns).total.begun == 3


def test_a_run_that_begins_before_the_last_one_ended_is_not_predicted() -> None:
    first, second = played([Turn(READ, "a", 0, 80), Turn(READ, "b", 1, 80)])
    runs = [first, PlayedRun(second.element, "", first.started_ms, second.ended_ms, second.calls)]
    terms = Terms(THRESHOLD, BUDGETS["normal"], catalog(), {})
    (found,) = backtests([runs], answers(()), [terms])
    assert (found.asked, found.withheld) == (1, {"overtaken": 1})


def whole() -> PredictAnswer:
    """A capability that reads b, and then what it found there."""
    path = {"type": "reference", "expression": "n1.found"}
    tasks = [
        {"id": "n1", "tool": READ, "arguments": {"path": "b"}},
        {"id": "n2", "tool": READ, "arguments": {"path": path}},
    ]
    told = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": ["n1", "n2"]}
    return PredictAnswer.model_validate(
        {"learner": "markov_1", "first": "cap_1", "candidates": [told], "workflow": {"tasks": tasks}}
    )


@pytest.mark.parametrize(("read", "counts"), [("b", (2, 2, 0)), ("x", (1, 0, 1))])
def test_a_capability_goes_on_with_what_its_first_call_really_gave(
    read: str, counts: tuple[int, int, int]
) -> None:
    (first,) = played([Turn(READ, "a", 0, 80)])
    calls = (
        PlayedCall(READ, {"path": read}, {"found": "c"}, 50),
        PlayedCall(READ, {"path": "c"}, {}, 50),
    )
    element = Past("cap_1", {}, {})
    second = PlayedRun(element, "", first.ended_ms + 100, first.ended_ms + 200, calls)
    terms = Terms(THRESHOLD, BUDGETS["normal"], catalog(), {})
    said = iter([whole(), PredictAnswer(learner="markov_1")])
    (found,) = backtests([[first, second]], lambda request: next(said), [terms])
    assert (found.total.begun, found.total.hits, found.unknown) == counts
    assert (found.asked, found.right) == (2, 1)


@pytest.mark.parametrize(("outcome", "begun"), [("true", 2), ("false", 1)])
def test_of_a_capabilitys_branches_the_one_begins_that_its_results_open(outcome: str, begun: int) -> None:
    said = whole().model_dump(mode="json")
    said["workflow"]["tasks"][1]["condition"] = [{"node": "d1", "outcome": outcome}]
    said["workflow"]["decisions"] = [{"id": "d1", "expression": "n1.found == 'c'"}]
    assert goes_on_with(said).total.begun == begun


@pytest.mark.parametrize(
    ("reads", "begun"),
    [(None, 3), ("n2.found|n3.found", 3), ("n2.found", 2)],
    ids=["waits for both", "reads either", "reads what is left out"],
)
def test_where_branches_join_again_a_capability_goes_on(reads: str | None, begun: int) -> None:
    """One branch is left out and the other is called; what joins both is not, where it begins."""
    said = whole().model_dump(mode="json")
    path = {"type": "reference", "expression": reads} if reads else "e"
    said["workflow"]["tasks"] = [
        said["workflow"]["tasks"][0],
        {"id": "n2", "tool": READ, "arguments": {"path": "y"}, "condition": [branch("true")]},
        {"id": "n3", "tool": READ, "arguments": {"path": "c"}, "condition": [branch("false")]},
        {"id": "n4", "tool": READ, "arguments": {"path": path}, "depends_on": ["n2", "n3"]},
    ]
    said["workflow"]["decisions"] = [{"id": "d1", "expression": "n1.found == 'd'"}]
    said["candidates"][0]["tasks"] = ["n1", "n2", "n3", "n4"]
    found = goes_on_with(said)
    assert (found.total.begun, found.total.hits, found.unknown, found.withheld) == (begun, 2, 0, {})


def branch(outcome: str) -> dict[str, str]:
    return {"node": "d1", "outcome": outcome}


def goes_on_with(said: dict[str, Any], waits: bool = False, budget: Budget = BUDGETS["normal"]) -> Backtest:
    """A capability is predicted, and comes; the result that it begins with `waits` already or does not."""
    first, other = played([Turn(READ, "a", 0, 80), Turn(READ, "x", 50, 80)])
    calls = (
        PlayedCall(READ, {"path": "b"}, {"found": "c"}, 50),
        PlayedCall(READ, {"path": "c"}, {"found": "e"}, 50),
    )
    second = PlayedRun(Past("cap_1", {}, {}), "", other.ended_ms + 100, other.ended_ms + 200, calls)
    before = predicted((READ, {"path": "b"}, 0.95)) if waits else {"learner": "none"}
    told = iter([before, said, {"learner": "none"}])
    terms = Terms(THRESHOLD, budget, catalog(), {READ: 10.0})
    (found,) = backtests(
        [[first, other, second]], lambda request: PredictAnswer.model_validate(next(told)), [terms]
    )
    return found


def test_a_capability_goes_on_with_a_result_that_waits() -> None:
    found = goes_on_with(whole().model_dump(mode="json"), waits=True)
    assert (found.total.begun, found.total.hits, found.total.wasted) == (2, 2, 0)
    assert found.withheld == {"cached": 1}


def test_what_goes_on_with_a_result_that_waits_keeps_within_the_budget() -> None:
    said = whole().model_dump(mode="json")
    other = predicted((READ, {"path": "e"}, 0.95))
    said["workflow"]["tasks"] += other["workflow"]["tasks"]
    said["candidates"] += other["candidates"]
    found = goes_on_with(said, waits=True, budget=BUDGETS["low"])
    assert (found.total.begun, found.withheld) == (2, {"cached": 1}), "the first read, and the other one"
    few = goes_on_with(whole().model_dump(mode="json"), budget=Budget(3, 1, 1_000_000))
    assert few.total.begun == 1


def test_what_goes_on_with_a_result_that_was_used_and_is_not_asked_for_is_wasted() -> None:
    """The next run asks for something else: what the result was is known from the run that used it."""
    turns = [Turn(READ, "a", 0, 80), Turn(READ, "b", 100, 80), Turn(READ, "x", 100, 80)]
    runs = played(turns)
    used = PlayedCall(READ, {"path": "b"}, {"found": "c"}, 80.0)
    runs[1] = PlayedRun(runs[1].element, "", runs[1].started_ms, runs[1].ended_ms, (used,))
    told = iter(
        [predicted((READ, {"path": "b"}, 0.95)), whole().model_dump(mode="json"), {"learner": "none"}]
    )
    terms = Terms(THRESHOLD, BUDGETS["normal"], catalog(), {READ: 200.0})
    (found,) = backtests([runs], lambda request: PredictAnswer.model_validate(next(told)), [terms])
    assert (found.total.begun, found.total.hits, found.total.wasted, found.unknown) == (2, 1, 1, 0)


@pytest.mark.parametrize(("mode", "begun"), [("fast", 2), ("slow", 1)])
def test_a_decision_about_parameters_is_taken_before_anything_begins(mode: str, begun: int) -> None:
    said = whole().model_dump(mode="json")
    said["workflow"]["tasks"][1] |= {
        "arguments": {"path": {"type": "literal", "value": "c"}},
        "condition": [{"node": "d1", "outcome": "true"}],
    }
    said["workflow"]["decisions"] = [{"id": "d1", "expression": f"'{mode}' == 'fast'"}]
    found = goes_on_with(said)
    assert (found.total.begun, found.total.hits, found.unknown) == (begun, begun, 0)


def test_of_an_answer_whose_calls_have_no_order_nothing_begins() -> None:
    said = whole().model_dump(mode="json")
    said["workflow"]["tasks"][0]["depends_on"] = ["n2"]
    found = goes_on_with(said)
    assert (found.total.begun, found.asked, found.withheld) == (0, 3, {})


def test_what_a_capability_begins_with_twice_begins_once() -> None:
    runs = played([Turn(READ, "a.md", 0, 80), Turn(READ, "b.md", 100, 80)])
    terms = Terms(THRESHOLD, BUDGETS["low"], catalog(), {})
    said = iter([PredictAnswer.model_validate(twice("n1", "n2")), PredictAnswer(learner="markov_1")])
    (found,) = backtests([runs], lambda request: next(said), [terms])
    assert (found.total.begun, found.total.hits, found.total.wasted) == (1, 1, 0)


def test_what_served_once_serves_again_until_it_is_written() -> None:
    turns = right([Turn(READ, "a", 0, 80), Turn(READ, "b", 100, 80)])
    again, write = Turn(READ, "b", 100, 80), Turn(WRITE, "b", 100, 80)
    total = held_against([*turns, again]).total
    assert (total.hits, total.again, total.saved_ms) == (1, 1, 160)
    assert held_against([*turns, write, again]).total.again == 0
    assert held_against([*turns, Turn(WRITE, "z", 100, 80), again]).total.again == 1
    assert held_against([*turns, Turn(WRITE, "[REDACTED]", 100, 80), again]).total.again == 0
    assert held_against([*turns, Turn("time:now", "b", 100, 80), again]).total.again == 1
    assert held_against([*turns, Turn("files:delete_file", "z", 100, 80), again]).total.again == 0
    assert held_against([*turns, Turn(READ, "b", TTL_MS + 1, 80)]).total.again == 0


def test_a_result_waits_for_the_run_after_the_next_until_it_is_written() -> None:
    first = Turn(READ, "a", 0, 80, ((READ, "b", 0.95),))
    other, asks = Turn(READ, "c", 100, 80), Turn(READ, "b", 100, 80)
    total = held_against([first, other, asks]).total
    assert (total.begun, total.hits, total.saved_ms, total.wasted_ms) == (1, 1, 80, 0)
    written = held_against([first, Turn(WRITE, "b", 100, 80), asks]).total
    assert (written.hits, written.wasted_ms) == (0, 80)
    beside = held_against([first, Turn(WRITE, "z", 100, 80), asks]).total
    assert (beside.hits, beside.wasted_ms) == (1, 0)
    too_late = held_against([first, other, Turn(READ, "b", TTL_MS + 1, 80)]).total
    assert (too_late.hits, too_late.wasted_ms) == (0, 80)


def chain(length: int) -> PredictAnswer:
    """A capability that reads a file, and what it found there, and so on."""
    tasks: list[dict[str, Any]] = [{"id": "n1", "tool": READ, "arguments": {"path": "p1"}}]
    for number in range(1, length):
        path = {"type": "reference", "expression": f"n{number}.found"}
        tasks.append({"id": f"n{number + 1}", "tool": READ, "arguments": {"path": path}})
    names = [task["id"] for task in tasks]
    told = {"name": "cap_1", "likelihood": 0.95, "confidence": 0.95, "tasks": names}
    return PredictAnswer.model_validate(
        {"learner": "markov_1", "first": "cap_1", "candidates": [told], "workflow": {"tasks": tasks}}
    )


def comes(times: Sequence[int], gap_ms: int) -> ToolAccount:
    """A capability of calls that wait for each other is predicted and comes, its tools taking these times."""
    (first,) = played([Turn(READ, "a", 0, 80)])
    calls = tuple(
        PlayedCall(READ, {"path": f"p{number}"}, {"found": f"p{number + 1}"}, float(tool_ms))
        for number, tool_ms in enumerate(times, start=1)
    )
    began_ms = first.ended_ms + gap_ms
    second = PlayedRun(Past("cap_1", {}, {}), "", began_ms, began_ms + sum(times), calls)
    told = iter([chain(len(times)), PredictAnswer(learner="markov_1")])
    terms = Terms(THRESHOLD, BUDGETS["high"], catalog(), {READ: 80.0})
    return backtests([[first, second]], lambda request: next(told), [terms])[0].total


@pytest.mark.parametrize(
    ("times", "gap_ms", "saved_ms", "hits"),
    [
        ([80, 80], 100, 100, 2),
        ([1000, 1000], 100, 100, 1),
        ([1000, 1000], 1000, 1000, 1),
        ([80, 80], 500, 160, 2),
    ],
)
def test_a_call_that_waits_for_another_begins_when_that_has_ended(
    times: list[int], gap_ms: int, saved_ms: float, hits: int
) -> None:
    """Not where the run itself comes there first: it makes the call, and nothing is wasted."""
    total = comes(times, gap_ms)
    assert (total.begun, total.hits, total.saved_ms, total.wasted_ms) == (hits, hits, saved_ms, 0)


@given(st.lists(st.sampled_from([10, 80, 500]), min_size=1, max_size=4), st.integers(1, 1_000))
def test_calls_that_wait_for_each_other_save_no_more_time_than_there_was(
    times: list[int], gap_ms: int
) -> None:
    """As much as if they ran one after another from when they were predicted; the core begins the same."""
    total = comes(times, gap_ms)
    assert total.saved_ms == min(sum(times), gap_ms)
    assert (total.begun, total.hits) == chained_in_the_core(times, gap_ms)


def chained_in_the_core(times: Sequence[int], gap_ms: int) -> tuple[int, int]:
    """Calls begun as predicted, and tasks served by them, where that capability comes after the pause."""
    known = world()
    done(known, "run_0", "a")
    known.answer(known.call_of(PREDICT_TOOL), chain(len(times)).model_dump(mode="json"))
    foreseen_ms = known.time_ms
    ends = [foreseen_ms + sum(times[:number]) for number in range(1, len(times) + 1)]
    for number, end_ms in enumerate(ends, start=1):
        if end_ms < foreseen_ms + gap_ms:
            known.time_ms = end_ms
            known.answer(known.call_of(f"n{number}"), {"found": f"p{number + 1}"})
    known.time_ms = foreseen_ms + gap_ms
    known.start({**chain(len(times)).model_dump(mode="json")["workflow"], "intent": "look"}, "run_1")
    while called := [each for each in known.open_calls.values() if each.tool == READ]:
        known.time_ms += 500
        (number,) = {int(each.task_id[1:]) for each in called}
        known.answer(called[0].call_id, {"found": f"p{number + 1}"})
    begun = [e for e in known.of_type("speculation.started") if e.data.kind == "prediction"]
    served = Counter(event.data.served_by for event in known.of_type("task.completed"))
    return len(begun), served["speculation"] + served["joined"]


def test_what_two_capabilities_call_has_ended_when_its_one_call_has() -> None:
    """One reads a and then what it found, the other begins with the same, and goes on elsewhere."""
    said = whole().model_dump(mode="json")
    other = {"name": "cap_2", "likelihood": 0.95, "confidence": 0.95, "tasks": ["n3", "n4"]}
    path = {"type": "reference", "expression": "n3.found"}
    said["workflow"]["tasks"] += [
        said["workflow"]["tasks"][0] | {"id": "n3"},
        {"id": "n4", "tool": SEARCH, "arguments": {"path": path}},
    ]
    said["candidates"].append(other)
    found = goes_on_with(said)
    assert (found.withheld, found.tools[SEARCH].begun) == ({"cached": 1}, 1)
    assert found.tools[SEARCH].wasted_ms == 100 - 50, "it still runs when the run comes"


def test_what_still_runs_when_another_run_comes_is_wasted_from_when_it_began() -> None:
    said = whole().model_dump(mode="json")
    said["workflow"]["tasks"][1]["tool"] = SEARCH
    found = goes_on_with(said)
    assert (found.total.begun, found.total.hits, found.tools[SEARCH].wasted_ms) == (2, 1, 50)


def changing(written: str, before: bool) -> tuple[PlayedCall, ...]:
    """A run that writes there and reads b; the one before or after the other."""
    calls = (PlayedCall(WRITE, {"path": written}, {}, 50.0), PlayedCall(READ, {"path": "b"}, {}, 80.0))
    return calls if before else calls[::-1]


@pytest.mark.parametrize(
    ("written", "before", "hits"), [("b", True, 0), ("b", False, 1), ("z", True, 1), ("/b", True, 0)]
)
@pytest.mark.parametrize("gap_ms", [50, 200])
def test_what_the_next_run_has_changed_before_it_reads_it_is_no_hit(
    written: str, before: bool, hits: int, gap_ms: int
) -> None:
    (first,) = played([Turn(READ, "a", 0, 80)])
    began_ms, calls = first.ended_ms + gap_ms, changing(written, before)
    second = PlayedRun(None, "", began_ms, began_ms + 130, calls)
    terms = Terms(THRESHOLD, BUDGETS["normal"], catalog(), {READ: 80.0})
    (found,) = backtests([[first, second]], answers([(READ, "b", 0.95)], []), [terms])
    saved_ms, wasted_ms = (min(80, gap_ms), 0) if hits else (0, min(80, gap_ms))
    assert (found.total.begun, found.total.hits) == (1, hits)
    assert (found.total.saved_ms, found.total.wasted_ms) == (saved_ms, wasted_ms)
    assert served_in_the_core(calls, gap_ms) == hits


def served_in_the_core(calls: Sequence[PlayedCall], gap_ms: int) -> int:
    """How many calls of a run, one after another, are served early where a read of b was predicted."""
    known = world()
    done(known, "run_0", "a")
    foretell(known, (READ, {"path": "b"}, 0.95))
    for left_ms in _between(known, Turn(READ, "b", gap_ms, 80)):
        known.time_ms += left_ms
    tasks = [
        {"id": f"n{number}", "tool": each.tool, "arguments": dict(each.arguments)}
        | ({"depends_on": [f"n{number - 1}"]} if number > 1 else {})
        for number, each in enumerate(calls, start=1)
    ]
    known.start({"tasks": tasks, "intent": "look"}, "run_1")
    while called := [each.call_id for each in known.open_calls.values() if each.run_id == "run_1"]:
        known.time_ms += 80
        known.answer(called[0], {"learner": "none"})
    served = [event.data.served_by for event in known.of_type("task.completed")]
    return served.count("speculation") + served.count("joined")


NAMED = st.tuples(
    st.sampled_from([READ, SEARCH, WRITE]), st.sampled_from(["a.md", "b.md"]), st.sampled_from([0.5, 0.95])
)
TURNS = st.builds(
    Turn,
    tool=st.sampled_from([READ, READ, SEARCH, WRITE]),
    path=st.sampled_from(["a.md", "b.md", "c.md"]),
    gap_ms=st.sampled_from([5, 50, 200, TTL_MS + 1_000]),
    tool_ms=st.just(100),
    named=st.lists(NAMED, max_size=3).map(tuple),
)


def through_the_core(turns: Sequence[Turn]) -> tuple[int, int, int]:
    """The same session in the real core: calls begun as predicted, runs served by them, and served again."""
    known = world()
    for number, turn in enumerate(turns):
        run_id = f"run_{number}"
        for left_ms in _between(known, turn):
            known.time_ms += left_ms
        call(known, run_id, turn.path, turn.tool)
        if known.session.runs[run_id].status != "completed":
            late = joined_early(known, run_id)
            known.time_ms += max(0, turn.tool_ms - turn.gap_ms) if late else turn.tool_ms
            known.answer(known.call_of("n1", run_id), {"text": turn.path})
        found = [(tool, {"path": path}, confidence) for tool, path, confidence in turn.named]
        known.answer(known.call_of(PREDICT_TOOL), predicted(*found) if found else {"learner": "none"})
    begun = [e for e in known.of_type("speculation.started") if e.data.kind == "prediction"]
    served = Counter(event.data.served_by for event in known.of_type("task.completed"))
    return len(begun), served["speculation"] + served["joined"], served["repeat"]


def joined_early(known: SessionWorld, run_id: str) -> bool:
    """Whether the one call of a run joined one that was under way."""
    started = [event for event in known.of_type("task.started") if event.run_id == run_id]
    return bool(started[-1].data.served_by == "joined")


def _between(known: SessionWorld, turn: Turn) -> list[int]:
    """The pause, in which the calls that were begun end where it is long enough."""
    if turn.gap_ms < turn.tool_ms:
        return [turn.gap_ms]
    known.time_ms += turn.tool_ms
    for made in [each for each in known.open_calls.values() if each.speculative]:
        known.answer(made.call_id, {"text": str(made.arguments["path"])})
    return [turn.gap_ms - turn.tool_ms]


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.lists(TURNS, min_size=1, max_size=4), max_size=3))
def test_several_terms_come_to_what_each_comes_to_alone(sessions: list[list[Turn]]) -> None:
    runs = [played(turns) for turns in sessions]
    named = [turn.named for turns in sessions for turn in turns]
    terms = [
        Terms(threshold, BUDGETS[budget], catalog(), paces(runs))
        for threshold, budget in ((0.1, "normal"), (0.93, "low"), (0.93, "high"), (1.0, "normal"))
    ]
    looked_at: list[int] = []
    together = backtests(runs, answers(*named), terms, lambda: looked_at.append(1))
    assert together == [backtests(runs, answers(*named), [each])[0] for each in terms]
    assert len(looked_at) == len(sessions)


def test_the_best_threshold_saves_most_of_those_that_waste_little() -> None:
    came_to = {
        0.2: ToolAccount(begun=20, hits=10, saved_ms=900),
        0.4: ToolAccount(begun=10, hits=7, saved_ms=600),
        0.5: ToolAccount(begun=9, hits=7, saved_ms=600),
        0.9: ToolAccount(begun=1, hits=1, saved_ms=90),
        0.95: ToolAccount(),
    }
    assert best_threshold(came_to, 0.35) == 0.5
    assert best_threshold(came_to, 0.5) == 0.2
    assert best_threshold(came_to, 0.0) == 0.9
    assert best_threshold({0.95: ToolAccount(), 0.5: ToolAccount(begun=3)}, 1.0) is None


@settings(max_examples=60, derandomize=True)
@given(st.lists(TURNS, min_size=1, max_size=5))
def test_it_says_what_the_core_does(turns: list[Turn]) -> None:
    total = held_against(turns).total
    assert (total.begun, total.hits, total.again) == through_the_core(turns)
