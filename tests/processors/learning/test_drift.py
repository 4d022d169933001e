"""A served model is held against what came, and falls only where it is surely worse than its baseline."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning.drift import (
    FALLEN_MOST,
    fall,
    has_fallen,
    live_record,
    successors,
    wilson_interval,
    with_fallen,
)
from pml.processors.learning.live_hits import (
    LOOKS,
    MODELS_MAX,
    OF_SESSION_MAX,
    WAITING_MAX,
    WINDOW,
    Guess,
    LiveHits,
    Look,
    Window,
    after_guess,
    guess_of,
)
from pml.schemas.catalog import ModelFallen, ModelLive, ModelRecord
from pml.schemas.prediction import HISTORY_MOST

NAMES = ["a:x", "a:y", "b:z"]
STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(NAMES),
        st.sampled_from([*NAMES, None]),
        st.sampled_from(["mdl_a", "mdl_b", ""]),
        st.booleans(),
    ),
    max_size=120,
)


def promoted(baseline_hit_1: float, at: str = "2026-11-23T09:00:00.000000Z") -> ModelRecord:
    return ModelRecord(
        model_id="mdl_a",
        learner="ranker",
        hit_1=0.9,
        baseline="markov_1",
        baseline_hit_1=baseline_hit_1,
        promoted_at=at,
    )


def live(hits: int, outcomes: int, model: str = "mdl_a") -> ModelLive:
    window = Window("2026-11-23T10:00:00.000000Z", outcomes, hits)
    return live_record(Look(model, window), "2026-11-23T11:00:00.000000Z")


def at(number: int) -> str:
    return f"2026-11-23T10:{number // 60:02}:{number % 60:02}.000000Z"


def made(history: list[str], first: str | None, model: str) -> dict[str, Any]:
    return {"history": history[-HISTORY_MOST:], "first": first, "model": model}


def counted_by_hand(steps: list[tuple[int, str, str | None, str, bool]]) -> dict[str, tuple[int, int]]:
    """Outcomes and hits of each model: whole histories kept, each prediction held against the next."""
    histories: dict[int, list[str]] = {}
    last: dict[int, tuple[int, str | None, str]] = {}
    counted: dict[str, list[bool]] = {}
    taken: dict[tuple[str, int], int] = {}
    for session, came, first, model, answered in steps:
        history = [*histories.get(session, []), came]
        histories[session] = history
        if not answered:
            continue
        length, expected, by = last.get(session, (-1, None, ""))
        if by and length == len(history) - 1 and taken.get((by, session), 0) < OF_SESSION_MAX:
            taken[by, session] = taken.get((by, session), 0) + 1
            counted.setdefault(by, []).append(expected == came)
        last[session] = (len(history), first, model)
    return {model: (len(hits), sum(hits)) for model, hits in counted.items()}


@given(STEPS)
@settings(max_examples=60, derandomize=True)
def test_each_prediction_is_held_against_the_next_one_of_its_session(
    steps: list[tuple[int, str, str | None, str, bool]],
) -> None:
    histories: dict[int, list[str]] = {}
    state = LiveHits()
    for number, (session, came, first, model, answered) in enumerate(steps):
        # A history that never repeats: the twin knows gaps by their length alone.
        history = [*histories.get(session, []), came]
        histories[session] = history
        if answered:
            guess = guess_of(f"s{session}", made(numbered(history), ranked(first, history), model))
            assert guess is not None
            state, _ = after_guess(state, guess, at(number))
    found = {model: (window.outcomes, window.hits) for model, window in state.windows.items()}
    assert found == counted_by_hand(steps)


def numbered(history: list[str]) -> list[str]:
    return [f"{name}{place}" for place, name in enumerate(history)]


def ranked(first: str | None, history: list[str]) -> str | None:
    return None if first is None else f"{first}{len(history)}"


def repeated(
    state: LiveHits, model: str, hits: list[bool], session: str = "s"
) -> tuple[LiveHits, list[Look]]:
    """Each outcome in a session of its own."""
    looks = []
    for number, hit in enumerate(hits):
        name, first = f"{session}{number}", "a:x" if hit else "a:y"
        for history in (["a:x"], ["a:x", "a:x"]):
            guess = guess_of(name, made(history, first, model))
            assert guess is not None
            state, look = after_guess(state, guess, at(number))
            looks += [look] if look else []
    return state, looks


def test_a_window_is_looked_at_three_times_and_then_begins_anew() -> None:
    _, looks = repeated(LiveHits(), "mdl_a", [True] * (WINDOW + LOOKS[0]))
    assert [look.window.outcomes for look in looks] == [*LOOKS, LOOKS[0]]
    assert [look.window.since for look in looks] == [at(0)] * 3 + [at(WINDOW)]
    assert looks[-1].window.hits == LOOKS[0]


def test_one_session_decides_nothing_alone() -> None:
    state, history = LiveHits(), ["a:x"]
    for _ in range(3 * OF_SESSION_MAX):
        guess = guess_of("s", made(history, "a:y", "mdl_a"))
        assert guess is not None
        state, _ = after_guess(state, guess, at(0))
        history = [*history, "a:x"]
    assert state.windows["mdl_a"].outcomes == OF_SESSION_MAX


def test_what_waits_and_what_is_counted_is_bounded() -> None:
    state = LiveHits()
    for number in range(2 * WAITING_MAX):
        state, _ = after_guess(state, Guess(f"s{number}", "mdl_a", None, "a:x", "", "d"), at(0))
    assert list(state.waiting) == [f"s{number}" for number in range(WAITING_MAX, 2 * WAITING_MAX)]
    for number in range(2 * MODELS_MAX):
        state, _ = repeated(state, f"mdl_{number}", [True], session=f"t{number}.")
    assert list(state.windows) == [f"mdl_{number}" for number in range(MODELS_MAX, 2 * MODELS_MAX)]


def test_what_nobody_predicted_is_neither_a_hit_nor_a_miss() -> None:
    assert guess_of("s", made([], "a:x", "mdl_a")) is None
    state, looks = repeated(LiveHits(), "", [True] * LOOKS[0])
    assert (state, looks) == (LiveHits(), [])


def test_events_of_earlier_releases_name_first_what_is_likeliest() -> None:
    candidates = [{"name": "a:x", "likelihood": 0.3}, {"name": "a:y", "likelihood": 0.6}]
    guess = guess_of("s", {"history": ["a:x"], "candidates": candidates})
    assert guess is not None
    assert guess.first == "a:y"
    nothing = guess_of("s", {"history": ["a:x"]})
    assert nothing is not None
    assert nothing.first is None


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 4))
@settings(max_examples=100, derandomize=True)
def test_the_interval_is_where_the_score_test_does_not_refuse(
    counted: tuple[int, int], deviations: float
) -> None:
    """Wilson's ends solve |rate − p| = z·sqrt(p(1 − p)/n): inside it is less, outside more."""
    hits, outcomes = counted
    low, high = wilson_interval(hits, outcomes, deviations)
    rate = hits / outcomes
    assert 0 <= low <= rate + 1e-9
    assert rate - 1e-9 <= high <= 1

    def refused(p: float) -> bool:
        return abs(rate - p) > deviations * math.sqrt(p * (1 - p) / outcomes)

    for p in (place / 100 for place in range(1, 100)):
        if min(abs(p - low), abs(p - high)) > 1e-6:
            assert refused(p) == (not low < p < high)


