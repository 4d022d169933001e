"""A call is made only with everything that it needs."""

from __future__ import annotations

from pml.schemas.catalog import CatalogRecord
from tests.processors.session_world import SessionWorld, data_of
from tests.processors.workflow.test_decide import reference, task


def test_of_a_tool_that_is_not_listed_every_argument_is_required() -> None:
    world = SessionWorld()
    world.start({"tasks": [task("a", "1", tool="files:parse"), task("b", reference("a.gone"))]})
    server = world.catalog.servers["files"]
    others = tuple(tool for tool in server.tools if tool.name != "read_file")
    data = server.model_copy(update={"tools": others})
    world.catalog = world.catalog.with_record(CatalogRecord(kind="tool", id="files", data=data))
    failed = data_of(world.answer(world.call_of("a"), {"text": "x"}), "task.failed")
    assert (failed.task_id, failed.error.code) == ("b", "UNRESOLVED_ARGUMENT")
