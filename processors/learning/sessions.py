"""What people's sessions called, one run after another, with what was visible of each request before it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.calls import Calls
from pml.processors.learning.traces import TraceSet
from pml.processors.learning.vocabulary import UNKNOWN, Vocabulary

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Traces in the numbers of `vocabulary`; their `texts` name rows of `texts`, which are distinct.

    `descriptions` are those of names, in words; of a name that has none nothing is known but itself.
    `listed` names may come next although nobody called them yet. `contained` are the names of what each
    capability calls. `calls` are those that the items are made of; None: of single calls nothing is known.
    """

    vocabulary: Vocabulary
    traces: TraceSet
    texts: Sequence[str]
    descriptions: Mapping[str, str]
    listed: Collection[str] = ()
    calls: Calls | None = None
    contained: Mapping[str, Collection[str]] = field(default_factory=dict)

    def known_from(self, rows: Places) -> Sessions:
        """All of them, as somebody knows them who saw these: what only others called is `UNKNOWN`.

        So nothing that is learned of some sessions has a number for what only later ones call.
        """
        used = np.unique(self.traces.selected(rows).items)
        called = (self.vocabulary.name(int(number)) for number in used)
        known = Vocabulary.of({*self.listed, *(name for name in called if name is not None)})
        numbers = np.concatenate(([0], known.ids(self.vocabulary.names))).astype(np.int32)
        traces = replace(self.traces, items=numbers[self.traces.items])
        return replace(self, vocabulary=known, traces=traces)

    def members(self) -> dict[int, list[int]]:
        """What capabilities contain, in numbers of the vocabulary, as far as it has them."""
        owners = self.vocabulary.ids(list(self.contained)).tolist()
        told = zip(owners, self.contained.values(), strict=True)
        return {owner: self._numbers(names) for owner, names in told if owner != UNKNOWN}

    def _numbers(self, names: Collection[str]) -> list[int]:
        return sorted({*self.vocabulary.ids(list(names)).tolist()} - {UNKNOWN})

    def described(self) -> tuple[str, ...]:
        """A text for each number of the vocabulary; empty where there is none, and of what is unknown."""
        return ("", *(self.descriptions.get(name, "") for name in self.vocabulary.names))
