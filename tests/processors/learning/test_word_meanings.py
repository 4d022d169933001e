"""What words ask for is learned as one by one, of words that several requests say, and explained by calls."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.processors.learning import word_meanings as module
from pml.processors.learning.requests import read_requests
from pml.processors.learning.traces import NO_TEXT, TraceSet
from pml.processors.learning.word_meanings import NOTHING, ROUNDS, SHARE_LEAST, WordMeanings
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_traces import LISTS, SIZE, prefixes_of, trace_set

WORDS = [["chart"], ["chart", "mail"], ["mail", "weather", "chart"], ["weather"], []]
REQUESTS = read_requests([" ".join(each) for each in WORDS], [""] * SIZE, HashedNgrams())
TEXTS = st.lists(st.sampled_from([NO_TEXT, *range(len(WORDS))]), min_size=6, max_size=6)

Meanings = dict[tuple[str, int], float]


def meanings_twin(traces: TraceSet) -> Meanings:
    """Trace by trace, word by word: how often each word asks for each item."""
    told: list[tuple[list[str], list[int]]] = []
    for start, end in zip(traces.offsets[:-1].tolist(), traces.offsets[1:].tolist(), strict=True):
        if end > start and traces.texts[end - 1] != NO_TEXT:
            told.append((WORDS[traces.texts[end - 1]], sorted({*traces.items[start:end].tolist()} - {0})))
    times = Counter(word for words, _ in told for word in words)
    told = [([word for word in words if times[word] > 1], items) for words, items in told]
    found: Meanings = {(word, item): 1.0 for words, items in told for word in words for item in items}
    for _ in range(ROUNDS):
        counts: Counter[tuple[str, int]] = Counter()
        for words, items in told:
            for item in items:
                total = sum(found[word, item] for word in words)
                for word in words:
                    counts[word, item] += found[word, item] / total
        totals = Counter[str]()
        for (word, _), count in counts.items():
            totals[word] += count
        found = {key: count / (totals[key[0]] + NOTHING) for key, count in counts.items()}
    return {key: share for key, share in found.items() if share >= SHARE_LEAST}


@settings(max_examples=40)
@given(LISTS, TEXTS)
def test_meanings_are_those_found_one_by_one(lists: list[list[int]], texts: list[int]) -> None:
    traces = trace_set(lists, texts=texts[: len(lists)])
    known = meanings_twin(traces)
    asked = traces.positions(0)
    found = WordMeanings.fit(traces, SIZE, REQUESTS).signals(traces.prefixes(asked), REQUESTS)
    for row, place in enumerate(asked.tolist()):
        start = int(traces.offsets[traces.owners[place]])
        called, text = set(traces.items[start:place].tolist()), int(traces.texts[place])
        words = [] if text == NO_TEXT else WORDS[text]
        for item in range(SIZE):
            meant = still = 0.0
            for word in words:
                own = {each: share for (of, each), share in known.items() if of == word}
                served = max((share for each, share in own.items() if each in called), default=0.0)
                meant += own.get(item, 0.0)
                still += own[item] * (1 - served / max(own.values())) if item in own else 0.0
            assert found["meant"][row, item] == pytest.approx(meant, abs=1e-9)
            assert found["meant_still"][row, item] == pytest.approx(still, abs=1e-9)


def test_a_word_asks_for_what_no_other_word_explains() -> None:
    # Charts and mails come together twice, but a chart alone draws (1), so the mail sends (2).
    traces = trace_set([[1], [1], [1, 2], [1, 2]], texts=[0, 0, 1, 1])
    signals = WordMeanings.fit(traces, SIZE, REQUESTS).signals(prefixes_of_text([], [1]), REQUESTS)
    meant, still = signals["meant"], signals["meant_still"]
    assert meant[0, 1] > 0.7
    assert meant[0, 2] > 0.5
    assert meant[1].tolist() == meant[0].tolist()
    assert still[0].tolist() == meant[0].tolist()
    # The chart was drawn: what still asks for it is little.
    assert still[1, 1] < meant[1, 1] / 2
    assert still[1, 2] > still[1, 1]


def prefixes_of_text(*histories: list[int]) -> module.Prefixes:
    prefixes = prefixes_of(*histories)
    return module.Prefixes(
        prefixes.items, prefixes.starts, prefixes.ends, text_rows=np.full(len(histories), 1)
    )


def test_what_one_request_alone_says_is_not_kept() -> None:
    once = WordMeanings.fit(trace_set([[1], [2]], texts=[1, 3]), SIZE, REQUESTS)
    assert len(once.words) == len(once.items) == 0
    twice = WordMeanings.fit(trace_set([[1], [2]], texts=[0, 1]), SIZE, REQUESTS)
    assert twice.words.tolist() == REQUESTS.words[:1].tolist()
    assert twice.items.tolist() == [1, 2]


def test_traces_count_by_their_weight_and_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    light = WordMeanings.fit(trace_set([[1], [2]], weights=[1.0, 0.5], texts=[0, 0]), SIZE, REQUESTS)
    assert light.shares.tolist() == pytest.approx([1 / 2.5, 0.5 / 2.5])
    assert not len(WordMeanings.fit(trace_set([[1], [2]], [1, 0], texts=[0, 0]), SIZE, REQUESTS).words)
    monkeypatch.setattr(module, "PAIRS_MOST", 2)
    latest = WordMeanings.fit(trace_set([[1], [2], [3]], texts=[0, 0, 0]), SIZE, REQUESTS)
    assert latest.items.tolist() == [2, 3]


def test_arrays_say_the_same_and_others_are_refused() -> None:
    found = WordMeanings.fit(trace_set([[1, 2], [1, 3]], texts=[1, 2]), SIZE, REQUESTS)
    asked = prefixes_of_text([], [1])
    again = WordMeanings.from_arrays(found.to_arrays())
    for name, values in found.signals(asked, REQUESTS).items():
        assert values.any()
        assert again.signals(asked, REQUESTS)[name].tolist() == values.tolist()
    with pytest.raises(ValueError, match="train it again"):
        WordMeanings.from_arrays({"size": np.array([SIZE])})
