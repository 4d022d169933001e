"""What the bridge holds for one partition of the calls while it owns it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from pml.streams.bridge.call import Call
from pml.streams.bridge.claims import Claims
from pml.streams.bridge.watermark import Watermark

# Calls repeated after a takeover are those of live sessions; a safe call that fell out may run again.
ANSWERED_MAX = 20_000
# The arguments of calls in flight: 256 calls of 1 MiB each would be too much for twelve partitions.
BYTES_MAX = 64 * 1024 * 1024
# Resuming at once at the limit would pause again with the next call.
RESUME_SHARE = 0.75


class Partition:
    """Calls in flight, answers given, claims, and how far everything is answered."""

    def __init__(self, number: int, claims: Claims, in_flight_max: int) -> None:
        self.number, self.claims = number, claims
        self.calls: dict[str, Call] = {}
        self.watermark = Watermark(0)
        self.ready = False
        self.paused = False
        self._answered: OrderedDict[str, None] = OrderedDict()
        self._in_flight_max = in_flight_max
        self._bytes = 0

    @property
    def lost(self) -> bool:
        """Whether somebody else owns the partition now."""
        return self.claims.lost

    @property
    def full(self) -> bool:
        """Whether no more calls may be taken."""
        return len(self.watermark) >= self._in_flight_max or self._bytes >= BYTES_MAX

    @property
    def roomy(self) -> bool:
        """Whether enough calls have ended to take more."""
        calls_max, bytes_max = self._in_flight_max * RESUME_SHARE, BYTES_MAX * RESUME_SHARE
        return len(self.watermark) <= calls_max and self._bytes <= bytes_max

    def begin(self, position: int, answered: Iterable[str]) -> None:
        """Read from here: everything below is answered, and of what follows these calls are.

        Calls that are still running here since before a rebalance go on; their records come again and
        attach to them.
        """
        self.watermark = Watermark(position)
        self.remember(answered)
        self.paused = False
        self.ready = True

    def take(self, call: Call) -> None:
        """A call is in flight."""
        self.watermark.take(call.offset)
        self.calls[call.run.call_id] = call
        self._bytes += call.size_bytes

    def attach(self, call: Call, offset: int) -> None:
        """A call that is in flight came again: its own record after a rebalance, or a repeated one."""
        if offset == call.offset:
            self.watermark.take(offset)
        else:
            self.pass_over(offset)

    def end(self, call: Call) -> None:
        """A call is answered, or somebody else's to answer."""
        self.drop(call)
        self.watermark.end(call.offset)
        self.remember([call.run.call_id])

    def leave(self, call: Call) -> None:
        """A call that is not ours to run: somebody claimed it, or the partition was lost before anybody did.

        Then its record comes again, perhaps to us.
        """
        if self.settled(call.run.call_id):
            self.end(call)
        else:
            self.drop(call)

    def drop(self, call: Call) -> None:
        """A call is not run on here and not answered: its record comes again, to whoever reads it."""
        if self.calls.get(call.run.call_id) is call:
            del self.calls[call.run.call_id]
            self._bytes -= call.size_bytes

    def pass_over(self, offset: int) -> None:
        """A record that asks for no new call."""
        self.watermark.take(offset)
        self.watermark.end(offset)

    def remember(self, call_ids: Iterable[str]) -> None:
        """These calls are answered."""
        for call_id in call_ids:
            self._answered[call_id] = None
            self._answered.move_to_end(call_id)
        while len(self._answered) > ANSWERED_MAX:
            self._answered.popitem(last=False)

    def settled(self, call_id: str) -> bool:
        """Whether a call was answered, or claimed and never to be run again."""
        return call_id in self._answered or call_id in self.claims
