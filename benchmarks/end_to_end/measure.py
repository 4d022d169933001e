"""One data set: played unpredicted, with the best baseline, with the ranker, and by an oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.end_to_end.clock import Account, Call, Rules, oracle, played, unpredicted
from benchmarks.end_to_end.foreseen import Asked, Foreseen
from benchmarks.end_to_end.models import BASELINE, RANKER, SIDES, trained_sides
from benchmarks.end_to_end.play import Play
from benchmarks.end_to_end.thresholds import HALF, THRESHOLDS, Tried, chosen_elsewhere
from pml.streams.learning.serving import as_served
from pml.streams.settings import Settings

# What is lost of what the oracle gains: the first that holds.
LOSSES = ("served", "tool not named", "arguments not named", "arguments wrong", "not sure enough")
# The ranker with that one everywhere.
AT_HALF = f"{RANKER}, at {HALF}"
# The ranker, were somebody to know when a session ends: with thresholds of its own.
END_KNOWN = "ranker, end known"
WHAT_IFS = (END_KNOWN,)


@dataclass(frozen=True, slots=True)
class Sitting:
    """A session as it is played: its calls, and what was foreseen after each."""

    calls: tuple[Call, ...]
    foreseen: tuple[Foreseen, ...]

    def played(self, rules: Rules) -> Account:
        """With these rules."""
        return played(self.calls, [each.guesses for each in self.foreseen], rules)

    def ending(self) -> Sitting:
        """The same where nothing is foreseen after its last call: somebody knows that it was."""
        return replace(self, foreseen=(*self.foreseen[:-1], Foreseen((), ())))


@dataclass(frozen=True, slots=True)
class Held:
    """The sessions of a fold, as models that learned of the other folds foresee them.

    Of each side the id of its model, the learner that serves, and the sessions in the order of the play.
    """

    models: Mapping[str, str]
    learners: Mapping[str, str]
    sittings: Mapping[str, list[Sitting]]


def rehearsed(play: Play, settings: Settings) -> Held:
    """A fold as models foresee it that learned of the others; they stay in the settings' folder of models."""
    sides = trained_sides(settings, play)
    asked = {
        side: Asked(play, as_served(settings, trained.model, trained.manifest))
        for side, trained in sides.items()
    }
    return Held(
        {side: str(trained.manifest["model_id"]) for side, trained in sides.items()},
        {side: str(trained.manifest["serves"]) for side, trained in sides.items()},
        {
            side: [Sitting(play.calls(session), each.foreseen(session)) for session in play.sessions]
            for side, each in asked.items()
        },
    )


def row_of(held: Sequence[Held], rules: Rules) -> dict[str, Any]:
    """What came of all folds, beside nothing predicted and beside the oracle."""
    sittings = [each for fold in held for each in fold.sittings[RANKER]]
    scale = Scale(
        Account.total(unpredicted(each.calls) for each in sittings),
        Account.total(oracle(each.calls) for each in sittings),
        sum(call.safe for each in sittings for call in each.calls[1:]),
    )
    return {
        "sessions": len(sittings),
        "calls": sum(len(each.calls) for each in sittings),
        "may_run_early": scale.able,
        "unpredicted_s": round(scale.nothing.wall_s, 1),
        "baselines": [each.learners[BASELINE] for each in held],
        "serves": [each.learners[RANKER] for each in held],
        "oracle": scale.told(scale.best),
        **{side: _side([each.sittings[side] for each in held], rules, scale) for side in SIDES},
        AT_HALF: _side([each.sittings[RANKER] for each in held], rules, scale, HALF),
        END_KNOWN: _side(_ending(held), rules, scale),
    }


@dataclass(frozen=True, slots=True)
class Scale:
    """What accounts are compared with: nothing predicted, the oracle, and the calls that may run early."""

    nothing: Account
    best: Account
    able: int

    def told(self, account: Account) -> Mapping[str, Any]:
        """An account beside them, as JSON-serialisable values."""
        gained, most = self.nothing.wall_s - account.wall_s, self.nothing.wall_s - self.best.wall_s
        return {
            "wall_s": round(account.wall_s, 1),
            "times_as_long": round(account.wall_s / self.nothing.wall_s, 4),
            "begun": account.begun,
            "hits": account.hits,
            "hit_rate": round(account.hits / self.able, 4) if self.able else 0.0,
            "waste": round(account.waste, 4) if account.waste != float("inf") else None,
            "share_of_oracle": round(gained / most, 4) if most > 0 else None,
        }


def _ending(held: Sequence[Held]) -> list[list[Sitting]]:
    return [[each.ending() for each in fold.sittings[RANKER]] for fold in held]


def _side(
    held: Sequence[Sequence[Sitting]], rules: Rules, scale: Scale, fixed: float | None = None
) -> dict[str, Any]:
    """Each fold with the fixed threshold, or with the one that is chosen on the others."""
    account, losses = Account(), Counter[str]()
    thresholds = chosen_of_each(held, rules) if fixed is None else [fixed] * len(held)
    for fold, threshold in zip(held, thresholds, strict=True):
        for each in fold:
            account.add(each.played(replace(rules, threshold=threshold)))
        losses += lost(fold, threshold)
    return {
        "thresholds": thresholds,
        **scale.told(account),
        "lost": {name: round(losses[name] / max(1, losses.total()), 4) for name in LOSSES},
    }


def chosen_of_each(held: Sequence[Sequence[Sitting]], rules: Rules) -> list[float]:
    """For each fold what is chosen on the others."""
    folds = [_tried(fold, rules) for fold in held]
    return [chosen_elsewhere(folds, number) for number in range(len(folds))]


def _tried(fold: Sequence[Sitting], rules: Rules) -> Tried:
    return {each: [one.played(replace(rules, threshold=each)) for one in fold] for each in THRESHOLDS}


def lost(sittings: Sequence[Sitting], threshold: float) -> Counter[str]:
    """Of the calls that an oracle begins early, how many were named, and why the others were not."""
    return Counter(
        _loss(call, after, threshold)
        for each in sittings
        for call, after in zip(each.calls[1:], each.foreseen, strict=False)
        if call.safe
    )


def _loss(call: Call, after: Foreseen, threshold: float) -> str:
    tool = call.tool
    if tool not in after.tools:
        return "tool not named"
    guess = next((each for each in after.guesses if each.tool == tool), None)
    if guess is None:
        return "arguments not named"
    if guess.key != call.key:
        return "arguments wrong"
    return "not sure enough" if guess.confidence < threshold else "served"
