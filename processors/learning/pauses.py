"""Which sessions are over: those that have been quiet for longer than sessions pause.

The log says when a run ended, never that a session is done: whoever is in the middle of one looks as if it
had stopped there. By the time of the log itself, that of its latest end, a session that was quiet for longer
than nearly every pause inside sessions does not go on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.grouping import Places

# Of the pauses inside sessions this share is not longer than the quiet after which one is over.
SHARE = 0.99
# Where fewer are over, sessions pause for about as long as the log has been kept: of those that end, too few
# are known to. Then all are taken as over, which makes what is learned less sure, not surer than it is.
OVER_LEAST = 0.5


def over(times_ms: Places, offsets: Places) -> NDArray[np.bool_]:
    """bool [sessions]: whether nothing more is to be expected of each; those without items are over.

    Args:
        times_ms: int64 [items], when each ended (Unix time), session by session, in each as they ended.
        offsets: int64 [sessions + 1], where the items of each begin.
    """
    found = np.ones(len(offsets) - 1, dtype=np.bool_)
    some = np.diff(offsets) > 0
    inside = np.ones(len(times_ms), dtype=np.bool_)
    inside[offsets[:-1][some]] = False
    pauses_ms = np.diff(times_ms, prepend=0)[inside]
    if len(pauses_ms) == 0:
        return found
    last_ms = times_ms[offsets[1:][some] - 1]
    quiet = last_ms.max() - last_ms > np.quantile(pauses_ms, SHARE, method="higher")
    if quiet.mean() >= OVER_LEAST:
        found[some] = quiet
    return found
