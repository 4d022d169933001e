"""Which tools give what a tool needs, by what their schemas say (DESIGN §6, Provides edges)."""

from __future__ import annotations

from collections.abc import Sequence

from pml.processors.capabilities.aliases import PAIRS, same_name
from pml.processors.discovery.documents import Document

# An output that more tools have than this says nothing about who is meant ("result", "status").
PROVIDERS_MOST = 20


class Provides:
    """Providers by the name of what they give."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._givers: dict[str, list[int]] = {}
        for number, document in enumerate(documents):
            for name in document.gives:
                self._givers.setdefault(name, []).append(number)

    def providers(self, number: int) -> dict[int, float]:
        """For each tool that gives inputs of this one: their share, less where others give them too.

        1 where one tool alone gives all of them.
        """
        takes = self._documents[number].takes
        found: dict[int, float] = {}
        for wanted in takes:
            givers = [giver for giver in self._giving(wanted) if giver != number]
            if len(givers) <= PROVIDERS_MOST:
                for giver in givers:
                    found[giver] = found.get(giver, 0) + 1 / len(givers) / len(takes)
        return found

    def _giving(self, wanted: str) -> list[int]:
        names = {wanted, *(name for pair in PAIRS if wanted in pair for name in pair)}
        return sorted(
            {number for name in names if same_name(name, wanted) for number in self._givers.get(name, ())}
        )
