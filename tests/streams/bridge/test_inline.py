"""`pml:inline` over a real bridge and broker: capabilities in the catalog, their tasks in a workflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.schemas.calls import CallEnded
from pml.schemas.codec import encode
from pml.schemas.inlining import INLINE_TOOL, InlineAnswer, InlineRequest
from pml.schemas.workflow import Task, Workflow
from tests.processors.discovery.catalog_records import capability
from tests.streams.bridge.running import World, bridge, run, world

pytestmark = pytest.mark.integration
WORKFLOW = Workflow(tasks=(Task(id="c1", capability="count"), Task(id="n1", tool="trouble:count")))


async def answered(stack: World, tenant: str) -> CallEnded:
    arguments = InlineRequest(workflow=WORKFLOW).model_dump(mode="json")
    call = run(INLINE_TOOL, tenant=tenant, arguments=arguments)
    await stack.send(call)
    return await stack.answer(call.call_id)


async def test_a_tenants_capabilities_take_the_place_of_their_calls(kafka: str, tmp_path: Path) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as stack, bridge(stack):
        mine = capability("count", "count words", "trouble:count", tenant="ann")
        await stack.send_raw(stack.topics.catalog, encode(mine), mine.key)
        ended = await answered(stack, "ann")
        assert ended.result is not None
        tasks = InlineAnswer.model_validate(ended.result.structured).workflow.tasks
        assert [(task.id[:4], task.tool) for task in tasks] == [
            ("c1__", "trouble:count"),
            ("n1", "trouble:count"),
        ]
        refused = await answered(stack, "bob")
        assert refused.error is not None
        assert (refused.status, refused.error.code) == ("error", "UNKNOWN_CAPABILITY")
