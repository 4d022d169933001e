"""What every component says of every item, for some prefixes: what features of candidates are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pml.processors.learning.candidates import Probabilities
from pml.processors.learning.components import LIKELY, Components
from pml.processors.learning.dot_products import dot_products
from pml.processors.learning.grouping import Places
from pml.processors.learning.requests import Compared, Requests
from pml.processors.learning.traces import NO_TEXT, Prefixes
from pml.processors.learning.vocabulary import UNKNOWN, Ids
from pml.schemas.prediction import HISTORY_MOST

COMPARED = ("cosine", "lexical", "titled", "like_the_last", "recency")
# Items of the history that are looked at, the latest ones: who serves has no more, so training uses no more.
HISTORY = HISTORY_MOST


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What all features of some prefixes are made from; `signals` float64 [prefixes, size] by name.

    `rows` int64 [prefixes] are those of `texts`, each text once; `NO_TEXT` where nothing was visible.
    """

    components: Components
    prefixes: Prefixes
    texts: Compared
    rows: Places
    signals: Mapping[str, Probabilities]

    @property
    def called(self) -> Ids:
        """int32 [prefixes, `HISTORY`]: the items called so far, the latest first, then `UNKNOWN`."""
        return self.prefixes.windows(HISTORY, start=UNKNOWN, none=UNKNOWN)

    @property
    def calls(self) -> Places:
        """int64 [prefixes]: how many items were called so far, of those that are looked at."""
        return np.asarray(np.minimum(self.prefixes.ends - self.prefixes.starts, HISTORY))


def evidence(components: Components, prefixes: Prefixes, requests: Requests) -> Evidence:
    """Ask every component; `prefixes.text_rows` names rows of `requests`."""
    count, size = len(prefixes), len(components.points)
    rows = np.full(count, NO_TEXT) if prefixes.text_rows is None else prefixes.text_rows
    told = np.flatnonzero(rows != NO_TEXT)
    texts = np.zeros((count, components.points.shape[1]), dtype=np.float32)
    texts[told] = requests.points[rows[told]]
    looked_at, rows = _each_once(rows, told)
    beside = requests.compared(looked_at)
    lexical, titled = np.zeros((count, size)), np.zeros((count, size))
    lexical[told], titled[told] = beside.lexical[rows[told]], beside.titled[rows[told]]
    read = replace(prefixes, texts=texts)
    signals = {name: np.zeros((count, size)) for name in LIKELY}
    signals |= {name: part.probabilities(read) for name, part in components.parts.items()}
    like, recency = _history(components, read)
    cosines = dot_products(texts, components.points)
    signals |= dict(zip(COMPARED, (cosines, lexical, titled, like, recency), strict=True))
    signals |= components.later.signals(read)
    signals |= components.like.signals(read)
    signals |= components.meanings.signals(read, requests)
    signals["asked_for"] = components.habits.like(read)
    return Evidence(components, read, beside, rows, signals)


def _each_once(rows: Places, told: Places) -> tuple[Places, Places]:
    """int64: the rows that are named at these places, ascending; and `rows` as places among them."""
    looked_at, places = np.unique(rows[told], return_inverse=True)
    named = np.full(len(rows), NO_TEXT)
    named[told] = places
    return looked_at, named


def _history(components: Components, prefixes: Prefixes) -> tuple[Probabilities, Probabilities]:
    """float64 [prefixes, size] each: how like the last item, and 1 ÷ how many calls ago it was called."""
    called = prefixes.windows(HISTORY, start=UNKNOWN, none=UNKNOWN)
    last = called[:, 0]
    like = dot_products(components.points[last], components.points) * (last != UNKNOWN)[:, None]
    recency = np.zeros(like.shape)
    for ago in range(HISTORY, 0, -1):
        recency[np.arange(len(called)), called[:, ago - 1]] = 1 / ago
    recency[:, UNKNOWN] = 0
    return like, recency
