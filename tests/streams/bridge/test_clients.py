"""The Kafka clients of a bridge."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from pml.streams.bridge.clients import clients
from pml.streams.long_polls import LongPolls
from tests.fixtures.settings import folder_settings


@pytest.mark.integration
async def test_the_consumer_of_the_calls_polls_long_when_idle(kafka: str, tmp_path: Path) -> None:
    async with clients(folder_settings(tmp_path, kafka, f"clients-{uuid4().hex[:8]}")) as made:
        planned_by = made.consumer._fetcher._get_actions_per_node.__self__
        assert isinstance(planned_by, LongPolls)
