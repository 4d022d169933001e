"""`pml train --watch`: a training whenever one is due, each in a process of its own, until it is stopped."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pml.clickhouse.client import Store
from pml.clickhouse.training.reading import count_traces
from pml.schemas.catalog import ModelRecord
from pml.schemas.errors import ConfigurationError, PMLError
from pml.schemas.times import from_rfc3339, to_rfc3339
from pml.streams.catalog_topic import read_catalog
from pml.streams.clock import Clock
from pml.streams.connection import store_url
from pml.streams.learning.begun import last_begun_ms, note_begun
from pml.streams.learning.kept_backtests import latest_backtest
from pml.streams.learning.limited import MIB, Ended, Limits, TrainingFailed, run_limited
from pml.streams.learning.manifests import Manifest, list_manifests, read_sound, tenant_of
from pml.streams.learning.promotion import kept_back, model_key, one_at_a_time, promote_after, promoted_of
from pml.streams.learning.pruning import KEEP, prune
from pml.streams.settings import Settings

# How often new traces are counted, and how long a wait is at most: clocks are set, machines sleep.
COUNT_S = 60.0
WAIT_MOST_S = 3_600.0

Report = Mapping[str, Any]
Tell = Callable[[Report], None]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a training is due: so long after the last one began, or with so many runs that ended since.

    Raises:
        ConfigurationError: neither is given, or one is not above 0.
    """

    every_s: float | None = None
    new_traces: int | None = None

    def __post_init__(self) -> None:
        given = [limit for limit in (self.every_s, self.new_traces) if limit is not None]
        if not given or min(given) <= 0:
            raise ConfigurationError("--watch needs --every (such as 6h), --new-traces (such as 500) or both")

    def due(self, last_ms: int | None, now_ms: int, traces: int) -> str | None:
        """Why one is due now; None where none is. `last_ms`: when the last one began, None: never."""
        if last_ms is None:
            return "nothing was trained yet"
        if self.new_traces is not None and traces >= self.new_traces:
            return f"{traces} runs ended since the last one"
        if self.every_s is not None and now_ms - last_ms >= self.every_s * 1_000:
            return f"the last one began {(now_ms - last_ms) / 1_000:.0f} s ago"
        return None

    def wait_s(self, last_ms: int, now_ms: int) -> float:
        """How long nothing needs to be looked at."""
        left_s = WAIT_MOST_S if self.every_s is None else self.every_s - (now_ms - last_ms) / 1_000
        return max(0.001, min(left_s, COUNT_S if self.new_traces is not None else WAIT_MOST_S))


@dataclass(frozen=True, slots=True)
class Steps:
    """What the loop does: a test has its own.

    Attributes:
        count: the runs that ended since a time (milliseconds since 1970).
        begin: keeps that a training begins at a time, for who starts after us.
        train: one training, in a process of its own; what it wrote.
        publish: lets a model serve where it may; whether it does now, and why.
        prune: removes models that nobody needs any more; which.
        sleep: for so many seconds.
    """

    count: Callable[[int], Awaitable[int]]
    begin: Callable[[int], None]
    train: Callable[[], Awaitable[Ended]]
    publish: Callable[[Manifest], Awaitable[tuple[bool, str]]]
    prune: Callable[[], Awaitable[list[str]]]
    clock: Clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


async def retrain(schedule: Schedule, steps: Steps, last_ms: int | None, tell: Tell) -> None:
    """Train whenever it is due, until somebody cancels it; what fails is told, and the next one comes.

    Args:
        last_ms: when the last training was, so that a restart is no reason for another.
        tell: called with what happens (`event`: `waiting`, `started`, `trained`, `pruned`, `failed`; `at`).
    """
    told = _Teller(tell, steps.clock)
    waits = False
    while True:
        reason = await _due(schedule, steps, last_ms, told)
        if reason is None:
            assert last_ms is not None
            if not waits:
                told("waiting", last=to_rfc3339(last_ms))
            waits = True
            await steps.sleep(schedule.wait_s(last_ms, steps.clock()))
            continue
        waits, last_ms = False, steps.clock()
        told("started", reason=reason)
        await _train_once(steps, told, last_ms)


@dataclass(slots=True)
class _Teller:
    """Tells what happens, with its time; of a store that does not answer once."""

    tell: Tell
    clock: Clock
    silent: bool = False

    def __call__(self, event: str, **fields: Any) -> None:
        self.tell({"event": event, "at": to_rfc3339(self.clock()), **fields})


async def _due(schedule: Schedule, steps: Steps, last_ms: int | None, told: _Teller) -> str | None:
    traces = 0
    if schedule.new_traces is not None and last_ms is not None:
        try:
            traces, told.silent = await steps.count(last_ms), False
        except PMLError as error:
            if not told.silent:
                told("failed", code=error.code, message=f"new traces cannot be counted: {error.message}")
            told.silent = True
    return schedule.due(last_ms, steps.clock(), traces)


