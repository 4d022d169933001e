"""Which session had a run, for a score that may come late: the store says so, else the session's log."""

from __future__ import annotations

import pytest

from pml.schemas.errors import StoreUnavailable
from pml.streams.client import new_id
from pml.streams.run_history import NoSuchRun
from pml.streams.scoring import session_of_run
from pml.streams.settings import Settings
from tests.log_writer import LogWriter, run_started
from tests.streams.test_run_history import RUN, keep, settings

__all__ = ["settings"]

pytestmark = [pytest.mark.integration]
NOWHERE = "http://127.0.0.1:1"


async def test_the_store_knows_the_session_of_a_run_and_none_of_another_tenant(settings: Settings) -> None:
    run_id, session_id = new_id("run"), new_id("ses")
    async with LogWriter(settings) as log:
        keep(settings, await log.write(session_id, *RUN, run_id=run_id))
    assert await session_of_run(settings, "local", run_id, None) == session_id
    assert await session_of_run(settings, "local", run_id, session_id) == session_id
    for tenant, session in (("local", new_id("ses")), ("other", None), ("other", session_id)):
        with pytest.raises(NoSuchRun):
            await session_of_run(settings, tenant, run_id, session)


async def test_where_the_store_is_behind_or_away_the_log_says_whether_there_was_a_run(
    settings: Settings,
) -> None:
    run_id, session_id = new_id("run"), new_id("ses")
    async with LogWriter(settings) as log:
        await log.write(session_id, *RUN, run_id=run_id)
        alone = (await log.write(run_id, run_started(), run_id=run_id))[0].session_id
    away = settings.model_copy(
        update={"clickhouse": settings.clickhouse.model_validate({"url": NOWHERE, "database": "pml"})}
    )
    assert await session_of_run(settings, "local", run_id, session_id) == session_id
    assert await session_of_run(settings, "local", run_id, None) == alone
    assert await session_of_run(away, "local", run_id, session_id) == session_id
    with pytest.raises(StoreUnavailable):
        await session_of_run(away, "local", run_id, None)
    with pytest.raises(NoSuchRun, match="never had a run run_typo"):
        await session_of_run(away, "local", "run_typo", session_id)
