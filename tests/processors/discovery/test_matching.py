"""Which capability an intent means, and how sure that is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.documents import capability_document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import DiscoveryIndex
from pml.processors.discovery.lexical import rarity
from pml.processors.discovery.matching import (
    DEFAULT,
    SAME_WORDS,
    Candidate,
    Match,
    MatchWeights,
    confidences,
    evidence,
    matches,
)
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.words import words
from tests.processors.discovery.small_catalog import TOOLS, small_index, texts

THRESHOLD = 0.70
MAIL = Candidate("cap_mail", ("mail the weekly report to the boss",), ("files:read_file", "mail:send_mail"))
TRIP = Candidate(
    "cap_trip", ("find out how warm it is in a city",), ("geo:find_city", "weather:get_forecast")
)


def index_of(*candidates: Candidate) -> DiscoveryIndex:
    index = small_index()
    index.put(capability_document(each.id, each.id, each.intents[0], tools=each.tools) for each in candidates)
    index.remember([Past(intent, each.tools) for each in candidates for intent in each.intents])
    return index


def matched(intent: str, *candidates: Candidate) -> list[Match]:
    return matches(index_of(*candidates), candidates, intent)


def test_what_is_asked_in_the_same_words_is_meant() -> None:
    best, other = matched("Mail the weekly report to the boss!", MAIL, TRIP)
    assert (best.id, other.id) == ("cap_mail", "cap_trip")
    assert best.confidence >= SAME_WORDS > THRESHOLD > other.confidence


@pytest.mark.parametrize(
    "intent", ["mail this week's report to my boss", "mail the monthly report to the boss"]
)
def test_what_is_asked_in_other_words_is_meant(intent: str) -> None:
    best = matched(intent, MAIL, TRIP)[0]
    assert best.id == "cap_mail"
    assert best.confidence > THRESHOLD


@pytest.mark.parametrize(
    "intent", ["translate a poem into french", "delete all users", "write text into a file", "the"]
)
@pytest.mark.parametrize("known", [(MAIL,), (TRIP,), (MAIL, TRIP)])
def test_what_is_unrelated_is_not(intent: str, known: tuple[Candidate, ...]) -> None:
    assert all(match.confidence < THRESHOLD for match in matched(intent, *known))


def test_of_two_that_are_nearly_alike_none_is_sure() -> None:
    twin = Candidate("cap_twin", ("mail the weekly report to the board",), MAIL.tools)
    found = matched("mail the report to somebody", MAIL, twin)
    assert all(match.confidence <= 0.5 for match in found)


def test_of_two_with_the_same_words_the_better_standing_is_meant() -> None:
    old = Candidate("cap_a", MAIL.intents, ("mail:send_mail",))
    index = index_of(MAIL, old)
    for better, worse in ((MAIL, old), (old, MAIL)):
        index.rate({better.id: Standing(success=0.9, recency=1.0), worse.id: Standing(success=0.9)})
        (best,) = matches(index, [MAIL, old], MAIL.intents[0])
        assert (best.id, best.confidence >= SAME_WORDS) == (better.id, True)


def test_any_of_its_intents_is_enough() -> None:
    known = replace(MAIL, intents=(*MAIL.intents, "tell my manager what we did"))
    assert matched("Tell my manager what we did", known, TRIP)[0].confidence >= SAME_WORDS
    before, after = (matched("tell the manager what I did", each, TRIP) for each in (MAIL, known))
    assert dict_of(after)["cap_mail"] > dict_of(before)["cap_mail"]


def test_nothing_that_fits_better_is_meant_instead_of_what_was_learned_for_these_words() -> None:
    gone = Candidate("cap_gone", ("mail report to the boss",), ("post:send",))
    assert matched("mail report to the boss", gone, MAIL)[0] == Match("cap_gone", SAME_WORDS)


def test_words_that_two_were_asked_in_are_those_of_the_better_standing_alone() -> None:
    shared = "tell my manager what we did"
    one, other = (replace(each, intents=(*each.intents, shared)) for each in (MAIL, TRIP))
    index = index_of(one, other)
    index.rate({"cap_trip": Standing(success=0.9)})
    found = dict_of(matches(index, [one, other], shared))
    assert found["cap_trip"] >= SAME_WORDS > found["cap_mail"]
    assert dict_of(matches(index, [one, other], MAIL.intents[0]))["cap_mail"] >= SAME_WORDS


def dict_of(found: list[Match]) -> dict[str, float]:
    return {match.id: match.confidence for match in found}


def test_nothing_is_meant_where_there_is_nothing_or_no_word() -> None:
    assert matched("mail the report") == []
    assert matched("!?", MAIL) == []


def test_a_capability_without_a_known_tool_is_hardly_meant() -> None:
    gone = Candidate("cap_gone", ("send a letter",), ("post:send",))
    assert matched("send a card", gone)[0].confidence < THRESHOLD


drawn = st.lists(
    st.builds(
        lambda number, intents, tools: Candidate(f"cap_{number:02}", tuple(intents), tuple(tools)),
        st.integers(0, 99),
        st.lists(texts, min_size=1, max_size=3),
        st.lists(st.sampled_from(sorted(TOOLS)), min_size=1, max_size=3, unique=True),
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda candidate: candidate.id,
)


@given(drawn, st.randoms(use_true_random=False), texts)
def test_it_does_not_matter_in_which_order_they_were_learned(
    candidates: list[Candidate], random: object, intent: str
) -> None:
    shuffled = list(candidates)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    index = index_of(*candidates)
    assert matches(index, shuffled, intent) == matches(index, candidates, intent)


@given(drawn, st.integers(0, 5))
def test_the_same_words_are_always_enough(candidates: list[Candidate], place: int) -> None:
    asked = candidates[place % len(candidates)].intents[-1]
    best = matches(index_of(*candidates), candidates, asked)[0]
    assert best.confidence > THRESHOLD
    meant = next(each.intents for each in candidates if each.id == best.id)
    assert asked.split() in [intent.split() for intent in meant]


@given(drawn, texts)
def test_shared_words_are_those_of_a_twin_that_makes_every_set(
    candidates: list[Candidate], intent: str
) -> None:
    said = [[set(words(each)) for each in candidate.intents] for candidate in candidates]
    rare = {
        word: rarity(len(said), sum(any(word in one for one in of) for of in said))
        for word in {*words(intent), *(word for of in said for one in of for word in one)}
    }

    def share(one: set[str]) -> float:
        asked = set(words(intent))
        return sum(rare[word] for word in asked & one) / sum(rare[word] for word in asked | one)

    twin = [max(share(one) for one in of) for of in said]
    assert evidence(index_of(*candidates), candidates, intent)[:, 0] == pytest.approx(twin)


@given(drawn, texts)
def test_confidences_are_shares_of_what_an_intent_can_mean(candidates: list[Candidate], intent: str) -> None:
    """As a twin that adds up odds one by one; none of them has the odds 1."""
    rows = evidence(index_of(*candidates), candidates, intent)
    odds = [
        math.exp(
            DEFAULT.bias
            + DEFAULT.shared_words * words
            + DEFAULT.weakest_tool * weakest
            + DEFAULT.other_tool * other
        )
        for words, weakest, other in rows.tolist()
    ]
    found = confidences(rows, DEFAULT)
    assert found == pytest.approx([each / (1 + sum(odds)) for each in odds], abs=1e-6)
    assert float(found.sum()) <= 1 + 1e-5
    assert np.all((rows[:, 0] >= 0) & (rows[:, 0] <= 1))


def test_the_same_words_in_another_order_are_all_of_them_and_no_more() -> None:
    """These, added up as they come, had a share of 1 + 2⁻⁵²."""
    said = (["read"], ["read write file mail"])
    candidates = [
        Candidate(f"cap_{number}", tuple(intents), ("files:read_file",))
        for number, intents in enumerate(said)
    ]
    assert evidence(index_of(*candidates), candidates, "write file mail read")[1, 0] == 1


def test_sums_of_any_size_are_no_error() -> None:
    rows = np.array([[1.0, 700.0, 0.0], [1.0, 700.0, 0.0], [0.0, -700.0, 0.0]])
    assert confidences(rows, MatchWeights(1, 10, 0, 0)).tolist() == [0.5, 0.5, 0.0]


@given(drawn, texts)
def test_evidence_of_tools_is_as_a_twin_finds_it_one_by_one(candidates: list[Candidate], intent: str) -> None:
    index = index_of(*candidates)
    scores = {item.document.id: item.score for item in index.search(intent, limit=50).items}
    odds = {tool: math.log(scores[tool] / (1 - scores[tool])) for tool in TOOLS}
    for candidate, (_, weakest, other) in zip(
        candidates, evidence(index, candidates, intent).tolist(), strict=True
    ):
        assert weakest == pytest.approx(min(odds[tool] for tool in candidate.tools))
        others = [odds[tool] for tool in TOOLS if tool not in candidate.tools]
        assert other == pytest.approx(max(*others, index.weights.bias))
