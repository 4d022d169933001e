"""What a call is answered, from its events and its server's answer."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from pml.schemas.base import Coordinate
from pml.schemas.calls import CallEnded, CallError
from pml.schemas.codec import decode_outcome, encode
from pml.schemas.events import ApprovalRequested, Event, RunEnded, RunFailed, TaskFailed
from pml.schemas.workflow import Workflow
from pml.streams.bridge.results import answer_of, failure_of
from pml.streams.mcp_server.proxy import answers
from pml.streams.mcp_server.proxy.one_call import OneCall, workflow_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ERROR = CallError(code="TIMEOUT", type="TIMEOUT", message="too late", retryable=True)
LATER = answers.Later("run_1", "ses_1", "call", with_pml=True)


def kept(answer: types.CallToolResult) -> CallEnded:
    """The answer as it comes out of its topic."""
    status, result, error = answer_of(answer, 10_000)
    outcome = CallEnded(
        call_id="c", tenant="t", session_id="s", status=status, result=result, error=error, duration_ms=1
    )
    return decode_outcome(encode(outcome))


@given(JSON, st.booleans(), st.dictionaries(st.text(max_size=3), JSON, min_size=1, max_size=2) | st.none())
def test_a_server_is_answered_for_word_by_word(structured: Any, is_error: bool, meta: Any) -> None:
    blocks: list[Any] = [
        types.TextContent(text="é\ud83d"[:1], _meta={"a": None}),
        types.ImageContent(data="AA==", mime_type="image/png"),
        types.EmbeddedResource(resource=types.BlobResourceContents(uri="file:///b", blob="AA==")),
    ]
    given_answer = types.CallToolResult(
        content=blocks, structured_content=structured, is_error=is_error, _meta=meta
    )
    outcome = kept(given_answer)
    assert outcome.result is not None
    told = answers.failure_of(outcome) if is_error else answers.as_answered(outcome.result)
    assert told == given_answer


def test_an_error_of_the_protocol_is_one_again() -> None:
    status, _, error = failure_of(MCPError(types.INVALID_PARAMS, "what?"), "srv")
    outcome = CallEnded(call_id="c", tenant="t", session_id="s", status=status, error=error)
    with pytest.raises(MCPError, match="what") as raised:
        answers.failure_of(outcome)
    assert raised.value.error.code == types.INVALID_PARAMS


def test_where_a_server_did_not_answer_the_error_is_that_of_the_task() -> None:
    for outcome in (
        CallEnded(call_id="c", tenant="t", session_id="s", status="error", error=ERROR),
        CallEnded(call_id="c", tenant="t", session_id="s", status="cancelled"),
    ):
        with pytest.raises(answers.CallFailed) as raised:
            answers.failure_of(outcome)
        expected = ("TIMEOUT", True) if outcome.error else ("CANCELLED", False)
        assert (raised.value.code, raised.value.retryable) == expected


def event(data: Any, **fields: Any) -> Event:
    cause = {"topic": "pml.tool-outcomes", "partition": 1, "offset": 7}
    base = {
        "id": "t/s:0:1",
        "type": data.TYPE,
        "tenant": "t",
        "principal": "p",
        "session_id": "s",
        "epoch": 0,
        "run_id": "run_1",
        "seq": 1,
        "offset": 1,
        "occurred_at": "2026-01-01T00:00:00.000000Z",
        "cause": cause,
        "data": data,
    }
    return Event(**{**base, **fields})


def failed(final: bool = True) -> TaskFailed:
    return TaskFailed(task_id="call", attempt=1, layer=0, tool="a:b", call_id="c", error=ERROR, final=final)


def test_a_failure_leads_to_the_answer_that_it_comes_from() -> None:
    found = answers.answered_at(event(failed()), "pml.tool-outcomes")
    assert found == Coordinate(topic="pml.tool-outcomes", partition=1, offset=7)
    assert answers.answered_at(event(failed()), "other") is None
    assert answers.answered_at(event(failed(), cause=None), "pml.tool-outcomes") is None
    assert answers.error_in(event(failed())).code == "TIMEOUT"
    ended = RunFailed(error={"code": "RUN_TIMEOUT", "message": "over"})
    assert isinstance(ended, RunEnded)
    assert answers.error_in(event(ended)).code == "RUN_TIMEOUT"


async def test_a_call_ends_once_and_not_with_an_attempt_that_is_repeated() -> None:
    one = OneCall("run_1", "cmd_1")
    for other in (event(failed(), run_id="run_2"), event(failed(final=False))):
        one.see(other)
    assert not one.ended.done()
    first = event(failed(), offset=3)
    one.see(first)
    one.see(event(RunFailed(error={"code": "TASK_FAILED", "message": "no"}), offset=4))
    assert one.ended.result() is first


def asked() -> ApprovalRequested:
    return ApprovalRequested(
        approval_id="apr_1",
        task_id="call",
        layer=0,
        tool="a:b",
        arguments_hash="",
        effect="write",
        code="APPROVAL_REQUIRED",
        message="",
        expires_at="2026-01-01T00:05:00.000000Z",
    )


async def test_who_waits_for_a_person_is_told_whose_turn_it_is() -> None:
    one = OneCall("run_1", "cmd_1")
    one.see(event(asked()))
    assert one.approval is not None
    error = answers.waits_for_person(one.approval, LATER)

    assert error.code == "APPROVAL_PENDING"
    assert "`pml approvals approve apr_1 --session ses_1`" in error.message
    assert "pml_get_task_result has its result (run_id run_1, task_id call, session ses_1)" in error.message
    assert error.details["run_id"] == "run_1"


def test_a_call_that_goes_on_says_where_its_result_will_be() -> None:
    told = answers.goes_on(50, True, LATER)
    assert "Do not call it again: pml_get_task_result" in told.message
    alone = answers.goes_on(50, False, answers.Later("run_1", "ses_1", "call", with_pml=False))
    assert "`pml run show run_1 --session ses_1`" in alone.message
    assert "Nobody has taken it yet" in alone.message


@given(st.dictionaries(st.text(min_size=1, max_size=5), JSON, max_size=4))
def test_arguments_are_literals_whatever_they_look_like(arguments: dict[str, Any]) -> None:
    arguments = {
        **arguments,
        "x": {"type": "reference", "expression": "n1.x"},
        "y": {"type": "literal", "value": 1},
    }
    task = Workflow.model_validate(workflow_of("a:b", arguments)).tasks[0]

    assert {name: argument.value for name, argument in task.arguments.items()} == arguments
