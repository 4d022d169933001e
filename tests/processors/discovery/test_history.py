"""What came together before, and what a tool that never ran borrows from tools like it."""

from __future__ import annotations

import numpy as np
import pytest

from pml.processors.discovery.history import ALIKE, DOUBT, History, Past
from pml.processors.memory.embedding import HashedNgrams

NUMBERS = {"read": 0, "parse": 1, "send": 2, "fetch": 3}
POINTS = np.eye(4, 256, dtype=np.float32)
EMBEDDING = HashedNgrams()


def history(*pasts: Past) -> History:
    return History(pasts, NUMBERS, POINTS, EMBEDDING.embed([past.intent for past in pasts]))


def test_shares_are_of_the_workflows_with_the_tool() -> None:
    found = history(
        Past("a", ("read", "parse")), Past("b", ("read", "parse", "send")), Past("c", ("read", "send"))
    )
    # Two of three workflows with `read` had `parse`; one more is what tools like it came with: none are near.
    assert found.together(0) == pytest.approx({1: 2 / 4, 2: 2 / 4})


def test_a_tool_that_never_ran_has_the_company_of_tools_like_it() -> None:
    near = POINTS.copy()
    near[3] = near[0]
    pasts = [Past("a", ("read", "parse"))] * 3
    found = History(pasts, NUMBERS, near, EMBEDDING.embed(["a"] * 3))
    assert found.together(3)[1] == pytest.approx(3 / 4)
    assert found.together(2) == {}


def test_a_workflow_of_one_tool_says_nothing_of_company() -> None:
    found = history(Past("a", ("read",)))
    assert found.together(0) == {}


def test_intents_like_this_one_name_their_tools() -> None:
    found = history(Past("send the weekly report", ("read", "send")), Past("close the door", ("fetch",)))
    shares = found.alike(EMBEDDING.embed(["send the weekly report now"])[0])
    assert shares[0] == shares[2] > 0.9
    assert 0 <= shares[3] < 0.1


def test_only_the_nearest_intents_count() -> None:
    far = [Past("send report", ("parse",))] * 5
    near = [Past("send the weekly report", ("send",))] * ALIKE
    shares = history(*far, *near).alike(EMBEDDING.embed(["send the weekly report"])[0])
    assert list(shares) == pytest.approx([0, 0, ALIKE / (ALIKE + DOUBT), 0])


def test_a_faint_likeness_is_no_evidence_though_nothing_else_is_known() -> None:
    shares = history(Past("mail somebody", ("send",))).alike(EMBEDDING.embed(["weather in my city"])[0])
    assert shares[2] < 0.2


def test_tools_that_are_gone_are_forgotten() -> None:
    found = history(Past("a", ("gone", "read")), Past("b", ("gone",)))
    assert found.together(0) == {}
    assert list(found.alike(EMBEDDING.embed(["b"])[0])) == [0, 0, 0, 0]


def test_without_a_past_nothing_is_known() -> None:
    found = history()
    assert found.together(0) == {}
    assert not found.alike(EMBEDDING.embed(["a"])[0]).any()
