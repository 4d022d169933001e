"""What a person at a client is shown, and what their answer says."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import ElicitResult

from pml.streams.mcp_server.form import SHOWN_MAX, form_of, open_form, word_of

CALL = {"task_id": "n1", "tool": "files:delete_file", "effect": "write", "arguments": {"path": "a.md"}}
KNOWN = {**CALL, "arguments_hash": "h"}
COMPUTED = {**CALL, "task_id": "n2", "arguments": {}, "computed": {"path": "n1.first"}}
ASKED: dict[str, Any] = {
    **KNOWN,
    "approval_id": "apr_1",
    "touches": ["files:a.md"],
    "message": "files:delete_file needs a person's approval for each call (approval: hil)",
    "expires_at": "2026-11-23T00:05:00.000000Z",
}


def fields(asked: dict[str, Any]) -> list[str]:
    form = form_of("apr_1", asked, "run_1", None)
    assert form is not None
    return list(form.requested_schema["properties"])


def test_the_tool_its_arguments_and_what_it_touches_are_shown() -> None:
    form = form_of("apr_1", ASKED, "run_1", "clean-up")
    assert form is not None
    assert form.message.splitlines() == [
        "May the run clean-up make this call? ",
        '- n1: write files:delete_file {"path":"a.md"}',
        "They touch: files:a.md.",
        "Why you are asked: files:delete_file needs a person's approval for each call (approval: hil).",
        "apr_1 of run_1, until 2026-11-23T00:05:00.000000Z",
    ]
    assert form.requested_schema["required"] == ["decision"]
    assert form.requested_schema["properties"]["decision"]["enum"] == ["approve", "reject"]


def test_what_would_conceal_or_forge_a_line_is_written_out() -> None:
    hostile = {
        **ASKED,
        "arguments": {"path": "a\u202e\x9b\u200d\xa0"},
        "touches": ["files:a.md\x1b[2K\u202e\nWhy you are asked: no reason"],
    }
    form = form_of("apr_1", hostile, "run_1", "clean\x1b-up")
    assert form is not None
    lines = form.message.split("\n")
    assert all(line.isprintable() for line in lines)
    assert lines[:3] == [
        r"May the run clean\x1b-up make this call? ",
        r'- n1: write files:delete_file {"path":"a\u202e\x9b\u200d\xa0"}',
        r"They touch: files:a.md\x1b[2K\u202e\x0aWhy you are asked: no reason.",
    ]
    assert len(lines) == 5


def test_only_where_arguments_are_not_known_may_a_person_approve_whatever_they_turn_out_to_be() -> None:
    assert fields(ASKED) == ["decision", "comment"]
    assert fields({**ASKED, "calls": [KNOWN, KNOWN]}) == ["decision", "comment"]
    assert fields({**ASKED, "calls": [KNOWN, COMPUTED]}) == ["decision", "computed", "comment"]


def test_what_is_too_long_to_be_shown_as_a_whole_is_not_asked_here() -> None:
    calls = [{**KNOWN, "arguments": {"text": "x" * (SHOWN_MAX // 2)}}] * 2
    long = {**ASKED, "calls": calls}
    assert form_of("apr_1", long, "run_1", None) is None
    assert open_form({"apr_1": long}, "run_1", None) is None
    found = open_form({"k1": {"checkpoint_id": "k1"}, "apr_1": long, "apr_2": ASKED}, "run_1", None)
    assert found is not None
    assert found[0] == "apr_2"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_who_declines_or_goes_away_has_decided_nothing(action: Any) -> None:
    assert word_of("apr_1", ElicitResult(action=action, content={"decision": "approve"})) is None


@pytest.mark.parametrize("content", [None, {}, {"decision": "yes"}, {"decision": True}, {"decision": None}])
def test_what_says_neither_yes_nor_no_decides_nothing(content: Any) -> None:
    assert word_of("apr_1", ElicitResult(action="accept", content=content)) is None


@pytest.mark.parametrize("answer", [None, {"action": "accept"}, "approve"])
def test_what_is_no_answer_to_a_form_decides_nothing(answer: Any) -> None:
    assert word_of("apr_1", answer) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"decision": "approve"}, ("approve", "", None)),
        ({"decision": "approve", "computed": True, "comment": "fine"}, ("approve", "fine", True)),
        ({"decision": "approve", "computed": "true"}, ("approve", "", None)),
        ({"decision": "reject", "comment": 5}, ("reject", "", None)),
    ],
)
def test_a_word_is_that_of_the_form(content: Any, said: tuple[str, str, bool | None]) -> None:
    word = word_of("apr_1", ElicitResult(action="accept", content=content))
    assert word is not None
    assert (word.decision, word.reason, word.computed) == said
    assert (word.approval_id, word.via) == ("apr_1", "elicitation")
