"""Features are what their names say, weights are learned without looking ahead, and it pays where it can."""

from __future__ import annotations

import io
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning import ranker as ranker_module
from pml.processors.learning.candidates import candidates
from pml.processors.learning.components import COUNTED, Components
from pml.processors.learning.evaluation import quality
from pml.processors.learning.features import COMPARED, NAMES, PROPOSING, Evidence, evidence, features, union
from pml.processors.learning.markov import Markov
from pml.processors.learning.ranker import Ranker, Reading, shares, slope, standardised
from pml.processors.learning.requests import Requests, read_requests
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_traces import LISTS, SIZE, trace_set

DESCRIPTIONS = ["", "read a file", "send a mail", "draw a chart", "fetch the weather forecast"]
TEXTS = [
    "read the file, then draw a chart and send it as a mail",
    "what is the weather forecast",
    "hello",
    "draw a chart of the weather, send the chart",
]
EMBEDDING = HashedNgrams()
POINTS = EMBEDDING.embed(DESCRIPTIONS)
REQUESTS = read_requests(TEXTS, DESCRIPTIONS, EMBEDDING)


def looked_at(lists: list[list[int]], texts: list[int]) -> tuple[TraceSet, Evidence]:
    traces = trace_set(lists, texts=texts[: len(lists)])
    components = Components.fit(traces, POINTS, REQUESTS.points)
    return traces, evidence(components, traces.prefixes(traces.positions(0)), REQUESTS)


def fit_of(requests: Requests, clause: int, item: int) -> float:
    cosine = float(requests.clause_points[clause].astype(float) @ POINTS[item].astype(float))
    return cosine + float(requests.clause_lexical[clause, item]) if item else 0.0


def features_twin(found: Evidence, row: int, items: list[int], place: int) -> list[float]:
    """One candidate, feature by feature."""
    item = items[place]
    signals = {name: values[row] for name, values in found.signals.items()}
    told = [log(max(signals[name][item], 1e-4)) for name in COUNTED]
    told += [signals[name][item] for name in COMPARED]
    named = [each for each in items if each]
    for name in PROPOSING:
        order = sorted(named, key=lambda each: (-signals[name][each], each))
        told.append(1 / (1 + order.index(item)) if signals[name][item] > 0 else 0)
    return [*told, float(found.components.popularity.shares[item] == 0)]


def clauses_twin(found: Evidence, row: int, item: int) -> list[float]:
    """What the clauses say of one candidate, clause by clause."""
    history = found.prefixes.items[found.prefixes.starts[row] : found.prefixes.ends[row]].tolist()
    told = [0.0, 0.0, 0.0]
    text = int(found.rows[row])
    if text != NO_TEXT:
        clauses = range(REQUESTS.offsets[text], REQUESTS.offsets[text + 1])
        covered = [max([0.0, *(fit_of(REQUESTS, clause, each) for each in history)]) for clause in clauses]
        fits = [fit_of(REQUESTS, clause, item) for clause in clauses]
        gains = [fit - before for fit, before in zip(fits, covered, strict=True)]
        away = abs(int(np.argmax(gains)) - len(history)) / len(fits)
        told = [max(fits), max(gains), 1 - min(away, 1)]
    return told


@settings(max_examples=25)
@given(LISTS, st.lists(st.sampled_from([NO_TEXT, 0, 1, 2]), min_size=6, max_size=6))
def test_features_are_those_found_one_by_one(lists: list[list[int]], texts: list[int]) -> None:
    _, found = looked_at(lists, texts)
    items = union(found)
    given_ones = features(found, items)
    assert given_ones.shape == (*items.shape, len(NAMES))
    clauses = [NAMES.index(name) for name in ("clause", "clause_uncovered", "clause_in_turn")]
    ranks = [NAMES.index(f"{name}_rank") for name in ("clause", "clause_uncovered")]
    for row, each in enumerate(items.tolist()):
        for place, item in enumerate(each):
            told = given_ones[row, place]
            if not item:
                assert not told.any()
                continue
            assert np.delete(told, clauses + ranks) == pytest.approx(features_twin(found, row, each, place))
            # Which of two clauses that fit alike comes first is rounding: whose turn it is has its own test.
            assert told[clauses[:2]] == pytest.approx(clauses_twin(found, row, item)[:2], abs=1e-4)
        for which, rank in zip(clauses[:2], ranks, strict=True):
            ordered = sorted(given_ones[row], key=lambda told: -told[rank])
            fits = [told[which] for told in ordered if told[rank] > 0]
            assert fits == sorted(fits, reverse=True)


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
    assert [clauses_twin(found, 0, item)[2] for item in (1, 2, 3)] == pytest.approx(in_turn[0])


@settings(max_examples=25)
@given(LISTS)
def test_candidates_are_the_best_of_each_once(lists: list[list[int]]) -> None:
    _, found = looked_at(lists, list(range(3)) * 2)
    for row, items in enumerate(union(found).tolist()):
        best = {item for name in PROPOSING for item in range(1, SIZE) if found.signals[name][row, item] > 0}
        assert sorted(item for item in items if item) == sorted(best)


