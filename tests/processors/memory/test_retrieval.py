"""Retrieval beside twins that sort everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.memory.context import Context, context_of, matching
from pml.processors.memory.embedding import HashedNgrams, cosine
from pml.processors.memory.index import ExactIndex
from pml.processors.memory.influence import INFLUENCE_MAX, STEP, influence, influenced
from pml.processors.memory.memory import Memory
from pml.processors.memory.pasts import tool_pasts
from pml.processors.memory.retrieval import SIMILARITY_DIGITS, SIMILARITY_MIN, Episode, exact, fuzzy, hybrid
from pml.schemas.memory import RecallRequest, ToolPast

NAMES = st.sampled_from(["", "a", "b"])
WORDS = st.lists(st.sampled_from(["read", "write", "notes", "flight", "hotel", "train", "tag"]), max_size=4)
CONTEXTS = st.builds(
    lambda kind, domain, complexity, words: context_of(
        kind, {"domain": domain, "complexity": complexity, "words": " ".join(words)}
    ),
    *(NAMES, NAMES, NAMES, WORDS),
)
TOOLS = st.sampled_from(["git:log", "files:read"])
K = st.integers(min_value=1, max_value=8)


def episode(number: int, context: Context, **fields: object) -> Episode:
    given = Episode(
        id=f"local/s:0:{number}",
        partition=number % 3,
        log_offset=number,
        workflow_id="run_1",
        event_type="task_complete",
        timestamp=f"2026-11-{10 + number // 5:02}T10:00:00.000000Z",
        context=context,
        tool_id="git:log",
        success=True,
    )
    return replace(given, **fields)  # type: ignore[arg-type]


EPISODES = st.lists(st.tuples(CONTEXTS, TOOLS, st.sampled_from([True, False, None])), max_size=40).map(
    lambda drawn: [
        episode(number, context, tool_id=tool, success=success)
        for number, (context, tool, success) in enumerate(drawn)
    ]
)


def newest_first(episodes: list[Episode]) -> list[Episode]:
    return sorted(episodes, key=lambda item: item.moment, reverse=True)


@given(episodes=EPISODES, wanted=CONTEXTS, k=K)
def test_exact_finds_most_keys_then_the_newest(episodes: list[Episode], wanted: Context, k: int) -> None:
    ranked = sorted(
        newest_first(episodes), key=lambda item: matching(item.context.keys, wanted.keys), reverse=True
    )
    twin = [item for item in ranked if matching(item.context.keys, wanted.keys)][:k]
    found = exact(newest_first(episodes), wanted, k)
    assert [item.episode for item in found] == twin
    assert all(item.keys == matching(item.episode.context.keys, wanted.keys) for item in found)


@given(episodes=EPISODES, wanted=CONTEXTS, k=K)
def test_fuzzy_finds_the_most_similar_then_the_newest(
    episodes: list[Episode], wanted: Context, k: int
) -> None:
    embedding = HashedNgrams()
    point = embedding.embed([wanted.text])[0]
    cosines = {
        item.context.text: round(float(point @ embedding.embed([item.context.text])[0]), SIMILARITY_DIGITS)
        for item in episodes
    }
    similar = [item for item in newest_first(episodes) if cosines[item.context.text] > SIMILARITY_MIN]
    twin = sorted(similar, key=lambda item: cosines[item.context.text], reverse=True)[:k]
    found = fuzzy(newest_first(episodes), wanted, k, cosines)
    assert [item.episode for item in found] == twin
    assert [item.similarity for item in found] == [cosines[item.context.text] for item in twin]


@given(episodes=EPISODES, wanted=CONTEXTS, k=K, mode=st.sampled_from(["exact", "fuzzy", "hybrid"]))
def test_a_memory_finds_what_the_functions_find(
    episodes: list[Episode], wanted: Context, k: int, mode: str
) -> None:
    """Asked by its keys and its text as a run's context would give them, in whatever order it was filled."""
    memory = Memory(HashedNgrams(), index=ExactIndex)
    memory.add(episodes[::2])
    memory.add(episodes[1::2])
    kind, domain, complexity = wanted.keys
    request = RecallRequest.model_validate(
        {"workflow_type": kind, "context": {"domain": domain, "complexity": complexity}, "mode": mode, "k": k}
    )
    asked = context_of(kind, request.context)
    exactly = exact(newest_first(episodes), asked, k)
    point, *points = HashedNgrams().embed([asked.text, *(item.context.text for item in episodes)])
    cosines = {item.context.text: cosine(point, near) for item, near in zip(episodes, points, strict=True)}
    similar = fuzzy(newest_first(episodes), asked, 50, cosines)
    expected = {"exact": exactly, "fuzzy": similar[:k], "hybrid": hybrid(exactly, similar, k)}[mode]
    found = memory.find(request, asked)
    assert [item.episode.id for item in found] == [item.episode.id for item in expected]
    assert len({item.episode.id for item in found}) == len(found)


