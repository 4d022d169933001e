"""How edges of the tool graph learn, and when they are told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.capabilities import edge_weights
from pml.processors.capabilities.edge_weights import (
    START,
    TELL_FROM,
    KnownEdge,
    after_run,
    edge_parts,
    edge_record,
    edge_subject,
    new_edge,
    surplus_edges,
    told,
)
from pml.processors.capabilities.edges import EdgeKey

KEY = EdgeKey("sequence", "files:read", "notes:add")


def after(*outcomes: bool, key: EdgeKey = KEY) -> KnownEdge:
    known = new_edge(key)
    for success in outcomes:
        known = after_run(known, success)
    return known


def test_weights_begin_as_the_design_says() -> None:
    weights = {name: START[name] for name in ("dependency", "contains", "provides", "sequence")}
    assert weights == {"dependency": 1.0, "contains": 0.8, "provides": 0.7, "sequence": 0.5}
    assert START["co_occurrence"] < 0.5


def test_a_weight_goes_a_tenth_of_the_way_with_each_run() -> None:
    assert after(True).weight == pytest.approx(0.55)
    assert after(False).weight == pytest.approx(0.45)
    assert after(True, False).weight == pytest.approx(0.495)


@given(st.lists(st.booleans(), max_size=200), st.sampled_from(sorted(START)))
def test_a_weight_is_the_sum_of_what_every_run_left_of_it(outcomes: list[bool], kind: str) -> None:
    """Twin: the closed form of an exponential average."""
    key = replace(KEY, type=kind)  # type: ignore[arg-type]
    known, runs = after(*outcomes, key=key), len(outcomes)
    closed = START[key.type] * 0.9**runs + sum(
        0.1 * 0.9 ** (runs - 1 - place) for place, success in enumerate(outcomes) if success
    )
    assert known.weight == pytest.approx(closed)
    assert 0.0 <= known.weight <= 1.0
    assert (known.runs, known.successes) == (runs, sum(outcomes))


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_what_is_told_is_never_off_by_much_and_told_seldom(outcomes: list[bool]) -> None:
    known, times = new_edge(KEY), 0
    for success in outcomes:
        known = after_run(known, success)
        if known.stale:
            known, times = told(known), times + 1
        assert abs(known.weight - known.told_weight) < TELL_FROM
        assert known.told_runs <= known.runs < 2 * known.told_runs
    if all(outcomes):
        assert times <= 15


def test_a_new_field_is_told() -> None:
    known = told(after_run(after(True, True, True), True, [("a", "b")]))
    assert not known.stale
    assert after_run(known, True, [("c", "d")]).stale


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_subject_names_its_edge(source: str, target: str) -> None:
    key = EdgeKey("provides", source, target)
    assert edge_parts(edge_subject("local", key)) == ("local", key)


@pytest.mark.parametrize(
    "subject", ["edge/local/likes/a/b", "branch_stats/local/provides/a/b", "edge/local/a"]
)
def test_a_subject_of_something_else_is_none(subject: str) -> None:
    with pytest.raises(ValueError, match=r"edge|unpack"):
        edge_parts(subject)


def test_a_record_says_what_runs_taught() -> None:
    known = after_run(after(False), True, [(None, "text")])
    told_of = edge_record("local", known, "2026-11-22T00:00:00.000000Z")
    assert (told_of.runs, told_of.successes, told_of.weight) == (2, 1, 0.505)
    assert [(item.from_field, item.to_field) for item in told_of.fields] == [(None, "text")]


def test_the_edges_that_no_run_used_for_longest_go_some_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_weights, "EDGES_MAX", 4)
    monkeypatch.setattr(edge_weights, "EDGES_KEPT", 2)
    assert list(surplus_edges({"a": "3", "b": "1", "c": "2", "d": "4"})) == []
    assert list(surplus_edges({"a": "3", "b": "1", "c": "2", "d": "4", "e": "2"})) == ["b", "c", "e"]
