"""Where no model serves, the best baseline does, and says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pml.processors.learning.counting import FIRST, counted
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.scene import Past
from pml.processors.memory.embedding import HashedNgrams, Vectors

EMBEDDING = HashedNgrams()


def session(number: int, *names: str, text: str = "", note: int | None = None) -> KnownSession:
    """A session of these calls; without a note it is a near-duplicate of others."""
    made = tuple(Past(name, {} if note is None else {"note": note}, None) for name in names)
    return KnownSession(made, ("", *[text] * (len(names) - 1)), number, (f"s{number}", 0), text)


def test_of_baselines_the_one_serves_that_was_right_most_often() -> None:
    """What comes second follows from the first; what comes third, from the two before it."""
    ways = {"ab": "c", "ad": "e", "fb": "e", "fd": "c"}
    told = [
        session(number, *(f"s:{letter}" for letter in (*way, ways[way])), note=number)
        for number, way in enumerate(list(ways) * 12)
    ]
    found = counted(as_sequences(told, {}), EMBEDDING)
    assert found.learner == "markov_2"
    assert found.candidates(["s:a", "s:b"], "")[0].name == "s:c"
    assert found.candidates(["s:f", "s:b"], "")[0].name == "s:e"


def test_where_most_sessions_are_over_nothing_is_surely_next() -> None:
    told = [session(number, "s:list", note=number) for number in range(98)]
    told += [session(number, "s:list", "s:read", note=number) for number in range(98, 120)]
    found = counted(as_sequences(told, {}), EMBEDDING).candidates(["s:list"], "")
    assert found[0].name == "s:read"
    assert found[0].confidence == pytest.approx(22 / 120, abs=0.05)


def test_who_is_at_work_says_nothing_of_what_is_likely() -> None:
    """As many as ever went on are in the middle of it, all after the same call."""
    minute_ms = 60_000
    told = [
        replace(
            session(number, "s:list", "s:read", note=number),
            ended_ms=number * minute_ms + 5_000,
            ends_ms=(number * minute_ms, number * minute_ms + 5_000),
        )
        for number in range(40)
    ]
    now_ms = 41 * minute_ms
    working = [
        replace(session(number, "s:list", note=number), ended_ms=now_ms, ends_ms=(now_ms,))
        for number in range(40, 78)
    ]
    for sessions in (told, [*told, *working]):
        found = counted(as_sequences(sessions, {}), EMBEDDING)
        assert found.candidates(["s:list"], "")[0].confidence > 0.95
        assert all(each.confidence < 0.05 for each in found.candidates(["s:list", "s:read"], ""))


def test_what_always_came_next_is_nearly_certain() -> None:
    told = [session(number, "s:list", "s:read", note=number) for number in range(40)]
    found = counted(as_sequences(told, {}), EMBEDDING)
    assert found.candidates(["s:list"], "")[0].confidence > 0.95
    # After the last one nothing ever came.
    assert all(each.confidence < 0.05 for each in found.candidates(["s:list", "s:read"], ""))


def test_sessions_that_are_all_alike_are_counted_and_recalled() -> None:
    """None of them is unlike the others, so no baseline can be judged."""
    told = [session(number, "s:list", "s:read", "s:write") for number in range(10)]
    found = counted(as_sequences(told, {}), EMBEDDING)
    assert (found.learner, found.calibration) == (FIRST, None)
    assert found.candidates(["s:list"], "")[0].confidence > 0.95
    assert all(each.confidence < 0.05 for each in found.candidates(["s:list", "s:read", "s:write"], ""))


def test_each_text_is_embedded_once() -> None:
    class Watched(HashedNgrams):
        def embed(self, texts: Sequence[str]) -> Vectors:
            asked.extend(texts)
            return super().embed(texts)

    asked: list[str] = []
    told = [session(number, "s:list", "s:read", text=f"plan {number}", note=number) for number in range(12)]
    watched, plain = (counted(as_sequences(told, {}), each) for each in (Watched(), EMBEDDING))
    assert sorted(asked) == sorted(set(asked))
    for text in ("", "plan 3", "plan 99"):
        assert watched.candidates(["s:list"], text) == plain.candidates(["s:list"], text)


def test_of_one_session_what_is_counted_serves() -> None:
    found = counted(as_sequences([session(1, "s:list", "s:read", "s:list", "s:read")], {}), EMBEDDING)
    assert (found.learner, found.recall) == (FIRST, None)
    assert found.candidates(["s:list"], "")[0].name == "s:read"
