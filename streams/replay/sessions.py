"""The sessions' states again: `evolve` over the log, compared with the orchestrator's control records
and with the definitions of runs that it keeps.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from heapq import nsmallest

from pml.processors.workflow import (
    Session,
    definition_name,
    definition_record,
    encode_session,
    evolve,
)
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import Event
from pml.schemas.identifiers import event_id, session_key
from pml.streams.orchestrator.table import (
    HEADER,
    Life,
    definition_key,
    is_definition,
    is_session,
    life_key,
    life_of,
    read_stored,
)
from pml.streams.replay.live import of_partition
from pml.streams.replay.report import FOLDABLE, Comparison, Place, end_of_log
from pml.streams.replay.sources import LogEntry

# A state takes some 10 KB. One that was pushed out is not folded on; the report says how many.
STATES_KEPT = 10_000
# Names of lives that are not folded on: each takes some 100 bytes.
LOST_KEPT = 100_000
# So many of them more are held before all of these go at once: to find those used longest ago takes a look at
# all.
OVER = 1 / 16
LifeName = str
"""The ids of its events without their number: tenant and session, which say the partition, and epoch."""


class SessionsReplay:
    """Folds every session and compares it at the event that its live record ends with.

    Args:
        live: control records and definitions of the live table by their keys.
        states_kept: how many states find room, and a sixteenth more; those used longest ago go first.
        whole: whether the source begins with the log; else lives that began before it are passed over.
        begins: the first offset that the source has; lives that began before it are passed over.
        ends: where each partition of the log ended after the live records were read. Records of events from
            there on prove that the log has lost them. Without it, they may be what the source never had.

    Raises:
        LogCorrupted: a live record is of an unknown version.
    """

    def __init__(
        self,
        live: Mapping[bytes, bytes],
        states_kept: int = STATES_KEPT,
        *,
        whole: bool = True,
        begins: int = 0,
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self.comparison = Comparison("sessions")
        self._ends = ends or {}
        self._live = {key: value for key, value in live.items() if is_session(key)}
        self._definitions = {key: value for key, value in live.items() if is_definition(key)}
        self._kept = states_kept
        self._states: dict[LifeName, Session] = {}
        # How many events were folded when a state was used last: nothing is moved at each event.
        self._used: dict[LifeName, int] = {}
        self._lost: OrderedDict[LifeName, None] = OrderedDict()
        # Of a life that is not known any more, another event than its first says nothing.
        self._sure = whole
        self._begins = begins
        self._forgotten = self._begun_before = 0

    def fold(self, entry: LogEntry) -> None:
        """One counted event, in order; a gap in `seq` or an id that is not its own is a difference."""
        event = entry.event
        session_id = event.session_id
        if not session_id:
            return
        derived = event_id(event.tenant, session_id, event.epoch, event.seq)
        if event.id != derived:
            self.comparison.differs(entry.place, "id", derived, event.id)
        name = derived.rpartition(":")[0]
        before = self._states.get(name)
        if before is None and (name in self._lost or not self._is_sure(event)):
            self._pass_over(name)
            return
        try:
            session = evolve(before, event)
        except LogCorrupted as error:
            self._lose(name)
            self.comparison.differs(entry.place, "seq", "the next", error.message)
            return
        except Exception as error:  # whatever somebody wrote into it
            self._lose(name)
            self.comparison.differs(entry.place, "event", FOLDABLE, type(error).__name__)
            return
        self.comparison.folded += 1
        self._keep(name, session)
        if self._definitions:
            self._compare_definition(entry)
        if self._live:
            self._compare(entry, session)

    def finish(self) -> None:
        """Say what of the live table the log has lost, and what was not compared.

        Raises:
            LogCorrupted: a live record is of an unknown version.
        """
        for partition, end in self._ends.items():
            self._find_lost(partition, end)
        self.comparison.remark(
            "{} live records end with events that the source does not have", len(self._live)
        )
        self.comparison.remark(
            "{} sessions began before the first event that was read, or could not be kept in mind; they are "
            "not folded",
            self._begun_before,
        )
        self.comparison.remark("{} live definitions are of runs that were not folded", len(self._definitions))
        self.comparison.remark("{} states found no room and were not folded on", self._forgotten)

    def _find_lost(self, partition: int, end: int) -> None:
        """Live records of events that lay where their partition of the log has none any more."""
        for key, value in sorted(of_partition(self._live, partition).items()):
            life = life_of(key)
            last = read_stored(life.epoch, value).last_offset
            if last >= end:
                del self._live[key]
                self.comparison.compared += 1
                place = Place(partition, last, life.session.decode(errors="replace"))
                self.comparison.differs(place, "event", "the one that its record ends with", end_of_log(end))

    def _is_sure(self, event: Event) -> bool:
        """Whether an event of a life that is not known must be its first; an epoch is the offset of that."""
        return event.seq == 0 or (self._sure and event.epoch >= self._begins)

    def _compare(self, entry: LogEntry, session: Session) -> None:
        key = life_key(entry.partition, Life(session_key(*entry.session), session.epoch))
        value = self._live.get(key)
        if value is None or read_stored(session.epoch, value).last_offset != session.last_offset:
            return
        del self._live[key]
        self.comparison.compared += 1
        expected, found = encode_session(session), value[HEADER.size :]
        if expected != found:
            self.comparison.differs(entry.place, "state", expected, found)

    def _compare_definition(self, entry: LogEntry) -> None:
        event = entry.event
        name = definition_name(event)
        if name is None:
            return
        life = Life(session_key(*entry.session), event.epoch)
        found = self._definitions.pop(definition_key(entry.partition, life, name), None)
        if found is None:
            return
        self.comparison.compared += 1
        expected = definition_record(event)
        if found != expected:
            self.comparison.differs(entry.place, "definition", expected, found)

    def _keep(self, name: LifeName, session: Session) -> None:
        self._states[name] = session
        self._used[name] = self.comparison.folded
        if len(self._states) > self._kept * (1 + OVER):
            self._push_out(len(self._states) - self._kept)

    def _push_out(self, count: int) -> None:
        for name in nsmallest(count, self._used, key=self._used.__getitem__):
            self._lose(name)
        self._forgotten += count

    def _pass_over(self, name: LifeName) -> None:
        if name not in self._lost:
            self._begun_before += 1
            self._lose(name)

    def _lose(self, name: LifeName) -> None:
        self._states.pop(name, None)
        self._used.pop(name, None)
        self._lost[name] = None
        if len(self._lost) > LOST_KEPT:
            self._lost.popitem(last=False)
            self._sure = False
