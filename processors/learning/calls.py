"""The calls of traces as columns: what was called, what its arguments looked like, how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """Calls of one tool whose arguments look alike are of one kind; `of` int64 [calls] is that of each.

    `tools` and `patterns` have a text for each kind; that of a pattern is JSON, empty where nothing is known.
    """

    tools: Sequence[str]
    patterns: Sequence[str]
    of: Places

    def __len__(self) -> int:
        return len(self.tools)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """`traces` int64, `tools` and `patterns` int32, `success` bool have a place for each call.

    `traces` are rows of a `TraceSet`, ascending; `tools` and `patterns` places among `tool_words` and
    `pattern_words`, so a pattern that a million calls have is there once.

    Raises:
        ValueError: the columns have different lengths.
    """

    traces: Places
    tools: NDArray[np.int32]
    patterns: NDArray[np.int32]
    success: NDArray[np.bool_]
    tool_words: Sequence[str]
    pattern_words: Sequence[str]

    def __post_init__(self) -> None:
        if not len(self.traces) == len(self.tools) == len(self.patterns) == len(self.success):
            raise ValueError("each call has a trace, a tool, a pattern and an end")

    def __len__(self) -> int:
        return len(self.traces)

    def of_traces(self, rows: Places) -> Calls:
        """Those of the traces with these numbers, in the numbers that `TraceSet.selected` gives them."""
        most = max(int(self.traces.max(initial=-1)), int(rows.max(initial=-1))) + 1
        numbers = np.full(most, -1, dtype=np.int64)
        numbers[rows] = np.arange(len(rows))
        traces = numbers[self.traces]
        kept = np.flatnonzero(traces >= 0)
        kept = kept[np.argsort(traces[kept], kind="stable")]
        return replace(self.at(kept), traces=traces[kept])

    def at(self, places: Places) -> Calls:
        """The calls at these places, in that order."""
        return replace(
            self,
            traces=self.traces[places],
            tools=self.tools[places],
            patterns=self.patterns[places],
            success=self.success[places],
        )

    def kinds(self) -> Kinds:
        """There are far fewer than calls, so only of kinds there are objects."""
        width = max(1, len(self.pattern_words))
        pairs, of = np.unique(self.tools.astype(np.int64) * width + self.patterns, return_inverse=True)
        tools, patterns = np.divmod(pairs, width)
        return Kinds(
            [self.tool_words[place] for place in tools.tolist()],
            [self.pattern_words[place] for place in patterns.tolist()],
            of.astype(np.int64),
        )
