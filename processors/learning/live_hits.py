"""How often a served model's first candidate is what the session then does: hit@1, counted live.

A prediction is judged by the next one of its session, whose history is this one's and one element more.
Where anything lies between them (an answer that did not come, a run that asked nothing) nobody is judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from pml.schemas.prediction import HISTORY_MOST

WINDOW = 200
"""Outcomes of a window; the next one begins at nothing."""
LOOKS = (50, 100, WINDOW)
"""The outcomes of a window after which a model is judged: few looks, since each may be misled by chance."""
OF_SESSION_MAX = 8
"""Outcomes of one session that a window takes: one that goes round in circles decides nothing alone."""
WAITING_MAX = 200
"""Predictions of a tenant that wait for what comes; the one that waits longest makes room."""
MODELS_MAX = 4
"""Models of a tenant that are counted at once; the one that was counted longest ago makes room."""
# What two histories must have in common: a full one has lost its first element to the new one.
_COMMON = HISTORY_MOST - 1


class Guess(NamedTuple):
    """One prediction, and what it says of the one before it.

    `first` is the likeliest element, None where none was named; `came` the element that had just ended.
    `before` and `after` are digests of the history without and with it. `model` is empty where no model
    answered.
    """

    session: str
    model: str
    first: str | None
    came: str
    before: str
    after: str


class Waiting(NamedTuple):
    """What a model expects of a session that is where `after` says."""

    model: str
    first: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Window:
    """What was counted of a model since `since`; `sessions` has the outcomes of each session."""

    since: str
    outcomes: int = 0
    hits: int = 0
    sessions: Mapping[str, int] = field(default_factory=dict)


class Look(NamedTuple):
    """A model has been counted so often that it may be judged."""

    model: str
    window: Window


@dataclass(frozen=True, slots=True)
class LiveHits:
    """What one tenant's models expect, by session, and how often they were right, by model."""

    waiting: Mapping[str, Waiting] = field(default_factory=dict)
    windows: Mapping[str, Window] = field(default_factory=dict)


def guess_of(session: str, data: Mapping[str, Any]) -> Guess | None:
    """What a `prediction.made` says; None where it knew no history.

    Raises:
        KeyError, TypeError: it lacks what its type must say.
    """
    history = data["history"]
    if not history:
        return None
    return Guess(
        session,
        data.get("model", ""),
        _first(data),
        history[-1],
        before=_digest(history[:-1]),
        after=_digest(history),
    )


def after_guess(state: LiveHits, guess: Guess, at: str) -> tuple[LiveHits, Look | None]:
    """What is known after one more prediction, and what there is to look at.

    Args:
        at: the log's time of the prediction, which is when the one before it was found right or wrong.
    """
    expected = state.waiting.get(guess.session)
    waiting = {name: item for name, item in state.waiting.items() if name != guess.session}
    if guess.model:
        waiting[guess.session] = Waiting(guess.model, guess.first, guess.after)
    waiting = dict(list(waiting.items())[-WAITING_MAX:])
    if expected is None or expected.after != guess.before:
        return LiveHits(waiting, state.windows), None
    windows, look = _counted(state.windows, guess.session, expected, expected.first == guess.came, at)
    return LiveHits(waiting, windows), look


def _counted(
    windows: Mapping[str, Window], session: str, expected: Waiting, hit: bool, at: str
) -> tuple[Mapping[str, Window], Look | None]:
    before = windows.get(expected.model)
    window = before if before is not None and before.outcomes < WINDOW else Window(at)
    seen = window.sessions.get(session, 0)
    if seen >= OF_SESSION_MAX:
        return windows, None
    sessions = {**window.sessions, session: seen + 1}
    window = Window(window.since, window.outcomes + 1, window.hits + hit, sessions)
    others = {name: item for name, item in windows.items() if name != expected.model}
    kept = dict(list({**others, expected.model: window}.items())[-MODELS_MAX:])
    return kept, Look(expected.model, window) if window.outcomes in LOOKS else None


def _first(data: Mapping[str, Any]) -> str | None:
    """What the model named first; logs of earlier releases only have how likely each was."""
    if data.get("first") is not None:
        return str(data["first"])
    candidates: Sequence[Mapping[str, Any]] = data.get("candidates") or ()
    likeliest = max(candidates, key=lambda item: float(item["likelihood"]), default=None)
    return None if likeliest is None else str(likeliest["name"])


def _digest(names: Sequence[str]) -> str:
    told = "\0".join(names[-_COMMON:])
    return blake2b(told.encode(), digest_size=8).hexdigest()
