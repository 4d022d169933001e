"""The low watermark of one partition: everything below it is answered, and may be committed."""

from __future__ import annotations

from collections import deque


class Watermark:
    """Offsets in flight, in the order they were taken; they may end in any order.

    The committed offset is that of the lowest one in flight: a slow call holds it, not the others.
    """

    def __init__(self, position: int) -> None:
        self._position = position
        self._taken: deque[int] = deque()
        self._open: set[int] = set()

    def __len__(self) -> int:
        """How many offsets are in flight."""
        return len(self._open)

    @property
    def position(self) -> int:
        """The next offset that was not taken yet."""
        return self._position

    @property
    def committable(self) -> int:
        """The offset to commit: where a new owner must begin to read."""
        while self._taken and self._taken[0] not in self._open:
            self._taken.popleft()
        return self._taken[0] if self._taken else self._position

    def take(self, offset: int) -> None:
        """An offset is in flight from now on. Offsets come in rising order."""
        if offset < self._position:
            raise ValueError(f"offset {offset} was taken before (position {self._position})")
        self._taken.append(offset)
        self._open.add(offset)
        self._position = offset + 1

    def end(self, offset: int) -> None:
        """This offset is answered; a second end changes nothing."""
        self._open.discard(offset)
