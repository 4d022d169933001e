"""The accounts of speculation, beside a brute-force twin."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation import metrics
from pml.processors.speculation.metrics import (
    OBSERVED,
    OTHER_TOOLS,
    TOOLS_MAX,
    Observation,
    Totals,
    decode_totals,
    encode_totals,
    observe,
    summarise,
    total,
)
from pml.schemas.errors import LogCorrupted
from pml.schemas.events import EVENTS

Facts = tuple[str, dict[str, Any]]

TOOLS = st.sampled_from(["git:log", "files:read", "time:now"])
KINDS = st.sampled_from(["layer", "branch", "prediction"])
MS = st.integers(0, 10_000).map(lambda quarter: quarter / 4)
FATES = st.sampled_from(
    [
        ("served", "hit"),
        ("served", "joined"),
        ("discarded", "expired"),
        ("discarded", "unused"),
        ("failed", "error"),
    ]
)


@st.composite
def _ended(draw: st.DrawFn) -> Facts:
    fate, reason = draw(FATES)
    tool_ms, saved_ms = draw(MS), draw(MS)
    data = {"tool": draw(TOOLS), "fate": fate, "reason": reason, "tool_ms": tool_ms, "saved_ms": saved_ms}
    return "speculation.ended", data | {"kind": draw(KINDS)}


@st.composite
def _task(draw: st.DrawFn) -> Facts:
    kind = draw(st.sampled_from(["task.completed", "task.failed", "task.unknown"]))
    served_by = draw(st.sampled_from(["call", "speculation", "joined", "repeat"]))
    return kind, {
        "tool": draw(TOOLS),
        "served_by": served_by,
        "speculable": draw(st.booleans()),
        "final": draw(st.booleans()),
        "call_id": draw(st.sampled_from([None, "call_1"])),
        "saved_ms": draw(MS),
        **draw(st.sampled_from([{}, {"early": None}, {"early": "speculated"}, {"early": "missed"}])),
    }


@st.composite
def _planned(draw: st.DrawFn) -> Facts:
    """A plan of shadow mode, or one that only lacked confidence, and perhaps what came of it."""
    tool, shadow = draw(TOOLS), draw(st.sampled_from([True, False, None]))
    kind = draw(st.sampled_from(["planned", "held", "scored"]))
    if kind == "planned":
        return "speculation.planned", {"tool": tool, "shadow": bool(shadow)}
    if kind == "held":
        return "speculation.held", {"shadow": True, "tool": tool} if shadow else {"task_ids": ["n1", "n2"]}
    success = draw(st.booleans())
    reason = draw(st.sampled_from(["hit", "joined"] if success else ["unused", "superseded"]))
    saved_ms = draw(MS) if success else None
    data = {"tool": tool, "shadow": shadow, "success": success, "reason": reason, "saved_ms": saved_ms}
    return "speculation.scored", data | ({} if success else {"wasted_ms": draw(MS)})


@st.composite
def _verified(draw: st.DrawFn) -> Facts:
    if draw(st.booleans()):
        return "speculation.diverged", {"tool": draw(TOOLS)}
    outcome = draw(st.sampled_from(["same", "overtaken", "unanswered"]))
    return "speculation.verified", {"tool": draw(TOOLS), "outcome": outcome}


STARTED = st.tuples(TOOLS, KINDS).map(
    lambda known: ("speculation.started", {"tool": known[0], "kind": known[1]})
)
RUN = st.sampled_from(["run.completed", "run.failed", "run.aborted"]).flatmap(
    lambda kind: MS.map(lambda duration: (kind, {"duration_ms": duration}))
)
LAYER = st.just(("layer.released", {"layer": 1}))
EVENT_LISTS = st.lists(
    st.one_of(STARTED, _ended(), _task(), _planned(), _verified(), RUN, LAYER), max_size=60
)


def fold(events: list[Facts]) -> Totals:
    totals = Totals()
    for kind, data in events:
        seen = observe(kind, data)
        if seen is not None:
            totals.add(seen)
    return totals


def brute_force(events: list[Facts]) -> dict[str, Any]:
    """Each figure by its definition, one pass each."""
    ended = [data for kind, data in events if kind == "speculation.ended"]
    served = [data for data in ended if data["fate"] == "served"]
    known = [data for data in served if data["kind"] != "prediction"]
    lost = [data for data in ended if data["fate"] in ("discarded", "failed")]
    tasks = [data for kind, data in events if kind.startswith("task.")]
    started = sum(kind == "speculation.started" for kind, _ in events)
    calls = [data for data in tasks if data["served_by"] == "call" and data["call_id"] and data["final"]]
    misses = sum(data["speculable"] for data in calls)
    early = [data["early"] for data in tasks if data.get("early") and data["final"]]
    names = {f"{data['fate']}:{data['reason']}" for data in ended}
    return {
        "hits": len(served),
        "misses": misses,
        "repeats": sum(data["served_by"] == "repeat" for data in tasks),
        "wasted": len(lost),
        "started": started,
        "running": started - len(ended),
        "saved_ms": sum(data["saved_ms"] for data in served),
        "repeats_saved_ms": sum(data["saved_ms"] for data in tasks if data["served_by"] == "repeat"),
        "wasted_ms": sum(data["tool_ms"] for data in lost),
        "hit_rate": len(known) / (len(known) + misses) if known or misses else None,
        "eligible": len(early),
        "speculated": early.count("speculated"),
        "eligible_calls_speculated": early.count("speculated") / len(early) if early else None,
        "fates": {name: sum(f"{d['fate']}:{d['reason']}" == name for d in ended) for name in names},
        "shadow": brute_force_shadow(events),
        "verified": Counter(
            data.get("outcome", "diverged")
            for kind, data in events
            if kind in {"speculation.verified", "speculation.diverged"}
        ),
        "kinds": {
            kind: brute_force_kind(events, kind)
            for kind in sorted({data["kind"] for _, data in events if data.get("kind")})
        },
    }


def brute_force_kind(events: list[Facts], kind: str) -> dict[str, Any]:
    mine = [(name, data) for name, data in events if data.get("kind") == kind]
    ended = [data for name, data in mine if name == "speculation.ended"]
    served = [data for data in ended if data["fate"] == "served"]
    lost = [data for data in ended if data["fate"] != "served"]
    return {
        "started": len(mine) - len(ended),
        "hits": len(served),
        "wasted": len(lost),
        "saved_ms": sum(data["saved_ms"] for data in served),
        "wasted_ms": sum(data["tool_ms"] for data in lost),
    }


def brute_force_shadow(events: list[Facts]) -> dict[str, Any]:
    scored = [data for kind, data in events if kind == "speculation.scored" and data["shadow"]]
    good = [data for data in scored if data["success"]]
    return {
        "planned": sum(kind == "speculation.planned" and data["shadow"] for kind, data in events),
        "held": sum(kind == "speculation.held" and bool(data.get("shadow")) for kind, data in events),
        "would_serve": len(good),
        "would_waste": len(scored) - len(good),
        "would_save_ms": sum(data["saved_ms"] for data in good),
        "would_waste_ms": sum(data["wasted_ms"] for data in scored if not data["success"]),
        "reasons": Counter(data["reason"] for data in scored),
    }


@given(EVENT_LISTS)
def test_figures_are_what_their_definitions_count(events: list[Facts]) -> None:
    assert summarise(fold(events).tools.values()).as_dict() == brute_force(events)


@given(EVENT_LISTS)
def test_figures_of_one_tool_leave_the_others_out(events: list[Facts]) -> None:
    mine = [(kind, data) for kind, data in events if data.get("tool") == "git:log"]
    tool = fold(events).tools.get("git:log")
    assert summarise([tool] if tool else []).as_dict() == brute_force(mine)


@given(EVENT_LISTS, st.integers(1, 5))
def test_parts_add_up_to_the_whole(events: list[Facts], parts: int) -> None:
    split = [fold(events[number::parts]) for number in range(parts)]
    assert total(split) == fold(events)


@given(EVENT_LISTS, st.integers(-1, 2**62))
def test_a_stored_value_gives_back_totals_and_guard(events: list[Facts], offset: int) -> None:
    totals = fold(events)
    assert decode_totals(encode_totals(totals, offset)) == (totals, offset)


def test_a_row_of_before_shadow_mode_is_read() -> None:
    stored = (
        b'{"version":1,"offset":7,"tools":{"git:log":[3,1,0,0.0,[["served","hit",2,20.0,18.0]]]},"runs":{}}'
    )
    totals, offset = decode_totals(stored)
    assert offset == 7
    found = summarise(totals.tools.values())
    assert (found.hits, found.misses, found.verified, found.shadow["planned"]) == (2, 1, {}, 0)


def test_a_row_of_before_eligible_calls_were_counted_is_read() -> None:
    row = b'[3,1,0,0.0,[],[["","planned",2,0.0,0.0],["","held",4,0.0,0.0]],{"same":1}]'
    stored = b'{"version":1,"offset":7,"tools":{"git:log":%b},"runs":{}}' % row
    found = summarise(decode_totals(stored)[0].tools.values())
    assert (found.eligible, found.speculated, found.eligible_calls_speculated) == (0, 0, None)
    assert (found.shadow["planned"], found.shadow["held"], found.verified) == (2, 4, {"same": 1})


def test_runs_are_counted_by_status() -> None:
    totals = fold([("run.completed", {"duration_ms": 40}), ("run.completed", {"duration_ms": 2})])
    assert totals.runs["completed"] == metrics.RunTotals(2, 42)


def test_tools_beyond_the_limit_share_one_account() -> None:
    totals = fold([("speculation.started", {"tool": f"s:t{number}"}) for number in range(TOOLS_MAX + 7)])
    assert len(totals.tools) == TOOLS_MAX + 1
    assert totals.tools[OTHER_TOOLS].started == 7
    totals.add(Observation("started", "s:t0"))
    assert totals.tools["s:t0"].started == 2, "what has an account keeps it"


def test_adding_parts_up_keeps_the_limit_too() -> None:
    parts = [
        fold([("speculation.started", {"tool": f"s{part}:t{n}"}) for n in range(TOOLS_MAX)])
        for part in (1, 2)
    ]
    whole = total(parts)
    assert len(whole.tools) == TOOLS_MAX + 1
    assert summarise(whole.tools.values()).started == 2 * TOOLS_MAX


TOOL = {"tool": "git:log"}
CALLED = {**TOOL, "speculable": True, "call_id": "call_1"}


@pytest.mark.parametrize(
    ("kind", "data", "seen"),
    [
        ("speculation.started", TOOL, Observation("started", "git:log")),
        (
            "speculation.ended",
            {**TOOL, "fate": "discarded", "reason": "unused"},
            Observation("ended", "git:log", "discarded", "unused", 0.0, 0.0, 0.0),
        ),
        (
            "speculation.ended",
            {**TOOL, "fate": "served", "reason": "hit", "tool_ms": 3.0, "saved_ms": 2.0},
            Observation("ended", "git:log", "served", "hit", 3.0, 2.0),
        ),
        ("run.completed", {}, Observation("run", "completed")),
        ("run.failed", {"duration_ms": 7}, Observation("run", "failed", duration_ms=7)),
        ("run.aborted", {"duration_ms": 7}, Observation("run", "aborted", duration_ms=7)),
        ("speculation.planned", {**TOOL, "shadow": True}, Observation("shadow", "git:log", "", "planned")),
        ("speculation.planned", TOOL, None),
        (
            "speculation.scored",
            {**TOOL, "shadow": True, "success": True, "reason": "hit", "saved_ms": 4.0},
            Observation("shadow", "git:log", "served", "hit", saved_ms=4.0),
        ),
        (
            "speculation.scored",
            {**TOOL, "shadow": True, "success": False, "reason": "unused", "saved_ms": None},
            Observation("shadow", "git:log", "wasted", "unused"),
        ),
        (
            "speculation.verified",
            {**TOOL, "outcome": "same"},
            Observation("verified", "git:log", reason="same"),
        ),
        ("speculation.diverged", TOOL, Observation("verified", "git:log", reason="diverged")),
        ("task.completed", CALLED, Observation("missed", "git:log")),
        ("task.failed", {**CALLED, "final": False}, None),
        ("task.failed", {**CALLED, "final": False, "early": "missed"}, None),
        ("task.started", CALLED, None),
        ("task.failed", {**CALLED, "final": True}, Observation("missed", "git:log")),
        ("task.unknown", {**CALLED, "served_by": "call"}, Observation("missed", "git:log")),
        ("task.completed", {**CALLED, "speculable": False}, None),
        ("task.completed", {**CALLED, "call_id": None}, None),
        ("task.completed", {**CALLED, "served_by": "speculation"}, None),
        ("task.completed", {**CALLED, "served_by": "joined"}, None),
        ("task.completed", {**CALLED, "served_by": "repeat"}, Observation("repeated", "git:log")),
        (
            "task.completed",
            {**CALLED, "served_by": "repeat", "saved_ms": 5.0},
            Observation("repeated", "git:log", saved_ms=5.0),
        ),
        ("layer.released", TOOL, None),
    ],
)
def test_an_event_adds_this_to_the_accounts(
    kind: str, data: dict[str, Any], seen: Observation | None
) -> None:
    assert observe(kind, data) == seen


def test_figures_of_four_calls_that_could_have_been_served_early() -> None:
    scored = {**TOOL, "shadow": True, "saved_ms": 3.0, "wasted_ms": 5.0}
    events = [
        *[("speculation.ended", {**TOOL, "fate": "served", "reason": "hit"})] * 3,
        ("task.completed", CALLED),
        ("speculation.scored", {**scored, "success": True, "reason": "hit"}),
        ("speculation.scored", {**scored, "success": False, "reason": "unused"}),
    ]
    found = summarise(fold(events).tools.values())
    assert (found.hits, found.misses, found.hit_rate) == (3, 1, 0.75)
    assert (found.shadow["would_serve"], found.shadow["would_save_ms"]) == (1, 3.0)
    assert (found.shadow["would_waste"], found.shadow["would_waste_ms"]) == (1, 5.0)


def test_no_figures_of_nothing() -> None:
    found = summarise([])
    assert found == metrics.Summary(shadow=found.shadow)
    assert found.shadow.pop("reasons") == {}
    assert set(found.shadow.values()) == {0}
    assert (metrics.RunTotals(), metrics.FateTotals()) == (
        metrics.RunTotals(0, 0.0),
        metrics.FateTotals(0, 0.0, 0.0),
    )
    assert metrics.ToolTotals() == metrics.ToolTotals(0, 0, 0, 0.0, {}, {}, {})


def test_figures_are_listed_in_the_order_of_their_names() -> None:
    events = [
        ("speculation.ended", {**TOOL, "fate": "served", "reason": "hit"}),
        ("speculation.ended", {**TOOL, "fate": "discarded", "reason": "unused"}),
        ("speculation.ended", {**TOOL, "fate": "discarded", "reason": "expired"}),
        ("speculation.verified", {**TOOL, "outcome": "same"}),
        ("speculation.diverged", TOOL),
        ("speculation.scored", {**TOOL, "shadow": True, "success": False, "reason": "unused"}),
        ("speculation.scored", {**TOOL, "shadow": True, "success": False, "reason": "expired"}),
    ]
    found = summarise(fold(events).tools.values())
    assert list(found.fates) == ["discarded:expired", "discarded:unused", "served:hit"]
    assert list(found.verified) == ["diverged", "same"]
    assert list(found.shadow["reasons"]) == ["expired", "unused"]


def test_every_observed_type_exists() -> None:
    assert set(EVENTS) >= OBSERVED


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"version":1,"offset":1,"tools":{"x":[1]},"runs":{}}']
)
def test_a_value_that_is_none_of_ours_stops_the_reader(value: bytes) -> None:
    with pytest.raises(LogCorrupted, match="cannot be read"):
        decode_totals(value)


def test_a_value_of_a_newer_release_stops_the_reader() -> None:
    with pytest.raises(LogCorrupted, match="version 2"):
        decode_totals(b'{"version":2,"offset":1}')
