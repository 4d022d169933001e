"""The bound: beside a simulation that looks at every millisecond, a closed form, and PML's own core."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.speculation.conversion import SourceWorkflow, steps_of
from benchmarks.speculation.model import Step, by_layer_s, ideal, in_turn_s
from tests.benchmarks.speculation.strategies import workflows

Drawn = tuple[SourceWorkflow, tuple[float, ...]]


def ticked_ms(steps: Sequence[Step], depth: int, concurrent: int, decision_ms: int) -> int:
    """The same rules, asked anew at every millisecond."""
    length = [round(step.tool_s * 1_000) for step in steps]
    began: dict[int, int] = {}
    layer, released_at, now = 0, 0, 0
    numbers = range(len(steps))

    def done(number: int) -> bool:
        return number in began and began[number] + length[number] <= now

    def quiet(step: Step, number: int) -> bool:
        other = steps[number]
        runs = number in began and not done(number)
        return other.safe or done(number) or not (runs or other.layer < step.layer)

    for number in numbers:
        if steps[number].layer == 0:
            began[number] = 0
    while True:
        ended = [number for number in numbers if steps[number].layer <= layer]
        last_end = max([released_at, *(began[number] + length[number] for number in ended)])
        if last_end <= now and layer == max(step.layer for step in steps):
            return last_end
        if last_end <= now and last_end + decision_ms <= now:
            layer, released_at = layer + 1, now
            for number in numbers:
                if steps[number].layer == layer:
                    began.setdefault(number, now)
            continue
        looked = any(done(one) for one in began)
        for number in numbers:
            step = steps[number]
            ahead = layer < step.layer <= layer + depth and number not in began and step.safe
            early = [one for one in began if steps[one].layer > layer and not done(one)]
            known = all(done(one) for one in step.needs)
            if (
                ahead
                and known
                and looked
                and len(early) < concurrent
                and all(quiet(step, n) for n in numbers)
            ):
                began[number] = now
        now += 1


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 3), st.integers(1, 3), st.sampled_from([0, 7]))
def test_the_model_is_what_a_look_at_every_millisecond_finds(
    data: st.DataObject, depth: int, concurrent: int, decision_ms: int
) -> None:
    source, _ = data.draw(workflows())
    latencies = [
        (data.draw(st.integers(1, 6)) * 256 + 2**number) / 1_000 for number in range(len(source.tasks))
    ]
    steps = steps_of(source, latencies)
    decisions_s = [decision_ms / 1_000] * (source.layers - 1)
    found = ideal(steps, depth, concurrent, decisions_s if decision_ms else ())
    assert found.total_s * 1_000 == pytest.approx(ticked_ms(steps, depth, concurrent, decision_ms))


def free_s(steps: Sequence[Step]) -> float:
    """One layer ahead with nothing to hold it up but data: a closed form, layer by layer."""
    release_s: list[float] = [0.0]
    end_s: dict[int, float] = {}
    for layer in range(1 + max(step.layer for step in steps)):
        for number, step in enumerate(steps):
            if step.layer != layer:
                continue
            # Something must have ended in the layer before: that is when PML looks ahead.
            ends = [end_s[n] for n, other in enumerate(steps) if other.layer < layer]
            looks = [max(end, release_s[layer - 1]) for end in ends if end <= release_s[layer]]
            known = max([end_s[n] for n in step.needs], default=0.0)
            early_s = min((look for look in looks if look >= known), default=inf)
            end_s[number] = max(release_s[layer], min(early_s, release_s[layer]) + step.tool_s)
        release_s.append(max(end_s[n] for n, step in enumerate(steps) if step.layer <= layer))
    return release_s[-1]


@given(workflows())
def test_without_writes_and_limits_the_model_is_the_closed_form(drawn: Drawn) -> None:
    source, latencies = drawn
    steps = [Step(s.layer, s.tool_s, True, s.needs) for s in steps_of(source, latencies)]
    assert ideal(steps, 1, concurrent=100).total_s == pytest.approx(free_s(steps))


@given(workflows())
def test_speculation_never_makes_the_ideal_run_longer_than_its_layers(drawn: Drawn) -> None:
    steps = steps_of(*drawn)
    for depth in (1, 2, 3):
        assert ideal(steps, depth).total_s <= by_layer_s(steps) + 1e-9


@given(workflows(), st.floats(0, 5))
def test_without_speculation_a_run_is_its_layers_and_its_decisions(drawn: Drawn, decision_s: float) -> None:
    steps = steps_of(*drawn)
    decisions_s = [decision_s] * (drawn[0].layers - 1)
    expected = by_layer_s(steps) + sum(decisions_s)
    assert ideal(steps, 0, decisions_s=decisions_s).total_s == pytest.approx(expected)
    assert ideal(steps, 0).early == 0


def test_a_chain_gains_nothing_from_speculation_but_in_the_time_of_decisions() -> None:
    chain = [Step(number, 2.0, needs=frozenset({number - 1} if number else ())) for number in range(4)]
    assert ideal(chain, 3).total_s == in_turn_s(chain) == 8.0
    assert ideal(chain, 1, decisions_s=[1.0] * 3).total_s == 2.0 + 3 * 2.0
    assert ideal(chain, 1, decisions_s=[3.0] * 3).total_s == 2.0 + 3 * 3.0


def test_a_write_holds_up_the_reads_after_it_unless_it_is_of_another_service() -> None:
    quick, slow = Step(0, 1.0, service="a"), Step(0, 5.0, safe=False, service="b")
    assert ideal([quick, slow, Step(1, 3.0, service="b")], 1).total_s == 8.0
    assert ideal([quick, slow, Step(1, 3.0, service="a")], 1).total_s == 5.0


def test_three_at_a_time_are_early_and_the_fourth_waits_for_a_place() -> None:
    roots = [Step(0, 1.0), Step(0, 10.0)]
    after = [Step(1, 4.0) for _ in range(4)]
    assert ideal(roots + after, 1).total_s == 10.0
    assert ideal(roots + after, 1).early == 4
    assert ideal([*roots, *after, *after], 1, concurrent=1).early == 3
