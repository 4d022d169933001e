"""How often the runs of a tenant are counted: within its share of time, and not while the store is away."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from pml.processors.learning.known_sessions import KnownSession
from pml.processors.learning.model import NextModel
from pml.processors.memory.embedding import HashedNgrams
from pml.schemas.errors import PMLError, QueryError, StoreUnavailable
from pml.streams.learning import counted_runs
from pml.streams.learning.counted_runs import COUNTING_SHARE, FAILED_AGAIN_S, STORE_AGAIN_S, NotCountedYet
from pml.streams.learning.serving import Known, Served, Serving
from pml.streams.settings import Settings

MODULE = "pml.streams.learning.counted_runs"
AT_HAND = 8
MODEL = cast("NextModel", object())
AWAY, REFUSED = StoreUnavailable("the store hangs"), QueryError("refused")
DAY_S = 86_400


class Clock:
    """A clock that a test moves, and whose runs were looked at."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.looks: list[str] = []

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(f"{MODULE}.time.monotonic", found)
    monkeypatch.setattr(f"{MODULE}.Store.connect", lambda *_, **__: _NoStore())
    return found


class _NoStore:
    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def serves(tmp_path: Path) -> Serving:
    settings = Settings(
        data_dir=tmp_path, clickhouse={"url": "http://127.0.0.1:1"}, learning={"tenants_at_hand": AT_HAND}
    )
    return Serving(settings)


Look = Callable[[str], "NextModel | PMLError | None"]


def looking(clock: Clock, monkeypatch: pytest.MonkeyPatch, took_s: float, comes_to: Look) -> None:
    """Each look at the runs of a tenant takes so long, and comes to this."""

    def read(_store: object, stretch: counted_runs.Stretch) -> tuple[KnownSession, ...]:
        clock.now_s += took_s
        clock.looks.append(stretch.tenant)
        found = comes_to(stretch.tenant)
        if isinstance(found, PMLError):
            raise found
        return cast("tuple[KnownSession, ...]", (found,))

    def counted(
        runs: counted_runs.CountedRuns, tenant: str, _schemas: object, _embedding: object
    ) -> NextModel | None:
        return cast("tuple[NextModel | None]", runs._latest(tenant))[0]

    monkeypatch.setattr(f"{MODULE}.read_session_values", read)
    monkeypatch.setattr(f"{MODULE}.CountedRuns._counted", counted)


def ask(serves: Serving, tenant: str = "local") -> Served | PMLError | None:
    """What serves a tenant that has no model, or why nothing does."""
    try:
        return serves.served(Known(tenant, None, {}), HashedNgrams())
    except PMLError as error:
        return error


def test_who_has_nothing_to_count_is_looked_at_again_within_a_minute_however_long_it_took(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looking(clock, monkeypatch, 40, lambda _: None)  # connects, on a busy machine
    for asked_after_s, looks in ((0, 1), (59, 1), (1, 2), (30, 2), (30, 3)):
        clock.now_s += asked_after_s
        assert ask(serves) is None
        assert len(clock.looks) == looks


@pytest.mark.parametrize("took_s", [0.02, 0.6, 4.1])
def test_counting_keeps_to_its_share_of_a_day(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving, took_s: float
) -> None:
    looking(clock, monkeypatch, took_s, lambda _: MODEL)
    began_s = clock.now_s
    while clock.now_s < began_s + DAY_S:
        assert isinstance(ask(serves), Served)
        clock.now_s += 5
    assert len(clock.looks) * took_s <= COUNTING_SHARE * DAY_S * 1.01
    assert len(clock.looks) > 100


def test_a_new_tenant_is_counted_soon_and_the_first_count_of_a_process_is_no_measure(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looking(clock, monkeypatch, 40, lambda _: MODEL)  # compiles
    ask(serves)
    clock.now_s += 60
    looking(clock, monkeypatch, 0.05, lambda _: MODEL)
    for _ in range(4):
        ask(serves)
        clock.now_s += 5
    assert len(clock.looks) == 1 + 4


def test_a_store_that_hangs_is_left_alone_by_all_from_the_end_of_a_look(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looking(clock, monkeypatch, 10, lambda _: AWAY)
    began_s = clock.now_s
    for number in range(20):
        found = ask(serves, f"t{number % 4}")
        assert (type(found), str(found)) == (StoreUnavailable, str(AWAY))
        clock.now_s += 1
    assert (clock.looks, clock.now_s) == (["t0"], began_s + 10 + 20)
    clock.now_s += STORE_AGAIN_S - 20
    ask(serves, "t1")
    assert clock.looks == ["t0", "t1"]


@pytest.mark.parametrize("error", [AWAY, REFUSED])
def test_one_whose_runs_cannot_be_read_keeps_no_other_from_its_look(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving, error: PMLError
) -> None:
    looking(clock, monkeypatch, 10, lambda tenant: error if tenant == "bad" else MODEL)
    assert isinstance(ask(serves, "bad"), type(error))
    clock.now_s += STORE_AGAIN_S
    assert isinstance(ask(serves, "bad"), type(error))
    assert isinstance(ask(serves, "good"), Served)
    assert clock.looks == ["bad", "good"]
    clock.now_s += FAILED_AGAIN_S - STORE_AGAIN_S
    ask(serves, "bad")
    assert clock.looks == ["bad", "good", "bad"]


def test_a_defect_waits_as_an_error_does(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looks: list[int] = []

    def fails(*_: object) -> None:
        looks.append(1)
        raise ValueError("a defect")

    monkeypatch.setattr(f"{MODULE}.CountedRuns._counted", fails)
    with pytest.raises(ValueError, match="a defect"):
        ask(serves)
    clock.now_s += FAILED_AGAIN_S - 1
    assert (ask(serves), len(looks)) == (None, 1)


def test_what_was_counted_serves_on_where_it_cannot_be_counted_anew(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looking(clock, monkeypatch, 0.5, lambda _: AWAY if len(clock.looks) > 1 else MODEL)
    first = ask(serves)
    assert isinstance(first, Served)
    for _ in range(5):
        clock.now_s += 50
        assert ask(serves) is first
    assert len(clock.looks) > 1


def test_more_tenants_than_are_kept_at_hand_are_not_counted_out_of_turn(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving
) -> None:
    looking(clock, monkeypatch, 0.5, lambda _: MODEL)
    tenants = [f"t{number}" for number in range(AT_HAND + 1)]
    answers = [ask(serves, tenant) for _ in range(10) for tenant in tenants]
    assert sorted(clock.looks) == tenants
    others = [each for each in answers if not isinstance(each, Served)]
    assert 0 < len(others) <= 10
    assert {type(each) for each in others} == {NotCountedYet}
    assert "made room for that of other tenants; it is counted again in 4" in str(others[0])


def test_waits_are_bounded_too(clock: Clock, monkeypatch: pytest.MonkeyPatch, serves: Serving) -> None:
    monkeypatch.setattr(f"{MODULE}.TENANTS_WAITING_MAX", 20)
    looking(clock, monkeypatch, 0.5, lambda _: None)
    for number in range(30):
        ask(serves, f"t{number}")
    assert len(serves._counts._tenants) == 20
