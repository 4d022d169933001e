"""Which threshold holds, and how likely a branch is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.speculation.branches import branch_key
from pml.processors.speculation.thresholds import INITIAL, LEVELS, context_key, context_keys, scope_of
from pml.processors.workflow import Catalog, Policy
from pml.schemas.base import ThresholdContext
from pml.schemas.catalog import BranchStats, CatalogData, CatalogRecord, ThresholdOverride, ThresholdRecord

ALICE = ThresholdContext(user="alice", domain="web", workflow_type="audit")
KEYS = context_keys("local", ALICE)
EMPTY = Catalog(Policy(hash_key=b"k"))


def with_data(catalog: Catalog, key: str, data: CatalogData) -> Catalog:
    return catalog.with_record(CatalogRecord(kind=data.KIND, id=key, data=data))


def learned(value: float, outcomes: int = 50) -> ThresholdRecord:
    return ThresholdRecord(
        tenant="local",
        level="type",
        value=value,
        previous=INITIAL,
        ema=0.85,
        success_rate=0.85,
        windows=outcomes // 50,
        outcomes=outcomes,
        state="converged",
        reason="kept",
        changed_at="2026-11-22T00:00:00.000000Z",
    )


def manual(value: float | None) -> ThresholdOverride:
    return ThresholdOverride(tenant="local", level="type", value=value, changed_at="")


def found(catalog: Catalog) -> tuple[float, str, bool]:
    answer = catalog.threshold("local", "alice", "web", "audit")
    return answer.value, answer.context_key, answer.manual


def test_where_nothing_is_known_the_initial_one_holds() -> None:
    assert found(EMPTY) == (INITIAL, "local/default", False)


@pytest.mark.parametrize("level", range(4), ids=LEVELS)
def test_the_most_special_context_that_learned_something_holds(level: int) -> None:
    catalog = EMPTY
    for number in range(level, 4):
        catalog = with_data(catalog, KEYS[number], learned(0.8 + number / 100))
    assert found(catalog) == (0.8 + level / 100, KEYS[level], False)


def test_what_a_person_set_holds_before_anything_learned_and_is_taken_back() -> None:
    catalog = with_data(EMPTY, KEYS[0], learned(0.8))
    catalog = with_data(catalog, KEYS[3], manual(0.99))
    assert found(catalog) == (0.99, KEYS[3], True)
    assert found(with_data(catalog, KEYS[2], manual(0.5))) == (0.5, KEYS[2], True)
    assert found(with_data(catalog, KEYS[3], manual(None))) == (0.8, KEYS[0], False)
    assert found(catalog.without("threshold_override", KEYS[3])) == (0.8, KEYS[0], False)
    assert found(catalog.without("threshold", KEYS[0])) == (0.99, KEYS[3], True)


def test_another_tenants_thresholds_do_not_hold_here() -> None:
    theirs = with_data(EMPTY, context_key("other", ALICE, "default"), learned(0.7))
    assert found(theirs)[0] == INITIAL


def test_a_late_record_of_an_overtaken_owner_is_passed_over() -> None:
    catalog = with_data(EMPTY, KEYS[2], learned(0.8, outcomes=150))
    assert found(with_data(catalog, KEYS[2], learned(0.9, outcomes=100)))[0] == 0.8
    assert found(with_data(catalog, KEYS[2], learned(0.9, outcomes=200)))[0] == 0.9


texts = st.text(max_size=12)


@given(st.tuples(texts, texts, texts), st.tuples(texts, texts, texts))
def test_contexts_share_a_key_only_where_they_are_the_same(
    one: tuple[str, str, str], two: tuple[str, str, str]
) -> None:
    a, b = (ThresholdContext(user=u, domain=d, workflow_type=t) for u, d, t in (one, two))
    for level, kept in (("user", (0, 2)), ("domain", (1, 2)), ("type", (2,))):
        same = all(one[index] == two[index] for index in kept)
        assert (context_key("local", a, level) == context_key("local", b, level)) is same  # type: ignore[arg-type]
    assert len(set(context_keys("local", a))) == 4
    told = [scope_of(key) for key in context_keys("local", a)]
    assert [(item["level"], item["user"], item["domain"], item["workflow_type"]) for item in told] == [
        ("user", one[0], None, one[2]),
        ("domain", None, one[1], one[2]),
        ("type", None, None, one[2]),
        ("default", None, None, None),
    ]


def test_a_branch_is_as_likely_as_it_was_taken() -> None:
    stats = BranchStats(
        tenant="local", workflow_type="audit", decision_id="d1", counts={"true": 7, "false": 2}
    )
    catalog = with_data(EMPTY, branch_key("local", "audit", "d1"), stats)
    assert catalog.branch_probability("local", "audit", "d1", "true") == 8 / 11
    assert catalog.branch_probability("local", "audit", "d1", "false") == 3 / 11
    assert catalog.branch_probability("local", "audit", "d1", "case:never") == 1 / 11
    assert catalog.branch_probability("local", "audit", "d2", "true") == 0.5
    assert catalog.branch_probability("other", "audit", "d1", "true") == 0.5
    gone = catalog.without("branch_stats", branch_key("local", "audit", "d1"))
    assert gone.branch_probability("local", "audit", "d1", "true") == 0.5


@pytest.mark.parametrize("key", ["local", "local/tool=x", "local/", ""])
def test_what_names_no_context_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="names no context"):
        scope_of(key)


def test_a_key_says_its_context() -> None:
    context = ThresholdContext(user="a/b", domain="c=d", workflow_type="e f")
    assert context_keys("local", context) == (
        "local/user=a%2Fb/type=e%20f",
        "local/domain=c%3Dd/type=e%20f",
        "local/type=e%20f",
        "local/default",
    )
    read = {level: scope_of(context_key("local", context, level)) for level in LEVELS}
    empty = {"tenant": "local", "user": None, "domain": None, "workflow_type": None}
    assert read == {
        "user": {**empty, "level": "user", "user": "a/b", "workflow_type": "e f"},
        "domain": {**empty, "level": "domain", "domain": "c=d", "workflow_type": "e f"},
        "type": {**empty, "level": "type", "workflow_type": "e f"},
        "default": {**empty, "level": "default"},
    }
