"""Does the past move the confidence of a branch to the right side? Replayed on traces that it has not seen.

In the order of time each branch that could be speculated is predicted twice: by the counts of its decision
alone, (k + 1) / (n + 2), and with what episodic memory adds to that. Then it becomes part of the past. Scored
is the last third.
"""

from __future__ import annotations

import gzip
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pml.processors.memory.context import Context, context_of
from pml.processors.memory.influence import influence, influenced
from pml.processors.memory.pasts import tool_pasts
from pml.processors.memory.retrieval import Episode
from pml.processors.speculation.branches import branch_probability
from pml.schemas.memory import INFLUENCE_WINDOW_S, EpisodeType, ToolPast
from pml.schemas.times import to_rfc3339

START_MS = 1_790_000_000_000
RUNS = 3_000
DAYS = 30
TYPES, DOMAINS = 12, ("default", "billing", "docs")
SCORED_SHARE = 1 / 3
# The lowest threshold there is: what is less likely is never speculated.
THRESHOLD_MIN = 0.70
SESSION_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch when its decision was open: what it would run, and what came of both."""

    at_ms: int
    context: Context
    decision: str
    outcome: str
    tool: str
    taken: bool
    succeeded: bool


Choice = list[Branch]
"""The branches of one decision."""


@dataclass(frozen=True, slots=True)
class Scores:
    """How good predictions were: `brier` is better when smaller, `auc` when larger."""

    brier: float
    auc: float


@dataclass
class Replay:
    """The past as it grows; `kinds` says which episodes of it count."""

    kinds: frozenset[EpisodeType]
    counts: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    past: defaultdict[tuple[Any, str], list[Episode]] = field(default_factory=lambda: defaultdict(list))
    written: int = 0

    def predict(self, branch: Branch) -> tuple[float, float]:
        """The confidence without and with memory."""
        plain = branch_probability(self.counts[_decision(branch)], branch.outcome)
        pasts = tool_pasts(
            self.past[branch.context.keys, branch.tool],
            branch.context,
            {branch.tool},
            to_rfc3339(branch.at_ms),
            INFLUENCE_WINDOW_S,
        )
        return plain, influenced(plain, influence(pasts.get(branch.tool, ToolPast())))

    def learn(self, branch: Branch, confidence: float) -> None:
        """Its truth becomes the past."""
        if branch.taken:
            self.counts[_decision(branch)][branch.outcome] += 1
            self._remember(branch, "task_complete", branch.succeeded)
        if confidence >= THRESHOLD_MIN:
            self._remember(branch, "speculation_start", branch.taken and branch.succeeded)

    def _remember(self, branch: Branch, kind: EpisodeType, success: bool) -> None:
        if kind not in self.kinds:
            return
        self.written += 1
        episode = Episode(
            id=str(self.written),
            partition=0,
            log_offset=self.written,
            workflow_id="run",
            event_type=kind,
            timestamp=to_rfc3339(branch.at_ms),
            context=branch.context,
            tool_id=branch.tool,
            success=success,
        )
        self.past[branch.context.keys, branch.tool].append(episode)


def replay(choices: Sequence[Choice], kinds: Iterable[EpisodeType]) -> tuple[Scores, Scores]:
    """Scores on the last third, without and with memory; all branches of a choice before any is learned."""
    past = Replay(frozenset(kinds))
    predicted: list[tuple[float, float]] = []
    for choice in choices:
        found = [past.predict(branch) for branch in choice]
        predicted += found
        for branch, (confidence, _) in zip(choice, found, strict=True):
            past.learn(branch, confidence)
    scored = [
        branch.taken for choice in choices[round(len(choices) * (1 - SCORED_SHARE)) :] for branch in choice
    ]
    plain, moved = np.array(predicted[-len(scored) :]).T
    return scores(plain, np.array(scored)), scores(moved, np.array(scored))


def scores(confidences: Any, truths: Any) -> Scores:
    """Brier score and area under the ROC curve (ties count one half)."""
    order = np.sort(confidences)
    low, high = np.searchsorted(order, confidences, "left"), np.searchsorted(order, confidences, "right")
    ranks = (low + high + 1) / 2
    yes = int(truths.sum())
    pairs = yes * (len(truths) - yes)
    area = (ranks[truths].sum() - yes * (yes + 1) / 2) / pairs
    return Scores(float(np.mean((confidences - truths) ** 2)), float(area))


def drawn_choices(seed: int, *, by_domain: bool, success: tuple[float, float]) -> list[Choice]:
    """Runs of workflows with one decision of two branches, each with a tool of its own.

    Args:
        by_domain: whether how a decision comes out depends on the domain, or on its type alone.
        success: the least and the greatest share of good ends that tools have.
    """
    drawn = random.Random(seed)
    shares = {(kind, domain): drawn.betavariate(0.6, 0.6) for kind in range(TYPES) for domain in DOMAINS}
    reliable = {f"t{kind}:{side}": drawn.uniform(*success) for kind in range(TYPES) for side in ("yes", "no")}
    found: list[Choice] = []
    for number in range(RUNS):
        kind, domain = drawn.randrange(TYPES), drawn.choice(DOMAINS)
        share = shares[kind, domain if by_domain else DOMAINS[0]]
        outcome = "true" if drawn.random() < share else "false"
        context = context_of(f"type{kind}", {"domain": domain})
        at_ms = START_MS + number * DAYS * 86_400_000 // RUNS
        sides = (("true", f"t{kind}:yes"), ("false", f"t{kind}:no"))
        found.append(
            [
                Branch(at_ms, context, "d1", side, tool, side == outcome, drawn.random() < reliable[tool])
                for side, tool in sides
            ]
        )
    return found


def recorded_choices(folder: Path) -> list[Choice]:
    """Recorded sessions of an agent: after each tool, which of those that came after it before comes now.

    A session is an hour; the four trials of the tasks lie one after another, so the last third is of trials
    that the past has not seen.
    """
    sessions = sorted(_sessions(folder / "tau_sessions"), key=lambda item: (item["trial"], item["task_id"]))
    seen: defaultdict[str, set[str]] = defaultdict(set)
    found: list[Choice] = []
    for number, session in enumerate(sessions):
        at_ms = START_MS + number * SESSION_MS
        for before, task in zip(session["tasks"], session["tasks"][1:], strict=False):
            found.append(list(_candidates(at_ms, before["tool"], task, seen[before["tool"]])))
            seen[before["tool"]].add(task["tool"])
    return found


def _candidates(at_ms: int, before: str, task: dict[str, Any], known: set[str]) -> Iterator[Branch]:
    context = context_of("airline", {"domain": "airline"})
    for tool in sorted(known | {task["tool"]}):
        yield Branch(at_ms, context, before, tool, tool, tool == task["tool"], not task.get("error"))


def _sessions(folder: Path) -> list[dict[str, Any]]:
    for name, reader in (("workflows.dev.jsonl", open), ("workflows.dev.jsonl.gz", gzip.open)):
        if (folder / name).exists():
            with reader(folder / name, "rb") as file:
                return [orjson.loads(line) for line in file]
    return []


def _decision(branch: Branch) -> str:
    return f"{branch.context.keys[0]}/{branch.decision}"
