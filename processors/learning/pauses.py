"""Of which runs it is known what came after them: those that ended longer ago than sessions pause.

The log says when a run ended, never that a session is done: whoever is in the middle of one looks as if it
had stopped there. By the time of the log itself, that of its latest end, a session that was quiet for longer
than nearly every pause inside sessions does not go on. To be asked fairly, what went on has to be as old: of
what ended just now only that is seen which went on at once, so neither says how often sessions end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.grouping import Places

# Of the pauses inside sessions this share is not longer than the quiet after which one is over.
SHARE = 0.99
# Where fewer are known, sessions pause for about as long as the log has been kept. Then all are taken as
# known, and each session as over: what is learned is less sure, not surer than it is.
KNOWN_LEAST = 0.5


def settled(times_ms: Places, offsets: Places) -> NDArray[np.bool_]:
    """bool [items]: whether what came after each is known, of the last one of a session that nothing does.

    Args:
        times_ms: int64 [items], when each ended (Unix time), session by session, in each as they ended.
        offsets: int64 [sessions + 1], where the items of each begin.
    """
    all_of_them = np.ones(len(times_ms), dtype=np.bool_)
    goes_on = all_of_them.copy()
    goes_on[offsets[1:][np.diff(offsets) > 0] - 1] = False
    pauses_ms = np.diff(times_ms, append=0)[goes_on]
    if len(pauses_ms) == 0:
        return all_of_them
    found = times_ms.max() - times_ms > np.quantile(pauses_ms, SHARE, method="higher")
    return found if found.mean() >= KNOWN_LEAST and found[goes_on].any() else all_of_them
