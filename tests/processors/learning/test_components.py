"""What a ranker counts with is learned of all traces, says the same from its arrays, and needs no trace."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.learning.attention.fitting import fit_head
from pml.processors.learning.components import COUNTED, LIKELY, Components
from pml.processors.learning.evidence import evidence
from pml.processors.learning.requests import read_requests
from pml.processors.learning.traces import TraceSet
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.learning.small_traces import trace_set

DESCRIPTIONS = ["", "read a file", "send a mail", "draw a chart", "fetch the weather forecast"]
EMBEDDING = HashedNgrams()
POINTS = EMBEDDING.embed(DESCRIPTIONS)
REQUESTS = read_requests(["read the file and send it", "draw the weather"], DESCRIPTIONS, EMBEDDING)
TRACES = trace_set([[1, 2, 1], [4, 3], [3]], texts=[0, 1, 1])


def test_the_head_says_what_one_says_that_was_learned_alone() -> None:
    components = Components.fit(TRACES, POINTS, REQUESTS, 7)
    assert tuple(components.parts) == LIKELY
    prefixes = TRACES.prefixes(TRACES.positions(0), REQUESTS.points)
    alone = fit_head(TRACES, POINTS, REQUESTS.points, 7).probabilities(prefixes)
    assert evidence(components, prefixes, REQUESTS).signals["head"].tolist() == alone.tolist()
    other = Components.fit(TRACES, POINTS, REQUESTS, 8)
    assert evidence(other, prefixes, REQUESTS).signals["head"].tolist() != alone.tolist()


@pytest.mark.parametrize("traces", [TRACES, trace_set([[]])])
def test_its_arrays_say_the_same(traces: TraceSet) -> None:
    components = Components.fit(traces, POINTS, REQUESTS, 1)
    again = Components.from_arrays(components.to_arrays())
    prefixes = TRACES.prefixes(TRACES.positions(0), REQUESTS.points)
    one, other = (evidence(each, prefixes, REQUESTS).signals for each in (components, again))
    assert list(one) == list(other)
    for name in one:
        assert np.array_equal(one[name], other[name]), name


def test_where_nothing_was_called_the_head_is_silent() -> None:
    components = Components.fit(trace_set([[]]), POINTS, REQUESTS, 1)
    assert components.head is None
    assert tuple(components.parts) == COUNTED
    assert not [name for name in components.to_arrays() if name.startswith("head.")]
    assert not evidence(components, TRACES.prefixes(TRACES.positions(0)), REQUESTS).signals["head"].any()
