"""Which capability an intent means, and how likely it is the one (spec story 10.6).

A choice among the capabilities and none of them: a multinomial logit with an outside option (McFadden
1974). What speaks for a capability is added up with learned weights; its probability is its share of the odds
of all, so that a second one nearly as good halves it, and that of none is always among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import chain
from math import fsum

import numpy as np
from numpy.typing import NDArray

from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.lexical import rarity
from pml.processors.discovery.prior import prior
from pml.processors.discovery.question import question
from pml.processors.discovery.words import words

Column = NDArray[np.float64]
Evidence = NDArray[np.float64]

EVIDENCE = ("shared_words", "weakest_tool", "other_tool")
INTENTS_KEPT = 4_096
# Scores are rounded to so much; those of 0 and 1 have no log odds.
SCORE_LEAST = 1e-6
UNSEEN = float(np.log(SCORE_LEAST))
# Who says the same words again means the same again. That is a convention and not measured: requests of the
# data sets that have the same words often have other calls, for a person's name stands for what is asked.
SAME_WORDS = 0.9


@dataclass(frozen=True, slots=True)
class Candidate:
    """A learned capability: what it was good for, at least one intent, and every tool that it calls."""

    id: str
    intents: tuple[str, ...]
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """A capability and how likely it is the one that is meant, from 0 to 1."""

    id: str
    confidence: float


@dataclass(frozen=True, slots=True)
class MatchWeights:
    """What a unit of each evidence is worth in log odds against none of them, and where those begin.

    `shared_words`: with that of its intents that has most; rare words count more; 1 where both have the
    same. `weakest_tool`: log
    odds, by discovery, of the tool of the capability that fits the intent least. `other_tool`: those of the
    tool that fits it best and is not of the capability.
    """

    shared_words: float
    weakest_tool: float
    other_tool: float
    bias: float

    @property
    def slopes(self) -> Column:
        """The weights in the order of `EVIDENCE`."""
        return np.array(astuple(self)[:-1])


# Learned by `python -m benchmarks.discovery.matching` from nine public data sets, each counting the same.
DEFAULT = MatchWeights(shared_words=6.44, weakest_tool=1.46, other_tool=-0.75, bias=-0.56)


def matches(
    index: DiscoveryIndex, candidates: Sequence[Candidate], intent: str, weights: MatchWeights = DEFAULT
) -> list[Match]:
    """The candidates, the likeliest first, of equal ones the better standing, then by id.

    Of several that were learned for the same words only the best standing can be meant by them. Where
    one was learned for just what is asked, no other one is likely.
    """
    told = _said(intent)
    if not told or not candidates:
        return []
    distinct = _distinct(index, candidates)
    found = confidences(evidence(index, distinct, intent), weights)
    named = {each.id for each in distinct if told in map(_said, each.intents)}
    most = round(1 - SAME_WORDS, 6) if named else 1.0
    judged = (
        Match(each.id, max(share, SAME_WORDS) if each.id in named else min(share, most))
        for each, share in zip(distinct, found.tolist(), strict=True)
    )
    return sorted(judged, key=lambda match: (-match.confidence, match.id))


def evidence(index: DiscoveryIndex, candidates: Sequence[Candidate], intent: str) -> Evidence:
    """A row of evidence for each candidate."""
    tools = _tool_log_odds(index, intent)
    rows = (_of_tools(tools, candidate.tools, index.weights.bias) for candidate in candidates)
    return np.column_stack((_shared_words(candidates, intent), np.array(list(rows)).reshape(-1, 2)))


def confidences(rows: Evidence, weights: MatchWeights) -> Column:
    """The share of each candidate in the odds of all of them and none."""
    sums = rows @ weights.slopes + weights.bias
    most = max(0.0, float(sums.max(initial=0.0)))
    odds = np.exp(sums - most)
    shares: Column = odds / (odds.sum() + np.exp(-most))
    return np.round(shares, 6)


def _distinct(index: DiscoveryIndex, candidates: Sequence[Candidate]) -> list[Candidate]:
    def best_last(candidate: Candidate) -> tuple[float, str]:
        return prior(index.standings.get(candidate.id)), candidate.id

    ordered = sorted(candidates, key=best_last)
    holder = {_said(intent): each.id for each in ordered for intent in each.intents}
    own = ((each, tuple(i for i in each.intents if holder[_said(i)] == each.id)) for each in ordered)
    found = (replace(each, intents=intents) for each, intents in own if intents)
    return sorted(found, key=lambda candidate: candidate.id)


def _shared_words(candidates: Sequence[Candidate], intent: str) -> Column:
    """The weight of the words that both have, out of the weight of those that either has (Jaccard).

    Of several intents the nearest counts; a word is rare where few candidates have it in any.
    """
    given = [[dict.fromkeys(_said(each)) for each in candidate.intents] for candidate in candidates]
    counts = Counter(word for of_one in given for word in dict.fromkeys(chain(*of_one)))
    rare = {word: rarity(len(given), count) for word, count in counts.items()}
    unknown, asked = rarity(len(given), 0), dict.fromkeys(_said(intent))
    whole = [rare.get(word, unknown) for word in asked]

    def share(said: Collection[str]) -> float:
        # Sums that do not depend on the order: the same words in another order have a share of 1, never more.
        both = fsum(rare[word] for word in said if word in asked)
        return both / (fsum(chain(whole, (rare[word] for word in said if word not in asked))) or 1.0)

    return np.array([max(share(said) for said in of_one) for of_one in given])


@lru_cache(INTENTS_KEPT)
def _said(intent: str) -> tuple[str, ...]:
    """The words of an intent; those of learned ones are asked for with each question."""
    return tuple(words(intent))


def _tool_log_odds(index: DiscoveryIndex, intent: str) -> dict[str, float]:
    """For each tool that discovery looked at, how likely it is one of those needed, the best first."""
    snapshot = index.snapshot()
    numbers, scores = snapshot.scored(question(intent, index.embedding), index.weights)
    sure = np.clip(scores, SCORE_LEAST, 1 - SCORE_LEAST)
    log_odds = np.log(sure) - np.log1p(-sure)
    best_first = np.argsort(-log_odds, kind="stable")
    return {
        snapshot.documents[numbers[place]].id: float(log_odds[place])
        for place in best_first
        if snapshot.is_tool[numbers[place]]
    }


def _of_tools(log_odds: dict[str, float], own: Sequence[str], nothing: float) -> tuple[float, float]:
    """The weakest tool of its own, the best other one; `nothing`: log odds where nothing speaks for one.

    The best tool is the first.
    """
    weakest = min((log_odds.get(tool, UNSEEN) for tool in own), default=nothing)
    others = next((odds for tool, odds in log_odds.items() if tool not in own), nothing)
    return weakest, max(others, nothing)
