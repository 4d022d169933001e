"""Features are what their names say, weights are learned without looking ahead, and it pays where it can."""

from __future__ import annotations

import io
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning import ranked_cases
from pml.processors.learning.candidates import candidates, parts
from pml.processors.learning.clause_features import CLAUSES
from pml.processors.learning.components import LIKELY, Components
from pml.processors.learning.evaluation import quality
from pml.processors.learning.evidence import COMPARED, Evidence, evidence
from pml.processors.learning.features import (
    CONTEXTS,
    DESCRIBED,
    NAMES,
    PROPOSING,
    SURE,
    contexts,
    features,
    union,
)
from pml.processors.learning.learners import LEARNERS, Given, asked
from pml.processors.learning.linear_scorer import LinearScorer
from pml.processors.learning.markov import Markov
from pml.processors.learning.ranker import Basis, Ranker, Reading
from pml.processors.learning.requests import Compared, Requests, read_requests
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, Prefixes, TraceSet
from pml.processors.learning.vocabulary import Ids
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.prediction import HISTORY_MOST
from tests.processors.learning.small_sessions import drawn_sessions, wordy_sessions
from tests.processors.learning.small_traces import LISTS, SIZE, trace_set

DESCRIPTIONS = ["", "read a file", "send a mail", "draw a chart", "fetch the weather forecast"]
TEXTS = [
    "read the file, then draw a chart and send it as a mail",
    "what is the weather forecast",
    "hello",
    "draw a chart of the weather, send the chart",
]
EMBEDDING = HashedNgrams()
TURNS = [name for name in CLAUSES if name not in ("clause", "clause_uncovered")]
POINTS = EMBEDDING.embed(DESCRIPTIONS)
REQUESTS = read_requests(TEXTS, DESCRIPTIONS, EMBEDDING)
BESIDE = REQUESTS.compared(np.arange(len(TEXTS)))


def looked_at(lists: list[list[int]], texts: list[int]) -> tuple[TraceSet, Evidence]:
    traces = trace_set(lists, texts=texts[: len(lists)])
    components = Components.fit(traces, POINTS, REQUESTS, 1)
    return traces, evidence(components, traces.prefixes(traces.positions(0)), REQUESTS)


def fit_of(texts: Compared, clause: int, item: int) -> float:
    cosine = float(texts.clause_points[clause].astype(float) @ POINTS[item].astype(float))
    return cosine + float(texts.clause_lexical[clause, item]) if item else 0.0


def features_twin(found: Evidence, row: int, items: list[int], place: int) -> dict[str, float]:
    """One candidate, feature by feature; what the clauses say has twins of its own."""
    item = items[place]
    signals = {name: values[row] for name, values in found.signals.items()}
    history = found.prefixes.items[found.prefixes.starts[row] : found.prefixes.ends[row]].tolist()
    habits, named = found.components.habits, [each for each in items if each]
    told = {f"log_{name}": log(max(signals[name][item], 1e-4)) for name in LIKELY}
    told |= {name: signals[name][item] for name in (*COMPARED, *DESCRIBED)}
    told["log_later"] = log(signals["later"][item] + 1e-3)
    for name in (*PROPOSING, "wanted"):
        order = sorted(named, key=lambda each: (-signals[name][each], each))
        told[f"{name}_rank"] = 1 / (1 + order.index(item)) if signals[name][item] > 0 else 0
    return told | {
        "never_called": float(found.components.popularity.shares[item] == 0),
        "log_count": log(1 + habits.counts[item]),
        "out_of_place": len(history) - habits.places[item],
        "often_first": habits.firsts[item],
        "often_last": habits.lasts[item],
        "times": history.count(item),
        "again": float(history[-1:] == [item]),
        "log_calls": log(1 + len(history)),
        **{f"{name}_most": max(signals[name]) for name in SURE},
    }


def clauses_twin(found: Evidence, row: int, item: int) -> dict[str, float]:
    """What the clauses say of one candidate, clause by clause; whose turn it is has a test of its own."""
    history = found.prefixes.items[found.prefixes.starts[row] : found.prefixes.ends[row]].tolist()
    text = int(found.rows[row])
    if text == NO_TEXT:
        return {"clause": 0, "clause_uncovered": 0}
    clauses = range(found.texts.offsets[text], found.texts.offsets[text + 1])
    covered = [max([0.0, *(fit_of(found.texts, clause, each) for each in history)]) for clause in clauses]
    fits = [fit_of(found.texts, clause, item) for clause in clauses]
    gains = [fit - before for fit, before in zip(fits, covered, strict=True)]
    return {"clause": max(fits), "clause_uncovered": max(gains)}


