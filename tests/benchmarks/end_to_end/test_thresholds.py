"""One half stays unless another threshold is surely better for sessions that it was not chosen on."""

from __future__ import annotations

from benchmarks.end_to_end.clock import Account
from benchmarks.end_to_end.thresholds import THRESHOLDS, Tried, chosen_elsewhere, chosen_threshold

SAVED_S, USUAL_S, TOOL_S = 1.0, 10.0, 2.0


def session(confidence: float, *, right: bool = True) -> dict[float, Account]:
    """One that begins one call early with each threshold up to this confidence."""
    begun = Account(USUAL_S - SAVED_S, 1, 1, TOOL_S, 0) if right else Account(USUAL_S, 1, 0, 0, TOOL_S)
    return {each: begun if each <= confidence else Account(USUAL_S) for each in THRESHOLDS}


def fold(*sessions: dict[float, Account]) -> Tried:
    return {each: [one[each] for one in sessions] for each in THRESHOLDS}


USUAL, WRONG = session(0.8), session(0.6, right=False)


def test_the_threshold_keeps_out_what_wastes_too_much() -> None:
    mixed = fold(*[USUAL] * 10, *[session(0.5, right=False)] * 10)
    assert 0.5 < chosen_threshold([mixed] * 4) <= 0.8
    assert chosen_threshold([fold(*[WRONG] * 10)] * 4) > 1


def test_a_half_stays_where_what_is_best_on_these_sessions_may_be_so_by_luck() -> None:
    lucky = session(0.3)
    assert chosen_threshold([fold(lucky, *[USUAL] * 4)] + [fold(*[USUAL] * 5)] * 3) == 0.5
    assert chosen_threshold([fold(*[lucky] * 5, *[USUAL] * 5)] * 4) == 0.3
    assert chosen_threshold([fold(WRONG, USUAL, USUAL)] + [fold(USUAL)] * 3) == 0.5
    assert chosen_threshold([]) == 0.5
    assert chosen_threshold([fold()] * 4) == 0.5


def test_what_only_one_fold_speaks_for_is_nothing_for_others() -> None:
    """On all sessions together 0.3 saves surely; chosen without that fold, nobody would know of it."""
    lucky, usual = fold(*[session(0.3)] * 10), fold(*[USUAL] * 10)
    assert chosen_threshold([lucky, usual, usual, usual]) == 0.5
    assert chosen_threshold([lucky, lucky, usual, usual]) == 0.3


def test_a_fold_has_no_say_in_its_own_threshold() -> None:
    lucky, usual = fold(*[session(0.3)] * 10), fold(*[USUAL] * 10)
    assert chosen_elsewhere([lucky, usual, usual], 0) == 0.5
    assert chosen_elsewhere([usual, lucky, lucky], 0) == 0.3