@given(episodes=EPISODES, wanted=CONTEXTS)
def test_a_similarity_does_not_depend_on_how_many_are_compared(
    episodes: list[Episode], wanted: Context
) -> None:
    memory = Memory(HashedNgrams(), index=ExactIndex)
    memory.add(episodes)
    request = RecallRequest(workflow_type="", context={}, mode="fuzzy", k=50)
    (point,) = HashedNgrams().embed([wanted.text])
    for found in memory.find(request, wanted):
        (other,) = HashedNgrams().embed([found.episode.context.text])
        assert found.similarity == round(cosine(point, other), SIMILARITY_DIGITS)


def test_hybrid_fills_up_what_exact_leaves() -> None:
    context = context_of("a", {"domain": "x", "complexity": "y", "words": "read the notes"})
    other = context_of("b", {"domain": "p", "complexity": "q", "words": "read the notes"})
    first, second = episode(1, context), episode(2, other)
    (exactly,) = exact([second, first], context, 5)
    (similar,) = fuzzy([second, first], context, 5, {other.text: 0.9, context.text: 0.1})
    assert hybrid([exactly], [similar, exactly], 5) == [exactly, similar]
    assert hybrid([exactly], [similar], 1) == [exactly]


def test_only_the_newest_are_remembered_and_each_once() -> None:
    memory = Memory(HashedNgrams(), episodes_max=10)
    episodes = [episode(number, context_of(f"type{number}", {})) for number in range(30)]
    memory.add(episodes[20:])
    memory.add(episodes[:25])
    assert list(memory.episodes) == newest_first(episodes[20:])


def test_contexts_that_are_forgotten_are_not_found_again() -> None:
    memory = Memory(HashedNgrams(), episodes_max=100)
    request = RecallRequest(workflow_type="type", context={"n": "seven"}, mode="fuzzy", k=3)
    for round_number in range(14):
        memory.add(
            episode(
                100 * round_number + number,
                context_of("type", {"n": f"word{round_number} {number}"}),
                timestamp=f"2026-11-22T10:{round_number:02}:00.{number:06}Z",
            )
            for number in range(100)
        )
        found = memory.recall(request).episodes
        assert {item.episode.timestamp[14:16] for item in found} <= {f"{round_number:02}"}


@given(
    episodes=EPISODES,
    wanted=CONTEXTS,
    days=st.integers(min_value=1, max_value=5),
    before=st.integers(min_value=10, max_value=18),
)
def test_pasts_count_known_truths_of_this_context_in_time(
    episodes: list[Episode], wanted: Context, days: int, before: int
) -> None:
    now = f"2026-11-{before:02}T10:00:00.000000Z"
    since = f"2026-11-{before - days:02}T10:00:00.000000Z"
    pasts = tool_pasts(episodes, wanted, {"git:log"}, now, days * 86_400)
    counted = [
        item.success
        for item in episodes
        if item.tool_id == "git:log" and item.context.keys == wanted.keys and since <= item.timestamp < now
    ]
    expected = ToolPast(successes=counted.count(True), failures=counted.count(False))
    assert pasts == ({"git:log": expected} if expected != ToolPast() else {})


@given(st.integers(min_value=0, max_value=50), st.integers(min_value=0, max_value=50))
def test_influence_is_two_hundredths_an_episode_and_a_tenth_at_most(successes: int, failures: int) -> None:
    moved = influence(ToolPast(successes=successes, failures=failures))
    assert moved == round(float(np.clip(STEP * (successes - failures), -INFLUENCE_MAX, INFLUENCE_MAX)), 4)
    assert 0 <= influenced(0.95, moved) <= 1
