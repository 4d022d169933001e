"""When a training is due, what is told of it, and that nothing stops the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pml.schemas.catalog import ModelFallen
from pml.schemas.errors import BrokerUnavailable, ConfigurationError, PMLError, StoreUnavailable
from pml.schemas.times import from_rfc3339
from pml.streams.cli.train_watch import line
from pml.streams.learning import promotion, retraining
from pml.streams.learning.kept_backtests import keep_backtest
from pml.streams.learning.limited import MIB, Ended, Limits, OverLimit, TrainingFailed
from pml.streams.learning.retraining import (
    COUNT_S,
    WAIT_MOST_S,
    Job,
    Schedule,
    Steps,
    last_training_ms,
    publish_earned,
    retrain,
    steps_of,
)
from pml.streams.settings import Settings
from tests.streams.learning.kept_models import FIRST, FOURTH, PROMOTED_AT, SECOND, keep, manifest, serving
from tests.streams.learning.test_rollback import Topic, backtest, settings_of

HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000


def ended(model_id: str = FIRST) -> Ended:
    return Ended(orjson.dumps(manifest(model_id)), took_s=12.34, peak_bytes=300 * MIB)


@dataclass
class World:
    """A clock that stands still but for sleeps and trainings; runs end at a steady pace."""

    until_ms: int
    train_ms: int = 0
    traces_per_hour: int = 0
    outcomes: list[PMLError | Ended] = field(default_factory=list)
    count_fails: Callable[[int], bool] = lambda now_ms: False
    now_ms: int = START_MS
    trained_ms: list[int] = field(default_factory=list)
    begun_ms: list[int] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    pruned: list[PMLError | list[str]] = field(default_factory=list)

    def steps(self, **others: Any) -> Steps:
        """The loop's steps in this world, but for `others`."""
        own = {
            "count": self.count,
            "begin": self.begun_ms.append,
            "train": self.train,
            "publish": self.publish,
            "prune": self.prune,
            "clock": lambda: self.now_ms,
            "sleep": self.sleep,
        }
        return Steps(**(own | others))

    @property
    def events(self) -> list[str]:
        return [told["event"] for told in self.told]

    async def run(self, schedule: Schedule, last_ms: int | None = None) -> World:
        with pytest.raises(asyncio.CancelledError):
            await retrain(schedule, self.steps(), last_ms, self.told.append)
        return self

    async def count(self, since_ms: int) -> int:
        if self.count_fails(self.now_ms):
            raise StoreUnavailable("no store")
        return (self.now_ms - since_ms) * self.traces_per_hour // HOUR_MS

    async def train(self) -> Ended:
        self.trained_ms.append(self.now_ms)
        self.now_ms += self.train_ms
        outcome = self.outcomes.pop(0) if self.outcomes else ended()
        if isinstance(outcome, PMLError):
            raise outcome
        return outcome

    async def publish(self, found: Any) -> tuple[bool, str]:
        return True, "it serves from now on"

    async def prune(self) -> list[str]:
        outcome = self.pruned.pop(0) if self.pruned else []
        if isinstance(outcome, PMLError):
            raise outcome
        return outcome

    async def sleep(self, seconds: float) -> None:
        self.now_ms += round(seconds * 1_000)
        if self.now_ms > self.until_ms:
            raise asyncio.CancelledError


async def test_on_a_schedule_the_next_one_counts_from_when_the_last_began() -> None:
    world = World(until_ms=START_MS + 20 * HOUR_MS, train_ms=HOUR_MS)
    await world.run(Schedule(every_s=6 * 3_600))
    assert world.trained_ms == [START_MS + hours * HOUR_MS for hours in (0, 6, 12, 18)]
    assert world.begun_ms == world.trained_ms
    assert world.events[:4] == ["started", "trained", "waiting", "started"]
    assert world.told[1]["peak_mb"] == 300


async def test_a_training_that_takes_longer_than_the_schedule_is_not_made_up_for() -> None:
    world = World(until_ms=START_MS + 20 * HOUR_MS, train_ms=9 * HOUR_MS)

    async def stop(found: Any) -> tuple[bool, str]:
        if len(world.trained_ms) == 3:
            raise asyncio.CancelledError
        return True, ""

    with pytest.raises(asyncio.CancelledError):
        await retrain(Schedule(every_s=3_600), world.steps(publish=stop), None, world.told.append)
    assert world.trained_ms == [START_MS + hours * HOUR_MS for hours in (0, 9, 18)]


