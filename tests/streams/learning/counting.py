"""What to wish of a training of which nobody asks what the learners reached: most of its time goes there."""

from __future__ import annotations

from pml.processors.learning.judging import Learners
from pml.processors.learning.learners import LEARNED
from pml.streams.learning.training import Wish


class Counting(Wish):
    """Of those that learn only the one that is asked for is compared."""

    __slots__ = ()

    @property
    def learners(self) -> Learners:
        """Those that count, and the one."""
        asked = super().learners
        return {name: each for name, each in asked.items() if name not in LEARNED or name == self.learner}
