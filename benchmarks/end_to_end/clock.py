"""How long a session takes that is predicted: the core's rules on a clock that only moves (DESIGN §4).

An agent thinks, calls one tool, thinks again. When a call has ended it is asked what comes next, and what is
sure enough begins. The next call takes what is there, joins what runs, or runs itself. What still runs as it
begins, and it does not use, was wrong: it is cancelled. What is there waits. A write empties the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pml.processors.speculation.budget import BUDGETS, Budget
from pml.schemas.canonical import canonical_json

TTL_S = 300.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a session: its `tool`, what it is served by (`key`), whether it only reads, the time that it
    takes and that of the thought before it."""

    tool: str
    key: bytes
    safe: bool
    tool_s: float
    thought_s: float


@dataclass(frozen=True, slots=True)
class Guess:
    """A call that may come next, how sure that is (0 to 1), and the time that its tool would take."""

    tool: str
    key: bytes
    confidence: float
    safe: bool
    tool_s: float


@dataclass(frozen=True, slots=True)
class Rules:
    """What begins: at least `threshold` sure, within the budget.

    `asked_s` is what a question after each call costs the agent, `answer_s` how long its answer takes.
    """

    threshold: float
    asked_s: float = 0.0
    answer_s: float = 0.0
    budget: Budget = BUDGETS["normal"]


@dataclass(slots=True)
class Account:
    """Sums over sessions: seconds of wall clock, calls begun early and served, tool-seconds used and not."""

    wall_s: float = 0.0
    begun: int = 0
    hits: int = 0
    used_s: float = 0.0
    wasted_s: float = 0.0

    @classmethod
    def total(cls, accounts: Iterable[Account]) -> Account:
        """Of all of them."""
        found = cls()
        for each in accounts:
            found.add(each)
        return found

    def add(self, other: Account) -> None:
        """Of other sessions too."""
        self.wall_s += other.wall_s
        self.begun += other.begun
        self.hits += other.hits
        self.used_s += other.used_s
        self.wasted_s += other.wasted_s

    @property
    def waste(self) -> float:
        """Tool-seconds that nobody used ÷ those that somebody did; infinite where all was in vain."""
        if self.used_s > 0:
            return self.wasted_s / self.used_s
        return float("inf") if self.wasted_s > 0 else 0.0


@dataclass(slots=True)
class _Early:
    begun_s: float
    ends_s: float
    served: bool = False


def key_of(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """What a result is kept under: equal as JSON is equal."""
    return canonical_json([tool, dict(arguments)])


def unpredicted(calls: Sequence[Call]) -> Account:
    """The session of an agent that nobody foresees."""
    return Account(wall_s=sum(call.thought_s + call.tool_s for call in calls))


def oracle(calls: Sequence[Call]) -> Account:
    """The most that can be gained: each next call that may run early begins as the one before it ends."""
    known = [(Guess(call.tool, call.key, 1.0, call.safe, call.tool_s),) for call in calls[1:]]
    return played(calls, [*known, ()], Rules(threshold=1.0))


def played(calls: Sequence[Call], guesses: Sequence[Sequence[Guess]], rules: Rules) -> Account:
    """A session with predictions.

    Args:
        guesses: after each call, the likeliest first.
    """
    run = _Session(rules)
    for call, after in zip(calls, guesses, strict=True):
        run.call(call)
        run.foresee(after)
    return run.closed()


class _Session:
    def __init__(self, rules: Rules) -> None:
        self._rules, self.account = rules, Account()
        self._now_s = 0.0
        self._early: dict[bytes, _Early] = {}

    def call(self, call: Call) -> None:
        """Think, call, and drop what is wrong."""
        asked_s = self._now_s + call.thought_s
        self._drop_old(asked_s)
        found = self._early.get(call.key) if call.safe else None
        if found is None:
            self._now_s = asked_s + call.tool_s
        else:
            self._now_s = max(asked_s, found.ends_s)
            if not found.served:
                found.served = True
                self.account.hits += 1
                self.account.used_s += found.ends_s - found.begun_s
        runs = [key for key, each in self._early.items() if not each.served and each.ends_s > asked_s]
        for key in runs if call.safe else list(self._early):
            each = self._early.pop(key)
            if not each.served:
                self._waste(each, asked_s)

    def foresee(self, guesses: Sequence[Guess]) -> None:
        """Begin what is sure enough."""
        self._now_s += self._rules.asked_s
        begins_s, budget, account = self._now_s + self._rules.answer_s, self._rules.budget, self.account
        free = min(budget.concurrent, budget.calls - account.begun)
        if account.wasted_s * 1_000 >= budget.wasted_ms_per_hour:
            return
        for guess in guesses:
            sure = guess.safe and guess.confidence >= self._rules.threshold
            if sure and free > 0 and guess.key not in self._early:
                self._early[guess.key] = _Early(begins_s, begins_s + guess.tool_s)
                account.begun, free = account.begun + 1, free - 1

    def closed(self) -> Account:
        """What was begun after the last call runs to its end, for nobody."""
        for each in self._early.values():
            if not each.served:
                self._waste(each, float("inf"))
        self.account.wall_s = self._now_s
        return self.account

    def _waste(self, early: _Early, until_s: float) -> None:
        self.account.wasted_s += max(0.0, min(early.ends_s, until_s) - early.begun_s)

    def _drop_old(self, now_s: float) -> None:
        for key in [key for key, each in self._early.items() if now_s > each.begun_s + TTL_S]:
            each = self._early.pop(key)
            if not each.served:
                self._waste(each, now_s)