async def test_so_many_new_traces_are_a_reason_and_a_restart_is_none() -> None:
    world = World(until_ms=START_MS + 10 * HOUR_MS, traces_per_hour=100)
    await world.run(Schedule(new_traces=250), last_ms=START_MS - HOUR_MS)
    minute = round(COUNT_S * 1_000)
    assert world.trained_ms[0] == START_MS + 3 * HOUR_MS // 2
    assert all(
        0 <= later - earlier - 5 * HOUR_MS // 2 < minute
        for earlier, later in zip(world.trained_ms, world.trained_ms[1:], strict=False)
    )
    assert world.events[:2] == ["waiting", "started"]


async def test_what_fails_is_told_and_the_next_one_comes() -> None:
    failures = [OverLimit("too much"), TrainingFailed("no sessions"), Ended(b"what?", 1.0, 1), ended()]
    world = World(until_ms=START_MS + 4 * HOUR_MS, outcomes=failures)
    await world.run(Schedule(every_s=3_600))
    told = [item for item in world.told if item["event"] in ("failed", "trained")]
    assert [item.get("code") for item in told[:4]] == [
        "OVER_LIMIT",
        "TRAINING_FAILED",
        "TRAINING_FAILED",
        None,
    ]
    assert len(world.trained_ms) == 5


async def test_a_store_that_does_not_answer_is_told_once_and_asked_again() -> None:
    world = World(until_ms=START_MS + 2 * HOUR_MS, traces_per_hour=100)
    world.count_fails = lambda now_ms: now_ms < START_MS + HOUR_MS
    await world.run(Schedule(new_traces=50), last_ms=START_MS)
    assert world.events[:2] == ["failed", "waiting"]
    assert world.events.count("failed") == 1
    assert world.trained_ms[0] == START_MS + HOUR_MS


@given(
    st.none() | st.floats(1, 1e6),
    st.none() | st.integers(1, 1000),
    st.none() | st.integers(0, 10**9),
    st.integers(0, 2000),
)
@settings(max_examples=100, derandomize=True)
def test_one_is_due_where_a_limit_is_reached_and_no_wait_is_without_end(
    every_s: float | None, new_traces: int | None, age_ms: int | None, traces: int
) -> None:
    if every_s is None and new_traces is None:
        with pytest.raises(ConfigurationError):
            Schedule(every_s, new_traces)
        return
    schedule, last_ms = Schedule(every_s, new_traces), None if age_ms is None else START_MS - age_ms
    by_time = every_s is not None and age_ms is not None and age_ms >= every_s * 1_000
    by_traces = new_traces is not None and traces >= new_traces
    assert (schedule.due(last_ms, START_MS, traces) is not None) == (age_ms is None or by_time or by_traces)
    if last_ms is not None:
        assert 0 < schedule.wait_s(last_ms, START_MS) <= WAIT_MOST_S


async def test_the_same_model_and_one_that_fell_are_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings_of(tmp_path)
    fallen = ModelFallen(model_id=SECOND, why="worse", at=PROMOTED_AT)
    topic = Topic(monkeypatch, serving(FIRST).model_copy(update={"fallen": (fallen,)}))
    monkeypatch.setattr(retraining, "read_catalog", promotion.read_catalog)
    keep(found.models_folder, FIRST, SECOND)
    assert await publish_earned(found, manifest(FIRST), "ann") == (False, "it is the one that serves")
    published, why = await publish_earned(found, manifest(SECOND), "ann")
    assert (published, "was rolled back" in why) == (False, True)
    assert topic.model.model_id == FIRST

    keep(found.models_folder, FOURTH)
    assert (await publish_earned(found, manifest(FOURTH), "ann"))[0]
    assert (topic.model.model_id, topic.model.previous, topic.model.fallen) == (FOURTH, (FIRST,), (fallen,))


async def test_a_model_that_a_person_went_back_from_is_published_by_persons_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST, SECOND))
    monkeypatch.setattr(retraining, "read_catalog", promotion.read_catalog)
    keep(found.models_folder, FIRST, SECOND)
    await promotion.roll_back(found, "ann", "local")
    published, why = await publish_earned(found, manifest(FIRST), "bob")
    assert (published, topic.model.model_id) == (False, SECOND)
    assert f"ann went back to {SECOND}" in why
    assert f"pml model promote {FIRST}" in why
    await promotion.promote(found, FIRST, "ann")
    assert (topic.model.model_id, topic.model.fallen) == (FIRST, None)


async def test_a_model_whose_backtest_could_not_be_made_is_published_by_persons_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, topic = settings_of(tmp_path), Topic(monkeypatch, serving(FIRST))
    monkeypatch.setattr(retraining, "read_catalog", promotion.read_catalog)
    keep(found.models_folder, FIRST, SECOND)
    told = {**manifest(SECOND), "not_done": {"backtest": {"code": "QUERY", "message": "too large"}}}
    published, why = await publish_earned(found, told, "ann")
    assert (published, topic.model.model_id) == (False, FIRST)
    assert "its backtest could not be made (too large)" in why
    assert f"pml model promote {SECOND}" in why
    keep_backtest(found.models_folder, backtest(SECOND))
    assert (await publish_earned(found, told, "ann"))[0], "an earlier one of the same model is known"
    assert topic.model.backtest is not None


