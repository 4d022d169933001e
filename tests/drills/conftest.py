"""One broker, one store and one set of roles for all drills: each drill ends with everything running."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from pml.schemas.identifiers import DEFAULT_TENANT
from pml.streams.local.kafka import EmbeddedKafka
from pml.streams.threshold_overrides import chosen_context, publish_override
from tests.drills.workshop import SHORT, Workshop, drill_settings
from tests.fixtures.store import start_embedded

# Low, so that much of what is predicted is in flight where a role dies; some of it in vain.
SURE_ENOUGH = 0.3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workshop(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[Workshop]:
    """A stack for the drills of one module; it may name its `TIMEOUTS`."""
    timeouts = getattr(request.module, "TIMEOUTS", SHORT)
    folder: Path = tmp_path_factory.mktemp("drill")
    store = await asyncio.to_thread(start_embedded, folder)
    async with EmbeddedKafka(folder) as broker:
        settings = drill_settings(
            folder, broker.bootstrap_servers, store.url, f"drill-{uuid.uuid4().hex[:8]}", timeouts
        )
        found = Workshop(settings, broker, store, folder)
        try:
            await found.set_up()
            everywhere = chosen_context(DEFAULT_TENANT, None, None, None)
            await publish_override(settings, everywhere, SURE_ENOUGH, "drill")
            yield found
        finally:
            await found.tear_down()
            await asyncio.to_thread(store.stop)


@pytest.fixture
def say(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Keep what was counted for the summary of all tests."""
    return lambda text: record_property("drill", text)
