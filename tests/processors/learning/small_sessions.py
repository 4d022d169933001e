"""Sessions in which requests, and what was called last, say what comes next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.vocabulary import Vocabulary

Numbers = NDArray[np.int64]
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
    traces = _traces(drawn.ravel(), np.full(count, items), visible.ravel(), visible[:, -1])
    return Sessions(vocabulary, traces, texts, DESCRIPTIONS)


def wordy_sessions(count: int, seed: int, *, tools: int = 60) -> Sessions:
    """Sessions of 1 to 4 of many tools, whose requests have as many clauses and up to three more."""
    generator = np.random.default_rng(seed)
    words = [
        f"{first}{second}" for first in ("ba", "co", "di", "fu") for second in ("lo", "mer", "nu", "stak")
    ]
    told = [" ".join(generator.choice(words, 3)) for _ in range(tools)]
    vocabulary = Vocabulary.of(f"server:tool_{number:02}" for number in range(tools))
    lengths = generator.integers(1, 5, count)
    called = [generator.integers(0, tools, length).tolist() for length in lengths]
    texts = []
    for each in called:
        more = generator.choice(words, (int(generator.integers(0, 4)), 2))
        texts.append(". ".join([*(f"please {told[tool]}" for tool in each), *map(" ".join, more)]))
    items = np.array([tool + 1 for each in called for tool in each])
    traces = _traces(items, lengths, np.repeat(np.arange(count), lengths), np.arange(count))
    return Sessions(vocabulary, traces, tuple(texts), dict(zip(vocabulary.names, told, strict=True)))


def _traces(items: Numbers, lengths: Numbers, texts: Numbers, end_texts: Numbers) -> TraceSet:
    """Traces that all went well, each of a group of its own."""
    count = len(lengths)
    return TraceSet(
        items=items.astype(np.int32),
        success=np.ones(len(items), dtype=np.float32),
        offsets=np.concatenate(([0], np.cumsum(lengths))),
        outcomes=np.ones(count, dtype=np.float32),
        weights=np.ones(count, dtype=np.float32),
        groups=np.arange(count),
        times_ms=np.arange(count) * 1_000,
        texts=texts.astype(np.int64),
        end_texts=end_texts.astype(np.int64),
    )
