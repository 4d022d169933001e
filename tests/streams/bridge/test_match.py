"""`pml:match` over a real bridge and broker: capabilities in the catalog, an intent in, a workflow out."""

from __future__ import annotations

from pathlib import Path

import pytest

from pml.schemas.calls import ToolResult
from pml.schemas.codec import encode
from pml.schemas.matching import MATCH_TOOL, MatchAnswer, MatchRequest
from tests.processors.discovery.catalog_records import capability
from tests.streams.bridge.running import World, bridge, run, world

pytest.importorskip("wordllama", reason="install requirements.lock")
pytestmark = pytest.mark.integration
INTENT = "count the words of the quarterly report"
UNRELATED = "book a flight to Tokyo for my family"


async def answered(stack: World, intent: str, tenant: str, claimed: str | None = None) -> MatchAnswer:
    """What a call of a tenant is answered, whichever tenant its arguments name."""
    request = MatchRequest(tenant=claimed or tenant, intent=intent, context=("path",))
    call = run(MATCH_TOOL, tenant=tenant, arguments=request.model_dump(mode="json"))
    await stack.send(call)
    ended = await stack.answer(call.call_id)
    assert ended.status == "ok", ended.error
    assert isinstance(ended.result, ToolResult)
    return MatchAnswer.model_validate(ended.result.structured)


async def test_an_intent_means_what_was_learned_for_it_and_nothing_of_others(
    kafka: str, tmp_path: Path
) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as stack, bridge(stack):
        for tenant in ("ann", "bob"):
            mine = capability(
                f"of_{tenant}", INTENT if tenant == "ann" else "ping", "trouble:count", tenant=tenant
            )
            await stack.send_raw(stack.topics.catalog, encode(mine), mine.key)
        met = await answered(stack, INTENT, "ann")
        assert (met.capability_id, met.threshold) == ("cap_of_ann", 0.7)
        assert met.confidence > met.threshold
        assert met.workflow is not None
        assert [task.tool for task in met.workflow.tasks] == ["trouble:count"]

        near = await answered(stack, "count words in the quarterly report", "ann")
        assert near.capability_id == "cap_of_ann"
        for tenant, intent in (("ann", UNRELATED), ("bob", INTENT), ("carl", INTENT)):
            unmet = await answered(stack, intent, tenant, claimed="ann")
            assert (unmet.capability_id, unmet.workflow) == (None, None)
            assert unmet.confidence < unmet.threshold
            assert unmet.reason
            assert tenant == "ann" or "cap_of_ann" not in unmet.model_dump_json()
            assert unmet.suggestions


async def test_arguments_that_are_none_are_an_error_of_the_call(kafka: str, tmp_path: Path) -> None:
    async with world(kafka, tmp_path, ["trouble"]) as stack, bridge(stack):
        call = run(MATCH_TOOL, arguments={"intent": 1})
        await stack.send(call)
        ended = await stack.answer(call.call_id)
        assert ended.error is not None
        assert ended.error.code == "BAD_ARGUMENTS"
