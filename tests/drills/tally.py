"""What the drills of one workshop have seen: each verdict reads what is new, and knows what was before."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from pml.schemas.events import Event

ENDS = frozenset({"run.completed", "run.failed", "run.aborted"})
# A served result is called again now and then, to see that it was right.
BEGINNINGS = (".started", ".verifying")


@dataclass
class Tally:
    """Folds the events that count, in order of each partition.

    Attributes:
        positions: where to read on, by topic and partition.
        sequences: the next seq of each life of a session.
        decided: by input partition, the highest input that was decided and the last event of it.
        submissions, lines: how many runs were asked for and lines of the ledger were there before.
    """

    positions: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    decided: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    started: Counter[str | None] = field(default_factory=Counter)
    ended: Counter[str | None] = field(default_factory=Counter)
    begun: set[str] = field(default_factory=set)
    sent: set[tuple[str, bool]] = field(default_factory=set)
    effects: Counter[str] = field(default_factory=Counter)
    events: int = 0
    submissions: int = 0
    lines: int = 0

    def fold(self, event: Event) -> None:
        """One more event.

        Raises:
            AssertionError: it has the wrong number, or its input was decided before.
        """
        self.events += 1
        if event.session_id:
            self._number(event)
        if event.cause is not None:
            self._decide(event)
        self.started[event.run_id] += event.type == "run.started"
        self.ended[event.run_id] += event.type in ENDS
        if event.type.endswith(BEGINNINGS):
            self.begun.add(getattr(event.data, "call_id", ""))

    def _number(self, event: Event) -> None:
        """Among counted events a session has seq 0, 1, 2, …"""
        life = (event.session_id, event.epoch)
        wanted = self.sequences.get(life, 0)
        assert event.seq == wanted, f"{event.id} should have the number {wanted}"
        self.sequences[life] = wanted + 1

    def _decide(self, event: Event) -> None:
        """Inputs are decided in order, each once: its events lie together."""
        assert event.cause is not None
        place = (event.cause.topic, event.cause.partition)
        highest, last = self.decided.get(place, (-1, -1))
        follows = event.cause.offset > highest or (event.cause.offset == highest and event.offset == last + 1)
        assert follows, f"the input {event.cause} was decided before {event.id}"
        self.decided[place] = (event.cause.offset, event.offset)
