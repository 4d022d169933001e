"""PML's own core, asked after each call, on a clock that only moves: the model comes to the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.end_to_end.clock import Call, Guess, Rules, played
from pml.schemas.catalog import CatalogRecord, ThresholdOverride
from pml.schemas.prediction import PREDICT_TOOL
from tests.processors.session_world import SessionWorld, catalog
from tests.processors.speculation.test_predictions import predicted

READ, WRITE = "files:search", "files:write_file"
THRESHOLD = 0.8


def world() -> SessionWorld:
    """Reads and writes of one server that declare no touches: a write empties the cache."""
    override = ThresholdOverride(
        tenant="local", level="default", value=THRESHOLD, changed_at="2023-11-14T22:13:20Z"
    )
    known = catalog({WRITE: {"scope": "filesystem", "approval": "auto"}}, predictions="on")
    record = CatalogRecord(kind=override.KIND, id="local/default", data=override)
    return SessionWorld(catalog=known.with_record(record), checked_every=1_000)


class Play:
    """A session whose tools take their time: `tools_s` by the query that a call has."""

    def __init__(self, tools_s: Mapping[str, float]) -> None:
        self.world, self._tools_s = world(), tools_s
        self._due_ms: dict[str, int] = {}
        self._began_ms = self.world.time_ms

    @property
    def wall_s(self) -> float:
        return (self.world.time_ms - self._began_ms) / 1_000

    def call(self, number: int, call: Call) -> None:
        """Think, call, wait for the end."""
        self._until(self.world.time_ms + round(call.thought_s * 1_000))
        run_id = f"run_{number}"
        task = {"id": "n1", "tool": READ if call.safe else WRITE, "arguments": {"query": call.tool}}
        self.world.start({"tasks": [task]}, run_id)
        while run_id not in self._ended():
            self._until(min(self._dues().values()), 1)

    def foresee(self, guesses: Sequence[Guess]) -> None:
        """Answer what comes next, at once."""
        named = [(READ, {"query": each.tool}, each.confidence) for each in guesses]
        asked = self.world.call_of(PREDICT_TOOL)
        self.world.answer(asked, predicted(*named) if named else {"learner": "discounting"})

    def _ended(self) -> set[str | None]:
        return {event.run_id for event in self.world.of_type("run.completed")}

    def _dues(self) -> dict[str, int]:
        for call_id, call in self.world.open_calls.items():
            if call.tool != PREDICT_TOOL:
                length_ms = round(self._tools_s[call.arguments["query"]] * 1_000)
                self._due_ms.setdefault(call_id, self.world.time_ms + length_ms)
        return {name: due for name, due in self._due_ms.items() if name in self.world.open_calls}

    def _until(self, time_ms: int, most: int = 1_000) -> None:
        """Answer what ends by then, in its order."""
        for _ in range(most):
            due = {name: at for name, at in self._dues().items() if at <= time_ms}
            if not due:
                break
            first = min(due, key=due.__getitem__)
            self.world.time_ms = due[first]
            self.world.answer(first, {"value": 1})
        self.world.time_ms = max(self.world.time_ms, time_ms)


def drawn(name: str, number: int, safe: bool) -> Call:
    # No two things happen in the same millisecond.
    tool_s = {"a": 0.501, "b": 1.507, "c": 4.013}[name]
    return Call(name, (name if safe else "write").encode(), safe, tool_s, 1.0 + 0.017 * (number + 1))


NAMES = st.sampled_from("abc")
SESSIONS = st.lists(
    st.tuples(NAMES, st.booleans(), st.lists(st.tuples(NAMES, st.sampled_from([0.5, 0.9])), max_size=3)),
    min_size=2,
    max_size=6,
)


@settings(max_examples=30, deadline=None)
@given(SESSIONS)
def test_the_core_is_as_quick_as_the_clock_and_begins_the_same(
    session: list[tuple[str, bool, list[tuple[str, float]]]],
) -> None:
    calls = [drawn(name, number, safe) for number, (name, safe, _) in enumerate(session)]
    guesses = [
        [
            Guess(name, name.encode(), sure, True, drawn(name, 0, True).tool_s)
            for name, sure in dict(each).items()
        ]
        for *_, each in session
    ]
    play = Play({name: drawn(name, 0, True).tool_s for name in "abc"})
    for number, (call, after) in enumerate(zip(calls, guesses, strict=True)):
        play.call(number, call)
        play.foresee(after)
    found = played(calls, guesses, Rules(THRESHOLD))
    assert play.wall_s == pytest.approx(found.wall_s)
    assert play.world.session is not None
    accounts = play.world.session.accounts
    assert (accounts.started, accounts.served) == (found.begun, found.hits)


def test_a_call_that_was_foreseen_is_served_by_both() -> None:
    calls = [drawn("a", 0, True), drawn("c", 1, True)]
    foreseen = [[Guess("c", b"c", 0.9, True, 4.013)], []]
    play = Play({"a": 0.501, "c": 4.013})
    for number, (call, after) in enumerate(zip(calls, foreseen, strict=True)):
        play.call(number, call)
        play.foresee(after)
    assert play.wall_s == pytest.approx(played(calls, foreseen, Rules(THRESHOLD)).wall_s)
    assert play.wall_s == pytest.approx(1.017 + 0.501 + 4.013)
