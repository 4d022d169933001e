"""What the log says of the calls that began early: how many, how many were served, what their tools took."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.end_to_end.clock import Account
from pml.schemas.events import Event
from pml.schemas.speculation_events import SpeculationEnded, SpeculationReady, SpeculationStarted
from pml.schemas.task_events import TaskCompleted
from pml.schemas.times import from_rfc3339

TYPES = ("speculation.started", "speculation.ready", "speculation.ended", "task.completed")
EARLY = ("speculation", "joined")


@dataclass(slots=True)
class EarlyCalls:
    """Events of played sessions, in the order of the log, as an account.

    A result that waits was in vain, if nobody took it: it is asked for when all has been played.
    """

    began_ms: dict[str, int] = field(default_factory=dict)
    took_ms: dict[str, float] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    hits: int = 0

    @property
    def run(self) -> bool:
        """Whether some of them have not come to an end yet."""
        return not self.began_ms.keys() <= self.took_ms.keys()

    def take(self, event: Event) -> None:
        """The next event."""
        data = event.data
        if isinstance(data, SpeculationStarted):
            self.began_ms[data.call_id] = from_rfc3339(event.occurred_at)
        elif isinstance(data, SpeculationReady):
            self.took_ms[data.call_id] = data.tool_ms
        elif isinstance(data, SpeculationEnded):
            self._end(data, from_rfc3339(event.occurred_at))
        elif isinstance(data, TaskCompleted):
            self.hits += data.served_by in EARLY

    def account(self, wall_s: float) -> Account:
        """Of the sessions, which took `wall_s` together."""
        used_ms = sum(took_ms for call_id, took_ms in self.took_ms.items() if call_id in self.used)
        wasted_ms = sum(self.took_ms.values()) - used_ms
        return Account(wall_s, len(self.began_ms), self.hits, used_ms / 1_000, wasted_ms / 1_000)

    def _end(self, data: SpeculationEnded, now_ms: int) -> None:
        """What was cancelled took until now."""
        if data.fate == "served":
            self.used.add(data.call_id)
        ran_ms = float(now_ms - self.began_ms.get(data.call_id, now_ms))
        self.took_ms.setdefault(data.call_id, data.tool_ms or ran_ms)
