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
    capability calls. `learned` are names that there are because a session called them, each with the group of
    the first that did, whose words describe it. `calls` are those that the items are made of; None: of single
    calls nothing is known.
    """

    vocabulary: Vocabulary
    traces: TraceSet
    texts: Sequence[str]
    descriptions: Mapping[str, str]
    listed: Collection[str] = ()
    calls: Calls | None = None
    contained: Mapping[str, Collection[str]] = field(default_factory=dict)
    learned: Mapping[str, int] = field(default_factory=dict)

    def asked_about(self, asked: Places, rows: Places) -> Sessions:
        """As somebody knows them who saw `rows` and is asked about `asked`, int64 both.

        The catalog of now has what the asked ones taught it: neither a capability that only they called is
        known, nor the words that they gave one.
        """
        theirs = {*self._called(asked)} & self.learned.keys()
        groups = {*self.traces.groups[asked].tolist()}
        hidden = theirs - {*self._called(rows)}
        told = {name for name in self.learned if self.learned[name] in groups}
        listed = [name for name in self.listed if name not in hidden]
        descriptions = {name: text for name, text in self.descriptions.items() if name not in told}
        return replace(self, listed=listed, descriptions=descriptions).known_from(rows)

    def known_from(self, rows: Places) -> Sessions:
        """All of them, as somebody knows them who saw these: what only others called is `UNKNOWN`.

        So nothing that is learned of some sessions has a number for what only later ones call.
        """
        known = Vocabulary.of({*self.listed, *self._called(rows)})
        numbers = np.concatenate(([0], known.ids(self.vocabulary.names))).astype(np.int32)
        traces = replace(self.traces, items=numbers[self.traces.items])
        return replace(self, vocabulary=known, traces=traces)

    def _called(self, rows: Places) -> list[str]:
        """The names of what these called."""
        used = np.unique(self.traces.selected(rows).items)
        names = (self.vocabulary.name(number) for number in used.tolist())
        return [name for name in names if name is not None]

    def first_groups(self) -> dict[str, int]:
        """For each name that was called, the group of the session that called it and ended first."""
        traces = self.traces
        owners = np.repeat(np.arange(len(traces)), traces.lengths)
        order = np.argsort(traces.times_ms[owners], kind="stable")
        items, first = np.unique(traces.items[order], return_index=True)
        groups = traces.groups[owners[order[first]]]
        names = (self.vocabulary.name(number) for number in items.tolist())
        return {name: group for name, group in zip(names, groups.tolist(), strict=True) if name is not None}

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
