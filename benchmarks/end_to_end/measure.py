"""One data set: played unpredicted, with the best baseline, with the ranker, and by an oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.end_to_end.clock import Account, Call, Rules, oracle, played, unpredicted
from benchmarks.end_to_end.foreseen import Foreseen, Recorded
from benchmarks.end_to_end.models import RANKER, Rows, asked_of, models_of
from benchmarks.end_to_end.thresholds import HALF, THRESHOLDS, Tried, chosen_elsewhere
from benchmarks.learning.argument_sets import argument_set
from benchmarks.learning.ways import WAYS
from pml.processors.learning.judging import FOLDS
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.splits import folds
from pml.processors.memory.embedding import Embedding
from pml.streams.learning.data_sets import recorded, rows_of

# What is lost of what the oracle gains: the first that holds.
LOSSES = ("served", "tool not named", "arguments not named", "arguments wrong", "not sure enough")
SIDES = ("baseline", RANKER)
# The ranker with that one everywhere.
AT_HALF = f"{RANKER}, at {HALF}"
# The ranker, were somebody to know when a session ends: with thresholds of its own.
END_KNOWN = "ranker, end known"
WHAT_IFS = (END_KNOWN,)

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True, eq=False)
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


@dataclass(slots=True)
class Held:
    """The sessions of a fold, as models that were fitted on the other folds foresee them."""

    baseline: str
    serves: str
    sittings: Mapping[str, list[Sitting]]


def measured(
    folder: Path,
    name: str,
    embedding: Embedding,
    rules: Rules,
    *,
    seed: int,
    most: int,
    told: Told,
    parts: int = FOLDS,
) -> dict[str, Any]:
    """A set's row, as JSON-serialisable values; at most `most` sessions of each of `parts` folds are played.

    Each is played by models that were fitted on the other folds, with a threshold that was chosen on the
    sessions of the other folds. `told` is called after each fold.
    """
    way = WAYS[name]
    tools = rows_of(folder / way.folder, "tools.jsonl")
    read_only = {tool["tool_id"]: tool.get("read_only") for tool in tools}
    known = recorded(folder, way.folder, way.visible)
    data = Recorded(argument_set(folder, name), read_only, seed)
    fold = folds(known.sessions.traces.groups, parts, seed)
    held = []
    for number in range(parts):
        fit_on, others = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        held.append(_held(data, known.sessions, fit_on, _some(others, most, seed), embedding))
        told(f"{name}: fold {number + 1} of {parts}")
    return {"name": name, "visible": known.visible, **row_of(held, rules)}


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
        "baselines": [each.baseline for each in held],
        "serves": [each.serves for each in held],
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
    thresholds = _chosen(held, rules) if fixed is None else [fixed] * len(held)
    for fold, threshold in zip(held, thresholds, strict=True):
        for each in fold:
            account.add(each.played(replace(rules, threshold=threshold)))
        losses += lost(fold, threshold)
    return {
        "thresholds": thresholds,
        **scale.told(account),
        "lost": {name: round(losses[name] / max(1, losses.total()), 4) for name in LOSSES},
    }


def _chosen(held: Sequence[Sequence[Sitting]], rules: Rules) -> list[float]:
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


def _held(
    data: Recorded, sessions: Sessions, fit_on: Rows, play: Sequence[int], embedding: Embedding
) -> Held:
    chosen, models = models_of(sessions, fit_on, embedding, data.seed)
    asked = asked_of(data, fit_on)
    named = {"baseline": models[chosen.baseline], RANKER: models[RANKER]}
    found = {
        side: [Sitting(data.calls(row), asked.foreseen(model, row)) for row in play]
        for side, model in named.items()
    }
    return Held(chosen.baseline, chosen.serves, found)


def _some(rows: Rows, most: int, seed: int) -> list[int]:
    drawn = np.random.default_rng(seed).permutation(rows)[:most]
    return sorted(drawn.tolist())
