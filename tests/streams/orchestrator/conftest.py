"""An installation for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.streams.orchestrator.world import Installation


@pytest.fixture
async def installation(kafka: str, tmp_path: Path) -> AsyncIterator[Installation]:
    async with Installation(kafka, tmp_path).opened() as opened:
        yield opened
