"""Arguments of the next call, its tool being known: what could be named at all, and what was guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.learning.argument_sets import ArgumentSet
from pml.processors.learning.argument_candidates import candidates
from pml.processors.learning.argument_sources import ArgumentSources, Guess, Past
from pml.processors.learning.argument_values import spelled
from pml.processors.learning.intervals import interval, resampled_means
from pml.processors.learning.scene import HISTORY_MOST, scene, taken_apart
from pml.processors.learning.splits import folds, leaks

FOLDS = 5
GUESSES = 3
SURE = (0.5, 0.7)
COLUMNS = ("oracle", "same_name", "top_1", "top_3", "exact_1", "exact_3", "confidence")

Column = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Asked:
    """One call and what was known before it."""

    call: Past
    past: Sequence[Past]
    text: str
    group: int


def judged(data: ArgumentSet, seed: int, done: Callable[[], None]) -> tuple[dict[str, Column], Places]:
    """For each call but the first of a session a value in each of `COLUMNS`, and its group.

    `done` is called after each fold.
    """
    fold = folds(data.groups, FOLDS, seed)
    if len(leaks(data.groups, fold)):
        raise RuntimeError(f"{data.name}: near-duplicates lie in several folds")
    rows: list[tuple[float, ...]] = []
    groups: list[int] = []
    for held in range(FOLDS):
        training = np.flatnonzero(fold != held).tolist()
        sources = ArgumentSources.fit(
            [data.sessions[row] for row in training], [data.requests[row] for row in training], data.schemas
        )
        for row in np.flatnonzero(fold == held).tolist():
            for asked in _asked(data, row):
                rows.append(_judged(asked, sources, data.schemas.get(asked.call.name, {})))
                groups.append(asked.group)
        done()
    found = np.array(rows, dtype=np.float64)
    return {name: found[:, place] for place, name in enumerate(COLUMNS)}, np.array(groups, dtype=np.int64)


def _asked(data: ArgumentSet, row: int) -> list[Asked]:
    session, texts = data.sessions[row], data.requests[row]
    return [
        Asked(session[place], session[:place], texts[place], int(data.groups[row]))
        for place in range(1, len(session))
    ]


def _judged(asked: Asked, sources: ArgumentSources, schema: Mapping[str, Any]) -> tuple[float, ...]:
    given = asked.call.arguments
    needed = [name for name in schema.get("required", given) if name in given]
    guesses = sources.guesses(asked.call.name, asked.past, asked.text, GUESSES)
    right = [_same(guess, given, needed) for guess in guesses]
    exact = [spelled(dict(guess.arguments)) == spelled(dict(given)) for guess in guesses]
    return (
        _nameable(asked, sources, needed),
        _same_named(asked, needed),
        any(right[:1]),
        any(right),
        any(exact[:1]),
        any(exact),
        guesses[0].confidence if guesses else 0.0,
    )


def _same(guess: Guess, given: Mapping[str, Any], needed: Sequence[str]) -> bool:
    return all(
        name in guess.arguments and spelled(guess.arguments[name]) == spelled(given[name]) for name in needed
    )


def _nameable(asked: Asked, sources: ArgumentSources, needed: Sequence[str]) -> bool:
    """Whether some source names each required argument."""
    before = scene([taken_apart(each) for each in asked.past[-HISTORY_MOST:]], asked.text)
    known = {each.name: each for each in sources.known.parameters(asked.call.name)}
    return all(
        name in known
        and spelled(asked.call.arguments[name]) in {each.value for each in candidates(before, known[name])}
        for name in needed
    )


def _same_named(asked: Asked, needed: Sequence[str]) -> bool:
    """Whether the latest argument or result field of the same name is right for each: the baseline."""
    found: dict[str, bytes | None] = {}
    for element in map(taken_apart, asked.past[-HISTORY_MOST:]):
        leaves = [*element.arguments, *(items[0] for items in element.results.values())]
        found |= {leaf.name: spelled(leaf.value) for leaf in leaves}
    return all(found.get(name) == spelled(asked.call.arguments[name]) for name in needed)


def row_of(
    data: ArgumentSet, found: Mapping[str, Column], groups: NDArray[np.int64], seed: int
) -> dict[str, Any]:
    """A set's row of the table, as JSON-serialisable values."""
    told = {name: _mean(found[name], groups, seed) for name in COLUMNS}
    brier = float(np.mean((found["confidence"] - found["exact_1"]) ** 2))
    return {
        "name": data.name,
        "visible": data.visible,
        "asked": len(groups),
        **told,
        "brier": round(brier, 4),
        "sure": {str(least): _sure(found, least) for least in SURE},
    }


def _mean(column: Column, groups: Places, seed: int) -> dict[str, Any]:
    low, high = interval(resampled_means(column, groups, seed))
    return {"mean": round(float(column.mean()), 4), "interval": (round(low, 4), round(high, 4))}


def _sure(found: Mapping[str, Column], least: float) -> dict[str, float]:
    """How many calls have a guess at least so sure, and how many of those are right altogether."""
    sure = found["confidence"] >= least
    right = float(found["exact_1"][sure].mean()) if sure.any() else 0.0
    return {"share": round(float(sure.mean()), 4), "right": round(right, 4)}