@settings(max_examples=25)
@given(LISTS, st.lists(st.sampled_from([NO_TEXT, 0, 1, 2]), min_size=6, max_size=6))
def test_features_are_those_found_one_by_one(lists: list[list[int]], texts: list[int]) -> None:
    _, found = looked_at(lists, texts)
    items = union(found)
    given_ones = features(found, items)
    assert given_ones.shape == (*items.shape, len(NAMES))
    for row, each in enumerate(items.tolist()):
        for place, item in enumerate(each):
            told = dict(zip(NAMES, given_ones[row, place].tolist(), strict=True))
            if not item:
                assert not any(told.values())
                continue
            expected = features_twin(found, row, each, place) | clauses_twin(found, row, item)
            assert {name: told[name] for name in expected} == pytest.approx(expected, abs=1e-4)
            assert {*NAMES} - {*expected} == {*TURNS, "clause_rank", "clause_uncovered_rank"}
        for name in ("clause", "clause_uncovered"):
            column, rank = (
                given_ones[row, :, NAMES.index(name)],
                given_ones[row, :, NAMES.index(f"{name}_rank")],
            )
            ranked = [column[place] for place in np.argsort(-rank) if rank[place] > 0]
            assert ranked == sorted(ranked, reverse=True)


@pytest.mark.parametrize("sessions", [drawn_sessions(40, 1, by_request=True), wordy_sessions(60, 1)])
def test_one_prefix_has_to_the_last_bit_the_features_it_has_among_many(sessions: Sessions) -> None:
    """Otherwise what serves one question differs from what was judged in batches: at a split, by a lot.

    However many candidates and clauses the others have.
    """
    descriptions = sessions.described()
    requests = read_requests(sessions.texts, descriptions, EMBEDDING)
    traces = sessions.traces
    components = Components.fit(traces, EMBEDDING.embed(descriptions), requests, 1)
    prefixes = traces.prefixes(traces.positions(0), requests.points)
    many = evidence(components, prefixes, requests)
    items = union(many)
    among = features(many, items)
    told = contexts(many, items, among.astype(np.float32))
    for row in range(len(prefixes)):
        one = evidence(components, prefixes.part(row, row + 1), requests)
        own = union(one)
        assert {
            name for name in one.signals if not np.array_equal(one.signals[name][0], many.signals[name][row])
        } == set()
        assert own[0].tolist() == items[row, : own.shape[1]].tolist()
        alone = features(one, own)
        assert np.array_equal(alone[0], among[row, : own.shape[1]])
        assert np.array_equal(contexts(one, own, alone.astype(np.float32))[0], told[row])


@pytest.mark.parametrize("learner", LEARNERS)
def test_it_makes_no_difference_which_questions_are_asked_together(learner: str) -> None:
    sessions = wordy_sessions(80, 2)
    descriptions = sessions.described()
    requests = read_requests(sessions.texts, descriptions, EMBEDDING)
    traces = sessions.traces
    learnt = LEARNERS[learner].fit(Given(traces, EMBEDDING.embed(descriptions), requests, 1))
    prefixes = traces.prefixes(traces.positions(0), requests.points)
    together = candidates(asked(learnt, requests), prefixes)
    for row in range(len(prefixes)):
        alone = candidates(asked(learnt, requests), prefixes.part(row, row + 1))
        assert alone.items[0].tolist() == together.items[row].tolist()
        assert alone.probabilities[0] == pytest.approx(together.probabilities[row], abs=1e-6)


@given(st.integers(0, 3_000), st.integers(0, 3_000_000))
def test_of_many_columns_fewer_rows_are_looked_at_together(rows: int, columns: int) -> None:
    found = [*parts(rows, columns)]
    assert [place for start, end in found for place in range(start, end)] == [*range(rows)]
    for start, end in found:
        assert end - start == 1 or (end - start <= 256 and (end - start) * columns <= 2**20)


