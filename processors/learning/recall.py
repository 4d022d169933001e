"""What sessions that had gone exactly so did next: the same elements in the same order, with the same text.

Learners are judged on sessions unlike those they saw, because that is what must be learned. But what recurs
word for word is recalled: it was done so before, and how often that is right is counted on sessions whose
like was seen, each without itself (leave one out).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.candidates import Candidates, fitting
from pml.processors.learning.duplicates import key_hash
from pml.processors.learning.isotonic import Isotonic
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, Prefixes
from pml.processors.learning.vocabulary import UNKNOWN, Ids
from pml.schemas.prediction import HISTORY_MOST, REQUEST_CHARACTERS_MAX

# What one session alone did says nothing.
SESSIONS_LEAST: Final = 2
# The most frequent beginnings that are kept.
KEYS_MOST: Final = 50_000
# From so few cases nobody can tell how often recalling is right.
CASES_LEAST: Final = 20
END: Final = -1

Counts = NDArray[np.int64]
Beginnings = dict[int, Counter[int]]
Name = TypeVar("Name", bound=Hashable)
# How often other sessions said an item with this score, and whether it came.
Cases = Counter[tuple[float, bool]]


@dataclass(frozen=True, slots=True, eq=False)
class Recall:
    """Beginnings that several sessions had, and what came next in them.

    Attributes:
        keys: int64 [beginnings], ascending: of the elements so far and the text.
        totals: int64 [beginnings], how many sessions had each.
        starts: int64 [beginnings + 1], where `items` and `counts` of each begin.
        items: int64, numbers of the vocabulary that came next, or `END`.
        counts: int64, in how many of the sessions.
        curve: from the share of sessions that went on so to how often that is right.
        asked: questions that others' beginnings answered.
        right: how many of these came as in most of them.
    """

    keys: Counts
    totals: Counts
    starts: Counts
    items: Counts
    counts: Counts
    curve: Isotonic
    asked: int
    right: int

    @classmethod
    def fit(cls, sessions: Sessions) -> Recall | None:
        """Learn it of sessions; None where too little recurs to say how often that is right."""
        known: Beginnings = defaultdict(Counter)
        for key, item in _questions(sessions):
            known[key][item] += 1
        cases, asked, hits = _left_one_out(known)
        if cases.total() < CASES_LEAST:
            return None
        often = {key: told for key, told in known.items() if told.total() >= SESSIONS_LEAST}
        kept = sorted(sorted(often, key=lambda key: (-often[key].total(), key))[:KEYS_MOST])
        named = [sorted(often[key].items()) for key in kept]
        return cls(
            keys=np.array(kept, dtype=np.int64),
            totals=np.array([often[key].total() for key in kept], dtype=np.int64),
            starts=np.cumsum([0, *map(len, named)], dtype=np.int64),
            items=np.array([item for each in named for item, _ in each], dtype=np.int64),
            counts=np.array([count for each in named for _, count in each], dtype=np.int64),
            curve=_calibrated(cases),
            asked=asked,
            right=hits,
        )

    def after(self, history: Sequence[str], text: str) -> Mapping[int, float]:
        """How likely each number of the vocabulary, or `END`, comes next; nothing where none had gone so."""
        if len(history) >= HISTORY_MOST:
            return {}
        key = _key(history, text)
        place = int(np.searchsorted(self.keys, key))
        if place == len(self.keys) or self.keys[place] != key:
            return {}
        inside = slice(int(self.starts[place]), int(self.starts[place + 1]))
        said = self.curve(self.counts[inside] / (self.totals[place] + 1))
        told = dict(zip(self.items[inside].tolist(), said.tolist(), strict=True))
        # What has no name came, too, but nobody can say it.
        return {item: likely for item, likely in told.items() if item != UNKNOWN}

    def after_each(self, prefixes: Prefixes, sessions: Sessions) -> list[Mapping[int, float]]:
        """The same for prefixes of sessions, whose vocabulary may be another one."""
        rows = prefixes.text_rows
        texts = np.full(len(prefixes), NO_TEXT) if rows is None else rows
        asked = zip(prefixes.starts.tolist(), prefixes.ends.tolist(), texts.tolist(), strict=True)
        return [
            self.after(_names(sessions, prefixes.items[start:end]), _text(sessions, row))
            for start, end, row in asked
        ]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return columns | {"questions": np.array([self.asked, self.right])} | self.curve.to_arrays()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Recall:
        """What `to_arrays` wrote.

        Raises:
            ValueError: an array is missing or does not fit: train the model again.
        """
        columns = {name: fitting(arrays, name, np.int64, 1) for name in _COLUMNS}
        questions = fitting(arrays, "questions", np.int64, 1)
        starts, keys = columns["starts"], columns["keys"]
        sound = (
            len(starts) == len(keys) + 1 == len(columns["totals"]) + 1
            and len(columns["items"]) == len(columns["counts"]) == starts[-1]
            and starts[0] == 0
            and bool(np.all(np.diff(starts) >= 0))
            and bool(np.all(columns["totals"] > 0))
            and len(questions) == 2
        )
        if not sound:
            raise ValueError("what the model recalls does not fit: train it again")
        asked, right = questions.tolist()
        return cls(**columns, curve=Isotonic.from_arrays(arrays), asked=asked, right=right)


_COLUMNS = ("keys", "totals", "starts", "items", "counts")


def with_recalled(named: Candidates, recalled: Sequence[Mapping[int, float]]) -> Candidates:
    """What a learner says of each prefix together with what recurs (`Recall.after`), as many of each.

    Args:
        named: a learner's, as sure as they are right; they stay as they are.
        recalled: of each prefix.
    """
    items, confidences = named.items.copy(), named.probabilities.copy()
    for row, found in enumerate(recalled):
        if found:
            _join(items[row], confidences[row], found)
    return Candidates(items, confidences)


def _join(items: Ids, confidences: NDArray[np.float64], found: Mapping[int, float]) -> None:
    known = items != UNKNOWN
    said = dict(zip(items[known].tolist(), confidences[known].tolist(), strict=True))
    recalled = {item: likely for item, likely in found.items() if item != END}
    both = agreed(said, recalled, found.get(END, 0.0))[: len(items)]
    for place, (item, confidence) in enumerate(both):
        items[place], confidences[place] = item, confidence


def agreed(
    said: Mapping[Name, float], recalled: Mapping[Name, float], ended: float = 0.0
) -> list[tuple[Name, float]]:
    """What a learner says, and what is recalled, as one: the most likely first.

    Each counts as the likelier of the two; what a learner says of one leaves room for what is recalled of
    another, and for sessions that were over then (`ended`).
    """
    found: dict[Name, float] = {}
    for name in [*said, *(each for each in recalled if each not in said)]:
        others = max((likely for each, likely in recalled.items() if each != name), default=0.0)
        others = max(others, ended)
        found[name] = max(recalled.get(name, 0.0), min(said.get(name, 0.0), 1.0 - others))
    return sorted(found.items(), key=lambda each: -each[1])


def _questions(sessions: Sessions) -> Iterator[tuple[int, int]]:
    """Of each session after each element: its beginning so far, and what came next or `END`.

    What comes after one of just now nobody knows yet. Who asks remembers `HISTORY_MOST` elements, of so many
    nobody knows whether the session began with them; and none that has no name.
    """
    traces = sessions.traces
    settled = np.ones(len(traces.items), dtype=np.bool_) if traces.settled is None else traces.settled
    columns = (traces.offsets[:-1], traces.offsets[1:], traces.end_texts)
    for begin, end, last in zip(*(column.tolist() for column in columns), strict=True):
        history: list[str] = []
        for place in range(begin + 1, end + 1):
            history += _names(sessions, traces.items[place - 1 : place])
            if len(history) >= HISTORY_MOST:
                break
            if history and settled[place - 1]:
                text = _text(sessions, int(traces.texts[place]) if place < end else last)
                yield _key(history, text), int(traces.items[place]) if place < end else END


def _names(sessions: Sessions, items: Ids) -> list[str]:
    """Those of the first `HISTORY_MOST` that have one: more of them begin nothing that is kept."""
    known = items[items != UNKNOWN][:HISTORY_MOST]
    return [name for item in known.tolist() if (name := sessions.vocabulary.name(item)) is not None]


def _text(sessions: Sessions, row: int) -> str:
    return "" if row == NO_TEXT else sessions.texts[row]


def _key(history: Sequence[str], text: str) -> int:
    return key_hash([list(history), text[:REQUEST_CHARACTERS_MAX]])


def _left_one_out(known: Beginnings) -> tuple[Cases, int, int]:
    """What the other sessions of a beginning say of each item, and whether it came, for each session there;
    how many were asked, and in how many the likeliest came."""
    cases: Cases = Counter()
    asked = hits = 0
    for told in known.values():
        if (total := told.total()) >= SESSIONS_LEAST:
            cases.update(_cases(told, total))
            asked += total
            hits += _hits(told)
    return cases, asked, hits


def _cases(told: Counter[int], total: int) -> Cases:
    """Of one beginning. Items that came equally often are alike: so this is not items times items.

    To a session that went on with an item one fewer say it (right); to all others it is said, and wrong.
    """
    cases: Cases = Counter()
    for count, items in Counter(told.values()).items():
        cases[count / total, False] += items * (total - count)
        cases[(count - 1) / total, True] += items * count
    # What nobody is asked is no case, and what nobody else did is not said.
    return Counter({case: times for case, times in cases.items() if times and case[0] > 0})


def _hits(told: Counter[int]) -> int:
    """Sessions that went on as most of the others did, of equally many the first item's.

    Only the sessions of the most frequent item can: to any other session that one is the likelier.
    """
    (item, count), *others = sorted(told.items(), key=_likelier)
    best = min(map(_likelier, [*others, (item, count - 1)]))
    return count if best == (1 - count, item) else 0


def _likelier(named: tuple[int, int]) -> tuple[int, int]:
    item, count = named
    return -count, item


def _calibrated(cases: Cases) -> Isotonic:
    scores, right = zip(*cases, strict=True)
    return Isotonic.fit(np.array(scores), np.array(right), np.array(list(cases.values()), dtype=np.float64))
