"""Pages of a result: put together they are the result, whatever is in it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from pml.schemas.base import Coordinate
from pml.schemas.calls import ToolResult
from pml.streams.gateway.runs import NoSuchTask
from pml.streams.mcp_server.bounds import ANSWER_BYTES_MAX, wire_bytes
from pml.streams.mcp_server.failures import InvalidArguments, NoResult
from pml.streams.mcp_server.server import told
from pml.streams.mcp_server.task_result import (
    PageAnswer,
    TaskResultAsked,
    page,
    render,
    task_of,
    written,
)
from pml.streams.mcp_server.tools import TOOLS
from pml.streams.run_summary import RunSummary, TaskSummary

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def asked(**fields: Any) -> TaskResultAsked:
    return TaskResultAsked(run_id="run_1", task_id="n1", **fields)


def pages(text: str, limit: int) -> list[PageAnswer]:
    found = [page(asked(limit=limit), text)]
    while (offset := found[-1].next_offset) is not None:
        found.append(page(asked(limit=limit, offset=offset), text))
    return found


@hypothesis_settings(max_examples=30, deadline=None)
@given(
    st.text(alphabet=st.sampled_from('a"\\\né😀\x01'), max_size=30),
    st.integers(1, 900),
    st.integers(500, 20_000),
)
def test_pages_put_together_are_the_result(text: str, repeat: int, limit: int) -> None:
    whole = text * repeat

    found = pages(whole, limit)

    assert "".join(part.text for part in found) == whole
    for part in found:
        assert len(part.text) <= limit
        assert part.total == len(whole)
        answered = told(TOOLS["pml_get_task_result"], part)
        assert wire_bytes(answered.model_dump(mode="json", by_alias=True)) <= ANSWER_BYTES_MAX


def test_a_page_of_plain_text_is_as_long_as_was_asked_for() -> None:
    first, second, third = pages("x" * 50_000, 20_000)

    assert [len(part.text) for part in (first, second, third)] == [20_000, 20_000, 10_000]
    assert (first.next_offset, second.next_offset, third.next_offset) == (20_000, 40_000, None)
    assert render(first).startswith("characters 0 to 20000 of 50000; the next page has offset 20000\nxxx")


def test_the_text_repeats_a_page_that_has_room_twice() -> None:
    assert render(page(asked(), "a file\n")) == "characters 0 to 7 of 7\na file\n"


def test_behind_the_end_there_is_no_page() -> None:
    assert page(asked(offset=3), "abc").text == ""
    with pytest.raises(InvalidArguments, match="3 characters"):
        page(asked(offset=4), "abc")


def test_pretty_has_texts_as_they_are_and_the_rest_as_json() -> None:
    result = ToolResult(content=[{"type": "text", "text": "a\nb"}, IMAGE], structured={"n": 1})

    told = written(result, "pretty")

    assert told.startswith("a\nb\n\n{\n")
    assert '"mimeType": "image/png"' in told
    assert told.endswith('{\n  "n": 1\n}')


def test_raw_is_what_was_recorded() -> None:
    result = ToolResult(content=[IMAGE], structured={"n": 1})

    assert ToolResult.model_validate(orjson.loads(written(result, "raw"))) == result


def test_a_task_that_is_not_there_and_one_without_a_result_differ() -> None:
    place = Coordinate(topic="pml.tool-outcomes", partition=3, offset=1)
    done, failed = (
        TaskSummary("completed", result_ref=place),
        TaskSummary("failed", error={"code": "TIMEOUT"}),
    )
    summary = RunSummary("run_1", "s1", "local", results={"n1": done, "n2": failed})

    assert task_of(summary, "n1") == done
    with pytest.raises(NoSuchTask):
        task_of(summary, "n3")
    with pytest.raises(NoResult) as raised:
        task_of(summary, "n2")
    assert raised.value.details == {"status": "failed", "error": {"code": "TIMEOUT"}}