def test_a_long_session_looks_as_what_is_remembered_of_it() -> None:
    """Who serves is told the latest items alone; training sees whole sessions."""
    asked = ", then ".join(DESCRIPTIONS[1 + number % 4] for number in range(30))
    requests = read_requests([asked], DESCRIPTIONS, EMBEDDING)
    traces = trace_set([[1 + number % 4 for number in range(30)], [2, 4, 1, 3] * 3], texts=[0, 0])
    components = Components.fit(traces, POINTS, requests, 1)
    whole = traces.prefixes(traces.positions(0))
    remembered = replace(whole, starts=np.maximum(whole.starts, whole.ends - HISTORY_MOST))
    long, short = (evidence(components, each, requests) for each in (whole, remembered))
    items = union(long)
    assert items.tolist() == union(short).tolist()
    assert len(requests.clause_points) > HISTORY_MOST
    assert np.array_equal(features(long, items), features(short, items))


def test_the_past_is_known_by_how_long_ago_it_was() -> None:
    _, found = looked_at([[1, 3, 1, 2]], [0])
    assert found.signals["recency"][3].tolist() == pytest.approx([0, 1, 0, 1 / 2, 0])
    nearness = POINTS.astype(float) @ POINTS[1].astype(float)
    assert found.signals["like_the_last"][3] == pytest.approx(nearness, abs=1e-6)
    assert found.signals["like_the_last"][0].tolist() == [0] * SIZE


def test_the_clause_whose_turn_it_is_is_seen() -> None:
    _, found = looked_at([[1, 3, 2]], [0])
    items = np.array([[1, 2, 3]] * 3, dtype=np.int32)
    in_turn = features(found, items)[:, :, NAMES.index("clause_in_turn")]
    assert in_turn.argmax(axis=1).tolist() == [0, 2, 1]


def test_clauses_that_calls_took_are_passed_over() -> None:
    _, found = looked_at([[1, 3, 2]], [0])
    items = np.array([[1, 2, 3]] * 3, dtype=np.int32)
    told = dict(zip(NAMES, np.moveaxis(features(found, items), 2, 0), strict=True))
    assert told["clauses_left"][:, 0].tolist() == [3, 2, 1]
    assert told["clause_next"].argmax(axis=1).tolist() == [0, 2, 1]
    assert told["clause_here"].argmax(axis=1).tolist() == [0, 0, 2]
    assert told["clause_next"][2] == pytest.approx([fit_of(BESIDE, 2, item) for item in (1, 2, 3)], abs=1e-6)
    assert told["clause_ahead"][1, 1] == pytest.approx(max(fit_of(BESIDE, 1, 2), 0.8 * fit_of(BESIDE, 2, 2)))


def test_names_are_looked_for_in_the_clauses_whose_turn_it_is() -> None:
    _, found = looked_at([[1, 3, 2]], [0])
    items = np.array([[1, 2, 3]] * 3, dtype=np.int32)
    told = dict(zip(NAMES, np.moveaxis(features(found, items), 2, 0), strict=True))
    titled = BESIDE.clause_titled[:3, 1:4]
    # "read the file", "draw a chart", "send it as a mail": each clause names one.
    assert titled.argmax(axis=1).tolist() == [0, 2, 1]
    assert told["titled"][0] == pytest.approx(BESIDE.titled[0, 1:4])
    assert told["clause_titled"][0] == pytest.approx(titled.max(axis=0))
    assert told["clause_next_titled"] == pytest.approx(titled)
    assert told["clause_here_titled"] == pytest.approx(np.array([[0, 0, 0], titled[0], titled[1]]))
    assert told["clause_free_titled"][1] == pytest.approx(titled[1:].max(axis=0))


@settings(max_examples=25)
@given(LISTS)
def test_candidates_are_the_best_of_each_once(lists: list[list[int]]) -> None:
    _, found = looked_at(lists, list(range(3)) * 2)
    for row, items in enumerate(union(found).tolist()):
        best = {item for name in PROPOSING for item in range(1, SIZE) if found.signals[name][row, item] > 0}
        assert sorted(item for item in items if item) == sorted(best)