async def test_a_broker_that_is_away_leaves_the_model_for_later() -> None:
    async def away(found: Any) -> tuple[bool, str]:
        raise BrokerUnavailable("no broker")

    world = World(until_ms=START_MS + HOUR_MS)
    with pytest.raises(asyncio.CancelledError):
        await retrain(Schedule(every_s=7_200), world.steps(publish=away), None, world.told.append)
    assert world.told[1]["code"] == "BROKER_UNAVAILABLE"
    assert f"pml model promote {FIRST}" in world.told[1]["message"]


async def test_without_a_principal_a_model_only_lies_there(tmp_path: Path) -> None:
    job = Job("local", (), Limits(MIB, 1.0), None)
    published, why = await steps_of(settings_of(tmp_path), job, lambda: START_MS).publish(manifest(FIRST))
    assert (published, why) == (False, f"`pml model promote {FIRST}` lets it serve")


def test_the_newest_model_of_the_tenant_says_when_the_last_training_was(tmp_path: Path) -> None:
    found = Settings.load(data_dir=tmp_path)
    assert last_training_ms(found, "local") is None
    keep(found.models_folder, FIRST)
    assert last_training_ms(found, "local") == from_rfc3339(PROMOTED_AT)
    assert last_training_ms(found, "acme") is None


def test_a_training_that_began_is_known_after_a_restart_whatever_came_of_it(tmp_path: Path) -> None:
    found = Settings.load(data_dir=tmp_path)
    keep(found.models_folder, FIRST)
    job = Job("local", (), Limits(MIB, 1.0), None)
    for hours in (1, 2):
        steps_of(found, job, lambda: START_MS).begin(START_MS + hours * HOUR_MS)
    assert last_training_ms(found, "local") == START_MS + 2 * HOUR_MS
    assert last_training_ms(found, "acme") is None


@pytest.mark.parametrize("told", [b"[", b"[1]", b'{"local": 7}', b'{"local": "soon"}'])
def test_what_is_no_file_of_trainings_is_said(tmp_path: Path, told: bytes) -> None:
    found = Settings.load(data_dir=tmp_path)
    found.models_folder.mkdir(parents=True)
    (found.models_folder / "trainings.json").write_bytes(told)
    with pytest.raises(ConfigurationError, match=r"trainings\.json"):
        last_training_ms(found, "local")
    assert (found.models_folder / "trainings.json").read_bytes() == told


async def test_a_folder_that_cannot_be_written_is_told_and_the_next_one_comes() -> None:
    world = World(until_ms=START_MS + 3 * HOUR_MS)

    def full(now_ms: int) -> None:
        world.begun_ms.append(now_ms)
        if len(world.begun_ms) == 1:
            raise ConfigurationError("the disk is full")

    with pytest.raises(asyncio.CancelledError):
        await retrain(Schedule(every_s=3_600), world.steps(begin=full), None, world.told.append)
    assert world.events[:5] == ["started", "failed", "waiting", "started", "trained"]


async def test_old_models_are_removed_after_each_training_and_what_hinders_it_is_told() -> None:
    pruned: list[PMLError | list[str]] = [[SECOND, FIRST], BrokerUnavailable("no broker")]
    world = World(until_ms=START_MS + 2 * HOUR_MS, pruned=pruned)
    await world.run(Schedule(every_s=3_600))
    assert [event for event in world.events if event != "waiting"][:6] == [
        *("started", "trained", "pruned"),
        *("started", "trained", "failed"),
    ]
    removed, failed = (told for told in world.told if told["event"] in ("pruned", "failed"))
    assert line(removed).endswith(f"removed, for newer ones came: {SECOND}, {FIRST}")
    assert (failed["code"], failed["message"]) == ("BROKER_UNAVAILABLE", "old models stay: no broker")


async def test_people_read_a_line_for_each_thing_that_happens() -> None:
    world = World(until_ms=START_MS + 2 * HOUR_MS, outcomes=[OverLimit("too much"), ended()])
    await world.run(Schedule(every_s=3_600))
    assert [line(told).partition("Z ")[2] for told in world.told[:5]] == [
        "training: nothing was trained yet",
        "failed, the next one comes: too much (OVER_LIMIT)",
        "waiting: the last training was 2023-11-14T22:13:20Z",
        "training: the last one began 3600 s ago",
        f"{FIRST} (ranker), 12.3 s, 300 MiB; it serves from now on. ranker is right more often",
    ]
    busy = {**world.told[4], "gave_way_s": 4.5}
    assert "12.3 s (4.5 s of it gave way to others), 300 MiB" in line(busy)
