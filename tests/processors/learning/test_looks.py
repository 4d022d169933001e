"""What a call looked like decides what comes next where nothing else does, and only where that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.learning.attention import fitting
from pml.processors.learning.attention.fitting import fit_head
from pml.processors.learning.attention.training import Training, learned_from, train
from pml.processors.learning.components import Components
from pml.processors.learning.known_sessions import KnownSession, as_sequences
from pml.processors.learning.learners import LEARNERS
from pml.processors.learning.looks import LOOK, look, session_looks
from pml.processors.learning.model import NextModel, fitted
from pml.processors.learning.requests import read_requests
from pml.processors.learning.scene import Past
from pml.processors.learning.sessions import Sessions
from pml.processors.learning.traces import NO_TEXT, Vectors
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.sanitiser import REDACTED, sanitise
from tests.processors.learning.small_traces import trace_set

KEY, EMBEDDING = bytes(32), HashedNgrams()
NAMES = st.sampled_from(["files:read", "mail:send", "cap_1"])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.text(max_size=5))
)
ARGUMENTS = st.dictionaries(st.text("abpath_", min_size=1, max_size=8), VALUES, max_size=5)
NEXT = ("chart:draw", "mail:send")


@given(NAMES, ARGUMENTS)
def test_a_look_is_of_length_one_and_the_same_every_time(name: str, arguments: dict[str, Any]) -> None:
    found = look(name, arguments, KEY)
    assert (found.shape, found.dtype) == ((LOOK,), np.float32)
    assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6) or not found.any()
    np.testing.assert_array_equal(look(name, dict(reversed(arguments.items())), KEY), found)


@given(st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=4))
def test_training_looks_as_serving_does(calls: list[tuple[str, dict[str, Any]]]) -> None:
    """The store has arguments as the log kept them, who serves has those that were really given."""
    stored = [Past(name, kept, None) for name, each in calls if isinstance(kept := sanitise(each), dict)]
    known = KnownSession(tuple(stored), ("",) * len(stored), 7, ("ses_1", 0))
    found = session_looks(as_sequences([known], {}), [known.name], [known], KEY)
    assert found.tolist() == [look(name, each, KEY).tolist() for name, each in calls]


def test_of_arguments_that_are_not_known_or_too_large_nothing_is_said() -> None:
    for arguments in (None, {}, {"text": "x" * 100_000}, sanitise({"text": "x" * 100_000})):
        assert not look("files:read", arguments, KEY).any()  # type: ignore[arg-type]


def test_a_secret_is_seen_by_nobody() -> None:
    one, other = (look("a:b", {"password": told, "path": "x.csv"}, KEY) for told in ("hunter2", REDACTED))
    np.testing.assert_array_equal(one, other)


def test_the_key_hides_short_values_and_shows_extensions() -> None:
    def differs(one: dict[str, Any], other: dict[str, Any], key: bytes = KEY) -> bool:
        return bool((look("a:b", one, KEY) != look("a:b", other, key)).any())

    assert differs({"path": "x/y z.csv"}, {"path": "x/y z.json"})
    assert not differs({"path": "x/y z.csv"}, {"path": "x/w v.csv"})
    assert differs({"state": "open"}, {"state": "open"}, b"1" * 32)


def known_session(number: int, *elements: Past, ended_ms: int = 9) -> KnownSession:
    return KnownSession(elements, ("",) * len(elements), ended_ms, (f"ses_{number}", 0))


def looks_of(items: Sequence[str | None], known: KnownSession, ended_ms: int = 9) -> list[bool]:
    """Of which items of a session the look is known, where these values are; None: it has no number."""
    sessions = as_sequences([known_session(1, *(Past(name or "x:y", {}, None) for name in items))], {})
    numbers = sessions.vocabulary.ids([name or "nobody" for name in items])
    traces = replace(sessions.traces, items=numbers, times_ms=np.array([ended_ms]))
    found = session_looks(replace(sessions, traces=traces), [("ses_1", 0)], [known], KEY)
    expected = [look(name or "", {"at": place}, KEY) for place, name in enumerate(items)]
    for row, one in zip(found, expected, strict=True):
        assert not row.any() or row.tolist() == one.tolist()
    return [bool(row.any()) for row in found]


def test_values_belong_to_the_items_of_their_session_as_far_as_both_agree() -> None:
    a, b, c = (Past(name, {"at": place}, None) for place, name in enumerate(("a:a", "b:b", "c:c")))
    assert looks_of(["a:a", "b:b", "c:c"], known_session(1, a, b, c)) == [True] * 3
    assert looks_of(["a:a", "b:b", "c:c"], known_session(1, b, c)) == [False, True, True]
    assert looks_of(["a:a", None, "c:c"], known_session(1, a, c)) == [True, False, True]
    assert looks_of(["a:a", "a:a", "c:c"], known_session(1, a, b, c)) == [False, False, True]
    assert looks_of(["a:a", "b:b", "c:c"], known_session(2, a, b, c)) == [False] * 3
    # It went on between two readings of the store.
    assert looks_of(["a:a", "b:b", "c:c"], known_session(1, a, b, c), ended_ms=10) == [False] * 3


def by_extension(number: int) -> Past:
    return Past("files:read", {"path": f"docs/no {number}{('.csv', '.json')[number % 2]}"}, None)


def by_channel(number: int) -> Past:
    return Past("wiki:post", {"to": f"{('#', '')[number % 2]}room{number}"}, None)


def by_context(number: int) -> Past:
    """A run of a capability, whose parameters these are."""
    return Past("cap_1", {"repo": f"no {number}", "deep": number % 2 == 1}, None)


def sessions_of(first: Callable[[int], Past], numbers: range) -> list[KnownSession]:
    """After the first call comes what only its arguments tell."""
    return [known_session(each, first(each), Past(NEXT[each % 2], {}, None)) for each in numbers]


def with_looks(known: Sequence[KnownSession]) -> Sessions:
    sessions = as_sequences(known, {})
    looks = session_looks(sessions, [each.name for each in known], known, KEY)
    return replace(sessions, traces=replace(sessions.traces, looks=looks))


def latest_look(session: KnownSession) -> Vectors:
    return look(session.elements[0].name, session.elements[0].arguments, KEY)


def share_right(model: NextModel, asked: Sequence[KnownSession]) -> float:
    """How often the first candidate is what came, by who is told what the latest was called with."""
    named = [model.candidates([each.elements[0].name], "", 1, latest_look(each))[0].name for each in asked]
    return float(np.mean([name == each.elements[1].name for name, each in zip(named, asked, strict=True)]))


@pytest.mark.parametrize("first", [by_extension, by_channel, by_context])
def test_only_arguments_tell_what_comes_next(first: Callable[[int], Past]) -> None:
    known, asked = sessions_of(first, range(120)), sessions_of(first, range(1_000, 1_060))
    told, plain = (
        fitted(each, EMBEDDING, 1, "attention_head") for each in (with_looks(known), as_sequences(known, {}))
    )
    assert (told.reads_looks, plain.reads_looks) == (True, False)
    assert share_right(told, asked) >= 0.9
    assert share_right(plain, asked) <= 0.6


def test_messages_along_the_hypergraph_leave_looks_as_they_are() -> None:
    model = fitted(with_looks(sessions_of(by_context, range(120))), EMBEDDING, 1, "attention")
    assert share_right(model, sessions_of(by_context, range(1_000, 1_060))) >= 0.9


def test_a_model_read_again_reads_looks_as_before() -> None:
    model = fitted(with_looks(sessions_of(by_extension, range(120))), EMBEDDING, 1, "attention_head")
    again = NextModel.from_arrays(model.to_arrays(), EMBEDDING)
    asked = [latest_look(each) for each in sessions_of(by_extension, range(2))]
    found = [again.candidates(["files:read"], "", 1, each) for each in asked]
    assert [each[0].name for each in found] == list(NEXT)
    assert found == [model.candidates(["files:read"], "", 1, each) for each in asked]
    assert again.candidates(["files:read"], "") == again.candidates(
        ["files:read"], "", look=np.zeros(LOOK, dtype=np.float32)
    )
    arrays = model.to_arrays()
    sizes = arrays["learnt.sizes"].copy()
    sizes[-1] -= 1
    width = int(sizes[2])
    shorter = arrays | {"learnt.sizes": sizes, "learnt.parameters": arrays["learnt.parameters"][width:]}
    with pytest.raises(ValueError, match="other looks"):
        NextModel.from_arrays(shorter, EMBEDDING)


@pytest.mark.parametrize("learner", LEARNERS)
def test_who_reads_no_looks_says_the_same_whatever_they_are(learner: str) -> None:
    """Looks that say nothing of what follows; what rankers learn is the same with and without them."""
    known = [
        known_session(each, Past("files:read", {"path": "a b.csv"}, None), Past(NEXT[0], {}, None))
        for each in range(12)
    ]
    plain = fitted(as_sequences(known, {}), EMBEDDING, 1, learner)
    beside = fitted(with_looks(known), EMBEDDING, 1, learner)
    assert (plain.reads_looks, beside.reads_looks) == (False, False)
    arrays = beside.to_arrays()
    assert all(np.array_equal(each, arrays[name]) for name, each in plain.to_arrays().items())
    other = look("files:read", {"path": "c d.json"}, KEY)
    assert plain.candidates(["files:read"], "", look=other) == plain.candidates(["files:read"], "")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_one_of_the_better_validation_is_kept_and_of_equal_ones_the_one_without(seed: int) -> None:
    """Looks are drawn: whether they seem to help is chance, which validation shares."""
    draws = np.random.default_rng(seed)
    lists = [[1, int(each)] for each in draws.integers(2, 5, 60)]
    traces = trace_set(lists, texts=[NO_TEXT] * 60)
    traces = replace(traces, looks=draws.normal(size=(120, LOOK)).astype(np.float32))
    points, texts = np.zeros((5, 4), dtype=np.float32), np.zeros((0, 4), dtype=np.float32)
    before = traces.prefixes(np.arange(120)).features
    one, other = (train(traces, points, texts, seed, features=each) for each in (None, before))
    kept = fit_head(traces, points, texts, seed)
    expected = other if max(other.mrr) > max(one.mrr) else one
    np.testing.assert_array_equal(kept.flat, expected.model.flat)


def test_looks_that_only_mislead_are_not_read() -> None:
    """They tell what comes to who learns, and the contrary to who validates."""
    known = sessions_of(by_extension, range(120))
    sessions = with_looks(known)
    wrong = np.repeat(~learned_from(sessions.traces, 1), 2)
    looks = sessions.traces.looks
    assert looks is not None
    turned = looks.copy()
    turned[wrong] = np.roll(looks, 2, axis=0)[wrong]
    traces = replace(sessions.traces, looks=turned)
    assert not fitted(replace(sessions, traces=traces), EMBEDDING, 1, "attention_head").reads_looks


def test_where_no_look_is_known_nothing_more_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Vectors | None] = []

    def counting(*given: Any, features: Vectors | None) -> Training:
        told.append(features)
        return train(*given, features=features)

    monkeypatch.setattr(fitting, "train", counting)
    known = with_looks(sessions_of(by_extension, range(12))).traces
    points, texts = np.zeros((4, 4), dtype=np.float32), np.zeros((0, 4), dtype=np.float32)
    for looks in (None, np.zeros((24, LOOK), dtype=np.float32), known.looks):
        fit_head(replace(known, looks=looks), points, texts, 1)
    assert [each is None for each in told] == [True, True, True, False]


def test_what_rankers_count_with_reads_no_looks() -> None:
    """Though they would say what comes next."""
    sessions = with_looks(sessions_of(by_extension, range(40)))
    descriptions = sessions.described()
    points, requests = EMBEDDING.embed(descriptions), read_requests((), descriptions, EMBEDDING)
    one, other = (
        Components.fit(each, points, requests, 1).to_arrays()
        for each in (sessions.traces, replace(sessions.traces, looks=None))
    )
    assert all(np.array_equal(each, one[name]) for name, each in other.items())


def test_what_falls_together_by_chance_takes_as_often_as_it_adds() -> None:
    found = np.array([look(f"a:b{number}", {"x": number}, KEY) for number in range(200)])
    assert abs(float(np.mean(np.sign(found[found != 0])))) < 0.2


def test_where_nothing_validates_nothing_is_trained_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[bool] = []
    train = fitting.train

    def counted(*given: Any, **named: Any) -> Training:
        trained.append(named["features"] is not None)
        return train(*given, **named)

    monkeypatch.setattr(fitting, "train", counted)
    for count, expected in ((9, [False]), (10, [False, True])):
        trained.clear()
        fitted(with_looks(sessions_of(by_extension, range(count))), EMBEDDING, 1, "attention_head")
        assert trained == expected