async def _train_once(steps: Steps, told: _Teller, now_ms: int) -> None:
    try:
        steps.begin(now_ms)
        ended = await steps.train()
        manifest = _manifest(ended)
    except PMLError as error:
        told("failed", code=error.code, message=error.message)
        return
    try:
        published, why = await steps.publish(manifest)
    except PMLError as error:
        told("failed", code=error.code, message=kept_back(error, manifest["model_id"]).message)
        return
    told(
        "trained",
        model_id=manifest["model_id"],
        serves=manifest["serves"],
        baseline=manifest["baseline"],
        reason=manifest["reason"],
        took_s=round(ended.took_s, 1),
        gave_way_s=round(ended.gave_way_s, 1),
        peak_mb=round(ended.peak_bytes / MIB),
        published=published,
        why=why,
    )
    await _prune_models(steps, told)


async def _prune_models(steps: Steps, told: _Teller) -> None:
    try:
        removed = await steps.prune()
    except PMLError as error:
        told("failed", code=error.code, message=f"old models stay: {error.message}")
        return
    if removed:
        told("pruned", removed=removed)


def _manifest(ended: Ended) -> Manifest:
    try:
        found: Manifest = orjson.loads(ended.output)
        found["model_id"], found["serves"], found["baseline"], found["reason"]
    except (ValueError, KeyError, TypeError) as error:
        raise TrainingFailed(f"pml train did not say what it made: {error!r}") from None
    return found


@dataclass(frozen=True, slots=True)
class Job:
    """What is trained again and again.

    Attributes:
        tenant: whose sessions.
        options: what each `pml train` is given beside `--no-promote --json`.
        limits: what each may take.
        principal: who lets models serve; None: they only lie there.
        keep: how many of its newest models stay.
    """

    tenant: str
    options: Sequence[str]
    limits: Limits
    principal: str | None
    keep: int = KEEP


def steps_of(settings: Settings, job: Job, clock: Clock) -> Steps:
    """The loop's steps on this machine."""
    command = [sys.executable, "-m", "pml.streams.cli", "train", "--no-promote", "--json", *job.options]
    environment = {**os.environ, **settings.environment()}

    async def count(since_ms: int) -> int:
        return await asyncio.to_thread(_counted, settings, job.tenant, to_rfc3339(since_ms))

    async def publish(manifest: Manifest) -> tuple[bool, str]:
        if job.principal is None:
            return False, f"`pml model promote {manifest['model_id']}` lets it serve"
        return await publish_earned(settings, manifest, job.principal)

    async def remove_old() -> list[str]:
        return await prune(settings, job.tenant, job.keep)

    def begin(now_ms: int) -> None:
        note_begun(settings.models_folder, job.tenant, now_ms)

    return Steps(
        count, begin, lambda: run_limited(command, environment, job.limits), publish, remove_old, clock
    )


async def publish_earned(settings: Settings, manifest: Mapping[str, Any], principal: str) -> tuple[bool, str]:
    """Let a model serve that was just trained; whether it does, and why.

    What serves in it was chosen by `pml train`: something learned only where it is surely better than the
    best baseline. The model that serves now stays where this is the same, and one that fell, or that a
    person went back from, stays out; so does one whose backtest could not be made (`not_done` of what its
    training said), unless an earlier one lies beside it.

    Raises:
        BrokerUnavailable: the broker does not answer.
        UndecodableRecord, UnknownMessage: what serves now, and which models fell, cannot be read.
        NoSuchModel, ModelDamaged: it is not there, or one of its files is not what was written.
        ModelsBusy: somebody else is letting models serve.
    """
    model_id = manifest["model_id"]
    async with one_at_a_time(settings):
        sound = await asyncio.to_thread(read_sound, settings.models_folder, model_id)
        tenant = tenant_of(sound)
        now = promoted_of(await read_catalog(settings, model_key(tenant)), tenant)
        against = _against(model_id, now) or _unplayed(settings, manifest)
        if against is not None:
            return False, against
        await promote_after(settings, sound, principal, now)
    return True, "it serves from now on"


def _against(model_id: str, now: ModelRecord | None) -> str | None:
    """Why a model is not to serve by itself; None: it may."""
    if now is not None and now.model_id == model_id:
        return "it is the one that serves"
    fallen = () if now is None else now.fallen or ()
    if (one := next((item for item in fallen if item.model_id == model_id), None)) is not None:
        again = f"`pml model promote {model_id}` lets it serve again"
        return f"it was rolled back ({one.at}), {one.why}: {again}"
    return None


def _unplayed(settings: Settings, manifest: Mapping[str, Any]) -> str | None:
    """Why nobody knows what a model would have begun though sessions were kept aside; None: somebody does."""
    model_id, failed = manifest["model_id"], manifest.get("not_done", {}).get("backtest")
    if failed is None or latest_backtest(settings.models_folder, model_id) is not None:
        return None
    lets = f"`pml model promote {model_id}` lets it serve all the same"
    return f"its backtest could not be made ({failed['message']}); {lets}"


def last_training_ms(settings: Settings, tenant: str) -> int | None:
    """When the last training of a tenant began, else when its newest model was made; None: neither is known.

    Raises:
        ConfigurationError: what is kept of it cannot be read.
    """
    begun_ms = last_begun_ms(settings.models_folder, tenant)
    if begun_ms is not None:
        return begun_ms
    manifests = (item for item in list_manifests(settings.models_folder) if tenant_of(item) == tenant)
    newest = next(manifests, None)
    return None if newest is None else from_rfc3339(newest["created_at"])


def _counted(settings: Settings, tenant: str, since: str) -> int:
    with Store.connect(store_url(settings), settings.clickhouse.database) as store:
        return count_traces(store, tenant, since)
