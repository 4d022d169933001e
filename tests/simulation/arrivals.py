"""What must hold as a call comes to its tool, whoever brings it there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tests.simulation.observer import Started
from tests.simulation.promises import Promises
from tests.simulation.tools import ToolSpec


class Arrivals:
    """Looks at each call that reaches its tool.

    Args:
        claimed: the ids of calls with a claim that counts, as it is now.
    """

    def __init__(self, promises: Promises, claimed: Callable[[], set[str]]) -> None:
        self._promises, self._claimed = promises, claimed
        self._observer, self._ledger = promises.observer, promises.ledger
        self.reached: Counter[str] = Counter()

    def look(self, spec: ToolSpec, arguments: Mapping[str, Any], call_id: str, early: bool) -> None:
        """One call."""
        check = self._ledger.check
        started = self._observer.calls.get(call_id)
        check("a call that runs follows from the log", started is not None, call_id)
        at_s = self._ledger.loop.time() if started is None else started.at_s
        approved = self._promises.approved(spec.name, at_s) or self._granted(started)
        check("a tool without approval never runs unasked", approved, lambda: f"{call_id} {spec.name}")
        if spec.writes(arguments):
            self.reached[call_id] += 1
            check("an unsafe call reaches its tool once", self.reached[call_id] == 1, call_id)
            check("an unsafe call runs under a claim that counts", call_id in self._claimed(), call_id)
            check("an unsafe call never runs early", not early, call_id)

    def _granted(self, started: Started | None) -> bool:
        """Whether this call began with a person's word; that the word is for it was looked at then."""
        word = getattr(started.data, "approval_id", None) if started is not None else None
        return word in self._observer.words.granted
