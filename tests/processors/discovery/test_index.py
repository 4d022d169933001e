"""The index as it is asked: what it finds, in which order, however it came to be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.discovery.documents import Document, capability_document, tool_document
from pml.processors.discovery.history import Past
from pml.processors.discovery.index import LIMIT_MOST, DiscoveryIndex, Filter
from pml.processors.discovery.prior import Standing
from pml.processors.discovery.question import question
from pml.processors.memory.embedding import HashedNgrams
from tests.processors.discovery.small_catalog import (
    documents,
    drawn_documents,
    drawn_pasts,
    small_index,
    texts,
)

EMBEDDING = HashedNgrams()


def found(index: DiscoveryIndex, intent: str, **asked: object) -> list[str]:
    return [item.document.id for item in index.search(intent, **asked).items]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("intent", "first"),
    [
        ("what will the weather be in my city", "weather:get_forecast"),
        ("reading files", "files:read_file"),
        ("mail this to my boss", "mail:send_mail"),
    ],
)
def test_what_fits_comes_first(intent: str, first: str) -> None:
    assert found(small_index(), intent)[0] == first


def test_a_prerequisite_comes_with_its_tool() -> None:
    index = small_index()
    before = found(index, "mail this to my boss").index("mail:validate_address")
    index.remember([Past("write to the whole team", ("mail:validate_address", "mail:send_mail"))] * 5)
    assert found(index, "mail this to my boss")[:2] == ["mail:send_mail", "mail:validate_address"]
    assert before >= 1


def test_a_provider_comes_with_its_tool_without_any_past() -> None:
    taken = {"properties": {"city_id": {}}, "required": ["city_id"]}
    given_out = {"properties": {"city_id": {}}}
    index = small_index()
    index.put([tool_document("weather:get_forecast", "The weather of the next days", taken)])
    before = found(index, "weather forecast").index("geo:find_city")
    index.put([tool_document("geo:find_city", "Look something up by its name", None, given_out)])
    assert found(index, "weather forecast")[1] == "geo:find_city"
    assert before >= 1


def test_capabilities_and_tools_are_told_apart() -> None:
    index = small_index()
    index.put(
        [
            capability_document(
                "cap_1", "mail_report", "mail the weekly report to the boss", tools=["mail:send_mail"]
            )
        ]
    )
    assert found(index, "mail the weekly report", wanted=Filter(type="capability")) == ["cap_1"]
    assert "cap_1" not in found(index, "mail the weekly report", wanted=Filter(type="tool"))
    assert found(index, "mail the weekly report")[0] == "cap_1"


def test_what_was_learned_for_the_same_words_comes_before_its_tools() -> None:
    index, intent, tools = small_index(), "tell the team what is new", ("files:read_file", "mail:send_mail")
    index.put([capability_document("cap_1", "tell", intent, tools=tools)])
    index.remember([Past(intent, tools)])
    assert found(index, intent)[0] in tools
    index.remember([Past(intent, tools, "cap_1"), Past("warn the city", tools, "cap_2")])
    assert found(index, intent)[0] == "cap_1"


def test_what_never_ran_is_not_outdone_by_what_ran_for_something_else() -> None:
    index = small_index()
    index.remember([Past("mail somebody", ("mail:send_mail",))] * 5)
    assert found(index, "what will the weather be in my city")[0] == "weather:get_forecast"


def test_a_better_standing_lifts_a_little() -> None:
    index = small_index()
    plain = {item.document.id: item.score for item in index.search("read a file").items}
    index.rate({"geo:find_city": Standing(1, 1, 1)})
    rated = index.search("read a file")
    assert {item.document.id: item.score for item in rated.items}["geo:find_city"] > plain["geo:find_city"]
    assert rated.items[0].document.id == "files:read_file"


@given(drawn_documents(), drawn_pasts(), texts, st.floats(0, 1))
def test_scores_are_within_bounds_and_in_order(
    given_documents: list[Document], pasts: list[Past], intent: str, least: float
) -> None:
    index = DiscoveryIndex(EMBEDDING)
    index.put(given_documents)
    index.remember(pasts)
    page = index.search(intent, Filter(min_score=least), limit=LIMIT_MOST)
    keys = [(-item.score, item.document.id) for item in page.items]
    assert keys == sorted(keys)
    assert all(least <= item.score <= 1 for item in page.items)
    assert page.total == len(page.items)


@given(drawn_documents(), drawn_documents(), drawn_pasts(), texts)
def test_changed_piece_by_piece_is_as_built_at_once(
    first: list[Document], then: list[Document], pasts: list[Past], intent: str
) -> None:
    pieces = DiscoveryIndex(EMBEDDING)
    pieces.put(first)
    pieces.search(intent)
    pieces.remove(document.id for document in first[::2])
    for document in then:
        pieces.put([document])
        pieces.search(intent)
    pieces.remember(pasts)
    kept = {document.id: document for document in [*first[1::2], *then]}
    whole = DiscoveryIndex(EMBEDDING)
    whole.remember(pasts)
    whole.put(reversed(kept.values()))
    assert pieces.documents == whole.documents
    assert pieces.search(intent, limit=LIMIT_MOST) == whole.search(intent, limit=LIMIT_MOST)


@given(drawn_documents(), texts, st.integers(1, 5))
def test_pages_are_the_whole_list_cut(given_documents: list[Document], intent: str, limit: int) -> None:
    index = DiscoveryIndex(EMBEDDING)
    index.put(given_documents)
    whole = index.search(intent, limit=LIMIT_MOST).items
    pages = [
        index.search(intent, limit=limit, offset=start).items for start in range(0, len(whole) + limit, limit)
    ]
    assert tuple(item for page in pages for item in page) == whole


def test_of_equal_scores_the_first_id_comes_first() -> None:
    index = DiscoveryIndex(EMBEDDING)
    index.put([Document(name, "tool", "same", "the same words") for name in ("c", "a", "b")])
    assert found(index, "same words") == ["a", "b", "c"]


@pytest.mark.parametrize("intent", ["", "   ", "?!"])
def test_nothing_asked_is_nothing_found(intent: str) -> None:
    assert small_index().search(intent).items == ()


def test_an_empty_index_finds_nothing() -> None:
    assert DiscoveryIndex(EMBEDDING).search("read a file").total == 0


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (LIMIT_MOST + 1, 0), (10, -1)])
def test_limits_are_refused_out_of_bounds(limit: int, offset: int) -> None:
    with pytest.raises(ValueError, match="limit is 1 to 50"):
        small_index().search("read", limit=limit, offset=offset)


def test_a_question_of_another_model_is_refused() -> None:
    class Other(HashedNgrams):
        name = "other"

    with pytest.raises(ValueError, match="made by other"):
        small_index().search(question("read a file", Other()))


def test_only_what_is_new_is_given_to_the_model() -> None:
    class Counting(HashedNgrams):
        given = 0

        def embed(self, texts):  # type: ignore[no-untyped-def]
            self.given += len(texts)
            return super().embed(texts)

    counting = Counting()
    index = DiscoveryIndex(counting)
    index.put(documents())
    index.put([*documents(), tool_document("new:tool", "something else")])
    assert counting.given == len(documents()) + 1


@given(drawn_documents(), drawn_pasts(), texts)
def test_a_rating_counts_whether_or_not_something_was_asked_before(
    given_: list[Document], pasts: list[Past], intent: str
) -> None:
    standings = {document.id: Standing(1, 0.5, 0) for document in given_[::2]}
    answers = []
    for asked_before in (False, True):
        index = DiscoveryIndex(EMBEDDING)
        index.put(given_)
        index.remember(pasts)
        if asked_before:
            index.search(intent)
        index.rate(standings)
        answers.append(index.search(intent, limit=50))
    assert answers[0] == answers[1]