@pytest.mark.parametrize(
    ("hits", "outcomes", "baseline", "expected"),
    [
        (0, 50, 0.2, True),
        (20, 50, 0.5, False),
        (20, 50, 0.7, True),
        (70, 200, 0.5, True),
        (90, 200, 0.5, False),
    ],
)
def test_a_model_falls_where_chance_does_not_explain_it(
    hits: int, outcomes: int, baseline: float, expected: bool
) -> None:
    assert has_fallen(live(hits, outcomes), promoted(baseline)) is expected


def test_only_what_serves_now_and_was_counted_since_its_promotion_falls() -> None:
    assert not has_fallen(live(0, 50, "mdl_b"), promoted(0.9))
    assert not has_fallen(live(0, 50), promoted(0.9, at="2026-11-23T10:00:00.001000Z"))
    assert has_fallen(live(0, 50), promoted(0.9, at="2026-11-23T10:00:00.000000Z"))


def test_a_fall_says_why_and_the_latest_ten_are_kept() -> None:
    fallen: tuple[ModelFallen, ...] = ()
    for number in range(2 * FALLEN_MOST):
        fallen = with_fallen(fallen, fall(live(0, 50, f"mdl_{number % 15}"), promoted(0.9)))
    assert len(fallen) == len({item.model_id for item in fallen}) == FALLEN_MOST
    assert fallen[0].model_id == f"mdl_{(2 * FALLEN_MOST - 1) % 15}"
    assert "live hit@1 0.000 [0.000, 0.153] in 50 predictions" in fallen[0].why
    assert "0.900 of markov_1" in fallen[0].why


def test_what_has_fallen_or_is_gone_is_not_gone_back_to() -> None:
    fallen = [fall(live(0, 50, "mdl_b"), promoted(0.9))]
    assert successors(["mdl_b", "mdl_c", "mdl_d"], fallen, {"mdl_b", "mdl_d"}) == ["mdl_d"]
    assert successors([], fallen, {"mdl_d"}) == []
