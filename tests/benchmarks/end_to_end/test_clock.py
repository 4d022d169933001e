"""The clock of a predicted session: what is saved, what is wasted, and never more than the oracle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.end_to_end.clock import Call, Guess, Rules, oracle, played, unpredicted
from pml.processors.speculation.budget import Budget

RULES = Rules(threshold=0.5)
FIRST, READ, SLOW = (
    Call("a", b"a", True, 1.0, 2.0),
    Call("b", b"b", True, 1.5, 2.0),
    Call("c", b"c", True, 5.0, 2.0),
)


def guess(call: Call, confidence: float = 0.9) -> Guess:
    return Guess(call.tool, call.key, confidence, call.safe, call.tool_s)


def test_what_ended_while_the_agent_thought_costs_no_time() -> None:
    found = played([FIRST, READ], [[guess(READ)], []], RULES)
    assert found.wall_s == pytest.approx(unpredicted([FIRST, READ]).wall_s - 1.5)
    assert (found.begun, found.hits, found.waste) == (1, 1, 0.0)


def test_what_still_runs_is_joined_and_saves_the_thought() -> None:
    found = played([FIRST, SLOW], [[guess(SLOW)], []], RULES)
    assert found.wall_s == pytest.approx(unpredicted([FIRST, SLOW]).wall_s - 2.0)
    assert found.used_s == pytest.approx(5.0)


def test_what_is_wrong_runs_until_the_next_call_begins() -> None:
    found = played([FIRST, READ], [[guess(SLOW)], []], RULES)
    assert found.wall_s == pytest.approx(unpredicted([FIRST, READ]).wall_s)
    assert found.wasted_s == pytest.approx(2.0)
    assert found.waste == float("inf")


def test_what_ended_before_the_next_call_waits_for_the_one_after_it() -> None:
    calls = [FIRST, SLOW, READ]
    found = played(calls, [[guess(READ)], [], []], RULES)
    assert found.wall_s == pytest.approx(unpredicted(calls).wall_s - 1.5)
    assert (found.hits, found.waste) == (1, 0.0)


def test_what_begins_after_the_last_call_is_all_wasted() -> None:
    assert played([FIRST], [[guess(SLOW)]], RULES).wasted_s == pytest.approx(5.0)


def test_nothing_begins_that_is_not_sure_enough_writes_or_has_no_budget() -> None:
    write = Guess("w", b"w", 1.0, False, 1.0)
    held = played([FIRST, READ], [[guess(READ, 0.4), write], []], RULES)
    assert (held.begun, held.wall_s) == (0, unpredicted([FIRST, READ]).wall_s)
    one = Rules(0.5, budget=Budget(1, 1, 300_000))
    assert played([FIRST, READ, SLOW], [[guess(SLOW), guess(READ)], [guess(SLOW)], []], one).begun == 1


def test_a_result_serves_again_until_something_is_written() -> None:
    write = Call("w", b"w", False, 1.0, 1.0)
    again = played([FIRST, READ, READ], [[guess(READ)], [], []], RULES)
    assert again.wall_s == pytest.approx(unpredicted([FIRST, READ, READ]).wall_s - 3.0)
    after = played([FIRST, READ, write, READ], [[guess(READ)], [], [], []], RULES)
    assert after.wall_s == pytest.approx(unpredicted([FIRST, READ, write, READ]).wall_s - 1.5)


def test_asking_costs_its_time_after_each_call() -> None:
    costs = Rules(0.5, asked_s=0.01)
    assert played([FIRST, READ], [[], []], costs).wall_s == pytest.approx(6.52)


CALLS = st.lists(
    st.builds(
        lambda key, safe, tool_s, thought_s: Call(key, (key + str(safe)).encode(), safe, tool_s, thought_s),
        st.sampled_from("abc"),
        st.booleans(),
        st.sampled_from([0.5, 1.0, 4.0]),
        st.sampled_from([1.0, 3.0]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50, deadline=None)
@given(CALLS, st.floats(0, 1))
def test_time_is_only_ever_saved_and_each_call_begun_is_used_or_wasted(
    calls: list[Call], confidence: float
) -> None:
    # A tool takes as long for the same arguments.
    calls = [Call(c.tool, c.key, c.safe, 1.0 + c.key[0] % 3, c.thought_s) for c in calls]
    guesses = [[guess(each, confidence) for each in calls[:2]] for _ in calls]
    nothing, found, best = unpredicted(calls), played(calls, guesses, RULES), oracle(calls)
    assert best.wall_s <= nothing.wall_s + 1e-9
    assert found.wall_s <= nothing.wall_s + 1e-9
    assert found.begun >= found.hits
    assert best.wasted_s == 0.0
