"""What is played on stacks: the sessions of the clock, and waits that say what did not come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.end_to_end import sets, stacks
from benchmarks.end_to_end.clock import Account, Call, Guess, oracle, played, unpredicted
from benchmarks.end_to_end.foreseen import Foreseen
from benchmarks.end_to_end.measure import Sitting
from benchmarks.end_to_end.play import Play, play_of
from benchmarks.proxy import CallFailed
from pml.schemas.events import Event
from pml.schemas.times import to_rfc3339
from tests.benchmarks.end_to_end.test_measure import TOOLS, held_of
from tests.log_writer import START_MS, event_of, run_completed
from tests.streams.learning.recorded_sets import row, written


def write_sessions(folder: Path) -> None:
    """Twenty of nestful, no two of them near-duplicates."""
    rows = [row(number, TOOLS, intent=f"plan {number}") for number in range(20)]
    for number, each in enumerate(rows):
        each["tasks"][0]["arguments"] = {"x": {"type": "literal", "value": number}}
    written(folder, "nestful", rows, TOOLS)


def staged_of(play: Play, *, confidence: float = 0.8) -> stacks.Staged:
    """Both sides name every next call, so sure."""
    sittings = []
    for session in play.sessions:
        calls = play.calls(session)
        after = [
            Foreseen((Guess(c.tool, c.key, confidence, c.safe, c.tool_s),), (c.tool,)) for c in calls[1:]
        ]
        sittings.append(Sitting(calls, (*after, Foreseen((), ()))))
    return stacks.Staged(play, held_of(sittings), {"baseline": 0.9, "ranker": 0.5}, Path())


def test_the_clock_plays_the_sessions_that_stacks_play(tmp_path: Path) -> None:
    write_sessions(tmp_path)
    whole, some = (play_of(tmp_path, "nestful", 1, most) for most in (None, 2))
    staged = replace(staged_of(whole), play=some)
    stacks._same_sessions(staged)
    found = stacks._beside_the_clock(staged, {})
    calls = [some.calls(session) for session in some.sessions]
    assert found.nothing == Account.total(map(unpredicted, calls))
    assert found.oracle == Account.total(map(oracle, calls))
    assert found.clock["baseline"] == ("markov_1", Account.total(map(asked_in_vain, calls)))
    learner, account = found.clock["ranker"]
    assert learner == "boosted"
    assert account.hits == sum(call.safe for told in calls for call in told[1:]) > 0
    others = replace(some, sessions=whole.sessions[1:3])
    with pytest.raises(CallFailed, match="other sessions"):
        stacks._same_sessions(replace(staged, play=others))


def asked_in_vain(calls: tuple[Call, ...]) -> Account:
    return played(calls, [()] * len(calls), replace(sets.RULES, threshold=1.0))


def completed(session: str) -> Event:
    return event_of(run_completed(), 1, 1, to_rfc3339(START_MS)).model_copy(update={"session_id": session})


async def told(events: Sequence[Event]) -> AsyncIterator[Event]:
    """And nothing after these."""
    for event in events:
        yield event
    await asyncio.Event().wait()


async def test_a_fold_is_over_when_its_own_runs_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "TOLD_S", 0.05)
    write_sessions(tmp_path)
    play = play_of(tmp_path, "nestful", 1, 2)
    own = [completed(session.name) for session in play.sessions for _ in session.made]
    others = [completed("s of an earlier fold"), completed(f"{stacks.FIRST}-{play.sessions[0].name}")]
    await stacks._settled(told([*others, *own]), play, asked=False)
    with pytest.raises(CallFailed, match=f"of {len(own)} runs .*'run.completed': {len(own) - 1}"):
        await stacks._settled(told([*others, *own[1:]]), play, asked=False)
    with pytest.raises(CallFailed, match="of 6 runs"):
        await stacks._settled(told(own), play, asked=True)