def test_the_slope_is_that_of_the_loss() -> None:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(6, 4, 3)).astype(np.float32)
    named = generator.random((6, 4)) < 0.8
    named[0] = False
    right = np.array([int(np.argmax(each)) if each.any() else -1 for each in named])
    weights = generator.normal(size=3)

    def loss(at: np.ndarray) -> float:
        total = 0.0
        for row, which, told in zip(rows.astype(float), named, right, strict=True):
            odds = np.exp(row @ at) * which
            total -= log((odds[told] if told >= 0 else 1) / (1 + odds.sum()))
        return total / len(rows) + 0.5 * 1e-3 * float(at @ at)

    numeric = [(loss(weights + step) - loss(weights - step)) / 2e-5 for step in 1e-5 * np.eye(3)]
    assert slope(weights, rows, named, right) == pytest.approx(numeric, abs=1e-4)
    assert np.all(shares(weights, rows, named).sum(axis=1) < 1)
    assert slope(weights, rows[:0], named[:0], right[:0]).tolist() == [0, 0, 0]


def planted(count: int, seed: int) -> tuple[TraceSet, list[str], list[str]]:
    """The request says what comes and in which order; what was called before says nothing."""
    names = ["apple", "brick", "cloud", "daisy", "engine", "fossil", "guitar", "hammer"]
    descriptions = ["", *(f"handles one {name}" for name in names)]
    generator = np.random.default_rng(seed)
    lists = [(generator.permutation(len(names))[:3] + 1).tolist() for _ in range(count)]
    texts = [", then ".join(f"use the {names[item - 1]}" for item in items) for items in lists]
    return trace_set(lists), texts, descriptions


def fitted_on_planted() -> tuple[Ranker, Markov, TraceSet, Requests]:
    traces, texts, descriptions = planted(120, 1)
    requests = read_requests(texts, descriptions, EMBEDDING)
    training = traces.selected(np.arange(80))
    held_out = traces.selected(np.arange(80, 120))
    ranker = Ranker.fit(training, EMBEDDING.embed(descriptions), requests, 1)
    return ranker, Markov.fit(training, len(descriptions), 2), held_out, requests


def test_it_reads_what_counting_cannot_know_and_its_arrays_say_the_same() -> None:
    ranker, counting, held_out, requests = fitted_on_planted()
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


def test_a_model_of_other_features_is_refused() -> None:
    components = Components.fit(trace_set([[1, 2]], texts=[0]), POINTS, REQUESTS.points)
    found = Ranker(
        components, np.zeros(len(NAMES)), np.ones(len(NAMES)), np.zeros(len(NAMES) + 1)
    ).to_arrays()
    with pytest.raises(ValueError, match="other features"):
        Ranker.from_arrays(found | {"means": np.zeros(3)})
    with pytest.raises(ValueError, match="train it again"):
        Ranker.from_arrays({name: found[name] for name in found if name != "points"})


def test_no_component_sees_the_group_that_it_makes_features_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[1, 2, 3], [2, 3, 4]] * 10
    traces = trace_set(lists, texts=[0, 1] * 10)
    groups = np.repeat(np.arange(10), 2)
    traces = TraceSet(**(traces.to_arrays() | {"groups": groups}))
    fitted: dict[int, set[int]] = {}
    fit, cases, checked = Components.fit, ranker_module._cases, []

    def fit_seen(seen: TraceSet, *rest: np.ndarray) -> Components:
        found = fit(seen, *rest)
        fitted[id(found)] = set(seen.groups.tolist())
        return found

    def cases_seen(components: Components, of: TraceSet, places: np.ndarray, requests: Requests) -> object:
        own = set(of.groups[of.owners[places]].tolist())
        checked.append(len(own))
        assert not own & fitted[id(components)]
        return cases(components, of, places, requests)

    monkeypatch.setattr(Components, "fit", fit_seen)
    monkeypatch.setattr(ranker_module, "_cases", cases_seen)
    Ranker.fit(traces, POINTS, REQUESTS, 1)
    assert sum(checked) == 10
    assert fitted[max(fitted, key=lambda each: len(fitted[each]))] == set(range(10))


def test_without_traces_or_texts_it_names_nothing() -> None:
    none = read_requests([], DESCRIPTIONS, EMBEDDING)
    nothing = trace_set([[]])
    ranker = Ranker.fit(nothing, POINTS, none, 1)
    asked = trace_set([[1, 2]], texts=[NO_TEXT])
    found = Reading(ranker, none).probabilities(asked.prefixes(asked.positions()))
    assert found[:, 1:] == pytest.approx(found[:, 1:2].repeat(SIZE - 1, axis=1))


def test_standardised_features_end_with_ones() -> None:
    found = standardised(np.full((1, 2, 3), 4.0), np.full(3, 2.0), np.full(3, 0.5))
    assert found.tolist() == [[[4, 4, 4, 1]] * 2]


def test_a_request_without_clauses_is_one_and_lexical_shares_end_at_one() -> None:
    assert np.diff(REQUESTS.offsets).tolist() == [3, 1, 1, 2]
    assert REQUESTS.lexical.max(axis=1).tolist() == [1, 1, 0, 1]
    assert REQUESTS.lexical[1].argmax() == 4
    assert REQUESTS.clause_lexical.shape == (7, SIZE)