def planted(count: int, seed: int) -> tuple[TraceSet, list[str], list[str]]:
    """The request says what comes and in which order; what was called before says nothing."""
    names = ["apple", "brick", "cloud", "daisy", "engine", "fossil", "guitar", "hammer"]
    descriptions = ["", *(f"handles one {name}" for name in names)]
    generator = np.random.default_rng(seed)
    lists = [(generator.permutation(len(names))[:3] + 1).tolist() for _ in range(count)]
    texts = [", then ".join(f"use the {names[item - 1]}" for item in items) for items in lists]
    return trace_set(lists), texts, descriptions


def fitted_on_planted(way: str) -> tuple[Ranker, Markov, TraceSet, Requests]:
    traces, texts, descriptions = planted(120, 1)
    requests = read_requests(texts, descriptions, EMBEDDING)
    training = traces.selected(np.arange(80))
    held_out = traces.selected(np.arange(80, 120))
    basis = Basis.fit(training, EMBEDDING.embed(descriptions), requests, 1)
    ranker = basis.linear() if way == "linear" else basis.boosted(1)
    return ranker, Markov.fit(training, len(descriptions), 2), held_out, requests


@pytest.mark.parametrize("way", ["linear", "boosted"])
def test_it_reads_what_counting_cannot_know_and_its_arrays_say_the_same(way: str) -> None:
    ranker, counting, held_out, requests = fitted_on_planted(way)
    asked = held_out.positions()
    prefixes, targets = held_out.prefixes(asked, requests.points), held_out.items[asked]
    found = candidates(Reading(ranker, requests), prefixes)
    assert quality(found, targets).means()["hit_1"] > 0.9
    assert quality(candidates(counting, prefixes), targets).means()["hit_1"] < 0.5
    file = io.BytesIO()
    np.savez(file, **ranker.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        again = Ranker.from_arrays(dict(arrays))
    assert Reading(again, requests).probabilities(prefixes).tolist() == (
        Reading(ranker, requests).probabilities(prefixes).tolist()
    )
    alone = [Reading(ranker, requests).probabilities(prefixes.part(row, row + 1))[0] for row in range(3)]
    assert np.array(alone) == pytest.approx(Reading(ranker, requests).probabilities(prefixes)[:3], abs=1e-4)


@pytest.mark.parametrize("way", ["linear", "boosted"])
def test_where_traces_end_nothing_is_likely(way: str) -> None:
    ranker, _, held_out, requests = fitted_on_planted(way)
    reading = Reading(ranker, requests)
    inside = reading.probabilities(held_out.prefixes(held_out.positions(), requests.points)).sum(axis=1)
    after = reading.probabilities(held_out.whole(np.arange(len(held_out)), requests.points)).sum(axis=1)
    assert np.median(after) < 0.2
    assert np.median(inside) > 0.7


def silent(features: int) -> LinearScorer:
    return LinearScorer(np.zeros(features), np.ones(features), np.zeros(features + 1))


def test_a_model_of_other_features_is_refused() -> None:
    components = Components.fit(trace_set([[1, 2]], texts=[0]), POINTS, REQUESTS, 1)
    found = Ranker(components, silent(len(NAMES)), silent(CONTEXTS)).to_arrays()
    with pytest.raises(ValueError, match="other features"):
        Ranker.from_arrays(found | {"means": np.zeros(3)})
    with pytest.raises(ValueError, match="other features"):
        Ranker.from_arrays(found | {"features": np.array([3])})
    with pytest.raises(ValueError, match="train it again"):
        Ranker.from_arrays({name: found[name] for name in found if name != "points"})


def test_no_component_sees_the_group_that_it_makes_features_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[1, 2, 3], [2, 3, 4]] * 10
    traces = trace_set(lists, texts=[0, 1] * 10)
    groups = np.repeat(np.arange(10), 2)
    traces = TraceSet(**(traces.to_arrays() | {"groups": groups}))
    fitted: dict[int, set[int]] = {}
    fit, cases, checked = Components.fit, ranked_cases.cases, []

    def fit_seen(seen: TraceSet, *rest: Any) -> Components:
        found = fit(seen, *rest)
        fitted[id(found)] = set(seen.groups.tolist())
        return found

    def cases_seen(components: Components, asked: Prefixes, came: Ids, requests: Requests) -> object:
        own = set(traces.groups[np.searchsorted(traces.offsets, asked.starts, side="right") - 1].tolist())
        checked.append(len(own))
        assert not own & fitted[id(components)]
        return cases(components, asked, came, requests)

    monkeypatch.setattr(Components, "fit", fit_seen)
    monkeypatch.setattr(ranked_cases, "cases", cases_seen)
    Basis.fit(traces, POINTS, REQUESTS, 1)
    # Once for the items of a group, once for its ends.
    assert sum(checked) == 20
    assert fitted[max(fitted, key=lambda each: len(fitted[each]))] == set(range(10))


