"""Sessions in which requests, and what was called last, say what comes next."""

from __future__ import annotations

import numpy as np

from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.vocabulary import Vocabulary

NAMES = ("files:read", "mail:send", "chart:draw", "weather:fetch")
DESCRIPTIONS = {
    "files:read": "read a file",
    "mail:send": "send a mail",
    "chart:draw": "draw a chart",
    "weather:fetch": "fetch the weather forecast",
}


def drawn_sessions(count: int, seed: int, *, by_request: bool, items: int = 5) -> Sessions:
    """So many sessions; the next item is what the request names, or the one after the last by number."""
    generator = np.random.default_rng(seed)
    vocabulary = Vocabulary.of(NAMES)
    drawn = generator.integers(1, vocabulary.size, (count, items))
    if not by_request:
        drawn = (drawn[:, :1] + np.arange(items) - 1) % len(NAMES) + 1
    texts = tuple(f"please {DESCRIPTIONS[name]}" for name in vocabulary.names)
    visible = drawn - 1 if by_request else np.full_like(drawn, NO_TEXT)
    traces = TraceSet(
        items=drawn.ravel().astype(np.int32),
        success=np.ones(drawn.size, dtype=np.float32),
        offsets=np.arange(count + 1) * items,
        outcomes=np.ones(count, dtype=np.float32),
        weights=np.ones(count, dtype=np.float32),
        groups=np.arange(count),
        times_ms=np.arange(count) * 1_000,
        texts=visible.ravel().astype(np.int64),
        end_texts=visible[:, -1].astype(np.int64),
    )
    return Sessions(vocabulary, traces, texts, DESCRIPTIONS)
