"""`verify`: what an operator may declare, how its arguments are filled, and what its answer says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml.processors.workflow.verify_rule import VerifyFailed, filled, flaw, flaws, happened, patience_ms
from pml.schemas.permissions import PermissionFile, VerifyRule

RULE = {"tool": "files:read", "arguments": {"path": "{path}"}, "done": "result.text == arguments.text"}
READ = {"scope": "readonly", "approval": "auto"}


def file(rule: dict[str, Any] | None = None, read: dict[str, Any] | None = None) -> PermissionFile:
    entries = {
        "files:write": {"scope": "filesystem", "approval": "auto", "verify": {**RULE, **(rule or {})}},
        "files:read": READ if read is None else read,
    }
    return PermissionFile.model_validate({"tools": entries})


def test_a_rule_that_asks_a_reading_tool_has_no_flaw() -> None:
    assert list(flaws(file())) == []


@pytest.mark.parametrize(
    ("rule", "read", "told"),
    [
        ({"tool": "files:write"}, None, "files:write must have an entry of its own that reads"),
        ({"tool": "web:get"}, None, "web:get must have an entry"),
        ({}, {"scope": "filesystem", "approval": "auto"}, "files:read must have an entry"),
        ({}, {"scope": "readonly", "approval": "hil"}, "files:read must have an entry"),
        ({"done": "result.text =="}, None, "done: 'result.text ==' is not an expression"),
        ({"done": "len(result.text) > 0"}, None, "done: Call is not allowed"),
        ({"done": "answer.text == 'x' and path"}, None, "not answer, path"),
        ({"arguments": {"api_key": "sk-live-4242424242424242"}}, None, "looks like a secret"),
        ({"done": "result.token == 'sk-live-4242424242424242'"}, None, "looks like a secret"),
        ({"arguments": {"text": "x" * 20_000}}, None, "too large"),
    ],
)
def test_a_rule_that_cannot_be_used_is_named(
    rule: dict[str, Any], read: dict[str, Any] | None, told: str
) -> None:
    (found,) = flaws(file(rule, read))
    assert found.startswith("tools.files:write.verify: ")
    assert told in found


def test_a_glob_that_reads_lets_its_tools_be_asked() -> None:
    permissions = file({"tool": "git:log"})
    assert flaw(permissions, permissions.tools["files:write"].verify or VerifyRule(**RULE))
    wider = PermissionFile(tools={**permissions.tools, "git:*": permissions.tools["files:read"]})
    assert not list(flaws(wider))


@pytest.mark.parametrize(
    ("template", "arguments", "found"),
    [
        ("{path}", {"path": "a.md"}, "a.md"),
        ("{count}", {"count": [1, 2]}, [1, 2]),
        ("notes/{path}", {"path": "a.md"}, "notes/a.md"),
        ("{a}-{b}", {"a": 1, "b": 2.5}, "1-2.5"),
        ("plain", {}, "plain"),
        (7, {}, 7),
        (None, {}, None),
        ({"q": ["{a}", {"deep": "is {a}"}]}, {"a": "x"}, {"q": ["x", {"deep": "is x"}]}),
        ("{a}", {"a": "{b}", "b": "no"}, "{b}"),
        ("{}", {"": "no"}, "{}"),
    ],
)
def test_a_template_takes_the_arguments_of_the_write(template: Any, arguments: Any, found: Any) -> None:
    assert filled(template, arguments) == found


@pytest.mark.parametrize(
    ("template", "arguments", "told"),
    [
        ("{path}", {}, "no argument 'path'"),
        ("of {path}", {"path": None}, "no text or number"),
        ("of {path}", {"path": True}, "no text or number"),
        ("of {path}", {"path": ["a"]}, "no text or number"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(template: str, arguments: Any, told: str) -> None:
    with pytest.raises(VerifyFailed, match=told):
        filled(template, arguments)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(value=JSON)
def test_a_name_alone_is_the_whole_argument_whatever_it_is(value: Any) -> None:
    assert filled({"x": "{a}"}, {"a": value}) == {"x": value}


@pytest.mark.parametrize(
    ("done", "verdict"),
    [
        ("result.text == arguments.text", True),
        ("result.size > 5", False),
        ("'b' in arguments.names and not (result.size == 2)", True),
    ],
)
def test_a_condition_reads_the_answer_and_the_arguments(done: str, verdict: bool) -> None:
    arguments = {"text": "x", "names": ["a", "b"]}
    assert happened(done, {"text": "x", "size": 1}, arguments) is verdict


@pytest.mark.parametrize(
    "done", ["result.gone", "result.size", "result.text", "result.size / 0 == 1", "result"]
)
def test_what_is_not_certain_is_no_answer(done: str) -> None:
    with pytest.raises(VerifyFailed):
        happened(done, {"text": "true", "size": 1}, {})


@pytest.mark.parametrize(("after_s", "patience"), [(None, 630_000), (0, 0), (1.5, 1_500)])
def test_a_write_may_be_at_work_until_nobody_takes_its_answer(after_s: float | None, patience: int) -> None:
    assert patience_ms(VerifyRule(**RULE, after_s=after_s), timeout_ms=30_000) == patience