def test_cases_of_a_group_are_of_one_fold() -> None:
    traces = trace_set([[1, 2], [2, 1], [3, 4]] * 4, texts=[0, 1, 2] * 4)
    grouped = TraceSet(**(traces.to_arrays() | {"groups": np.arange(12) // 2}))
    cases = Basis.fit(grouped, POINTS, REQUESTS, 1).cases
    # What came is told by its place among candidates: nothing else of a case names its trace.
    assert sorted(np.unique(cases.folds).tolist()) == list(range(5))
    assert np.all(np.bincount(cases.folds) % 4 == 0)


def test_what_a_trace_began_with_is_learned_too() -> None:
    found = Basis.fit(trace_set([[1], [2], [3]] * 4, texts=[0, 1, 2] * 4), POINTS, REQUESTS, 1)
    assert len(found.cases.items) == len(found.cases.folds) == 12


def test_without_traces_or_texts_it_names_nothing() -> None:
    none = read_requests([], DESCRIPTIONS, EMBEDDING)
    nothing = trace_set([[]])
    ranker = Basis.fit(nothing, POINTS, none, 1).linear()
    asked = trace_set([[1, 2]], texts=[NO_TEXT])
    found = Reading(ranker, none).probabilities(asked.prefixes(asked.positions()))
    assert found[:, 1:] == pytest.approx(found[:, 1:2].repeat(SIZE - 1, axis=1))


def test_a_request_without_clauses_is_one_and_lexical_shares_end_at_one() -> None:
    assert np.diff(REQUESTS.offsets).tolist() == [3, 1, 1, 2]
    assert BESIDE.lexical.max(axis=1).tolist() == [1, 1, 0, 1]
    assert BESIDE.lexical[1].argmax() == 4
    assert BESIDE.clause_lexical.shape == (7, SIZE)


def test_what_came_just_now_or_has_not_yet_is_no_case() -> None:
    """Neither what went on, nor that nothing did."""
    sessions = drawn_sessions(12, 1, by_request=True, items=3)
    requests = read_requests(sessions.texts, sessions.described(), EMBEDDING)
    points = EMBEDDING.embed(sessions.described())
    settled = np.arange(len(sessions.traces.items)) < 30
    some = replace(sessions.traces, settled=settled)
    every, asked = (ranked_cases.cross_fitted(each, points, requests, 1) for each in (sessions.traces, some))
    assert (len(every.items), len(every.ended)) == (36, 12)
    assert (len(asked.items), len(asked.ended)) == (36 - 4, 10)


@pytest.mark.parametrize("items", [2, 3])
def test_of_many_sessions_of_one_length_cases_are_of_every_place_and_ends_as_many_as_there_are(
    monkeypatch: pytest.MonkeyPatch, items: int
) -> None:
    sessions = drawn_sessions(60, 1, by_request=False, items=items)
    requests = read_requests(sessions.texts, sessions.described(), EMBEDDING)
    most = 30 * (items + 1)
    monkeypatch.setattr(ranked_cases, "CASES_MOST", most)
    basis = Basis.fit(sessions.traces, EMBEDDING.embed(sessions.described()), requests, 1)
    cases = basis.cases
    assert len(cases.contexts) + len(cases.ended) == most
    assert len(cases.ended) == pytest.approx(most / (items + 1), abs=12)
    earlier = np.rint(np.expm1(cases.features[:, :, NAMES.index("log_calls")].max(axis=1))).astype(int)
    assert np.bincount(earlier, minlength=items).min() >= 15
    later = drawn_sessions(20, 2, by_request=False, items=items).traces
    found = candidates(Reading(basis.linear(), requests), later.prefixes(later.positions()))
    assert quality(found, later.items[later.positions()]).means()["hit_1"] == 1
