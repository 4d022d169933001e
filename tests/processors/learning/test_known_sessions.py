"""Sessions with values, as what is learned of them."""

from __future__ import annotations

from dataclasses import replace

from pml.processors.learning.known_sessions import KnownSession, as_sequences, learned_sources
from pml.processors.learning.model import fitted
from pml.processors.learning.scene import Past
from pml.processors.learning.traces import NO_TEXT
from pml.processors.memory.embedding import HashedNgrams


def looked(number: int) -> KnownSession:
    """Lists a folder, then reads the file that it found there."""
    found = f"docs/{number}.md"
    elements = (
        Past("files:list_dir", {"path": "docs"}, {"first": found}),
        Past("files:read_file", {"path": found}, {"text": "…"}),
    )
    return KnownSession(elements, ("", "look at docs"), number)


KNOWN = tuple(looked(number) for number in range(30))


def test_sequences_keep_names_order_and_what_was_visible() -> None:
    found = as_sequences(KNOWN, {"files:list_dir": "List a folder"})
    assert found.vocabulary.names == ("files:list_dir", "files:read_file")
    assert found.traces.items[:2].tolist() == [1, 2]
    assert found.traces.texts[:2].tolist() == [NO_TEXT, 0]
    assert found.texts == ("look at docs",)


def test_sessions_with_the_same_calls_are_of_one_group() -> None:
    found = as_sequences((*KNOWN, looked(3)), {}).traces.groups
    assert len(set(found.tolist())) == 30
    assert found[-1] == found[3]


def test_a_session_is_over_once_it_is_quiet_for_longer_than_others_pause() -> None:
    """They pause for ten seconds; the last one listed a folder five seconds ago."""
    told = [
        replace(session, ended_ms=start_ms + 10_000, ends_ms=(start_ms, start_ms + 10_000))
        for start_ms, session in zip(range(0, 30 * 60_000, 60_000), KNOWN, strict=True)
    ]
    now_ms = told[-1].ended_ms + 5_000
    working = KnownSession(KNOWN[0].elements[:1], ("",), now_ms, ends_ms=(now_ms,))
    assert as_sequences((*told, working), {}).traces.ended.tolist() == list(range(29))
    # One whose latest runs are no elements is at work as well.
    others = (*told[:28], replace(told[28], ended_ms=now_ms), told[29], working)
    assert as_sequences(others, {}).traces.ended.tolist() == list(range(28))
    assert len(as_sequences((*KNOWN, working), {}).traces.ended) == 31, "nobody knows when the others ended"


def test_what_is_learned_names_the_next_call_with_its_arguments() -> None:
    model = fitted(as_sequences(KNOWN, {}), HashedNgrams(), 1, "discounting")
    past = (Past("files:list_dir", {"path": "docs"}, {"first": "docs/new.md"}),)
    assert model.candidates(["files:list_dir"], "look at docs")[0].name == "files:read_file"
    guess = learned_sources(KNOWN, {}).guesses("files:read_file", past, "look at docs")[0]
    assert guess.arguments == {"path": "docs/new.md"}
    assert guess.confidence > 0.9


def test_nothing_is_known_of_no_sessions() -> None:
    found = as_sequences((), {})
    assert (len(found.traces), found.vocabulary.names) == (0, ())
