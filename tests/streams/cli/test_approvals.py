"""`pml approvals`: every call of a request in its own line, and what a word says."""

from __future__ import annotations

from typing import Any

import pytest

from pml.streams import approval_list
from pml.streams.cli import approvals
from tests.streams.cli.conftest import Pml

CALL = {
    "effect": "write",
    "tool": "files:delete_file",
    "touches": ["files:a.md"],
    "arguments": {"path": "a.md"},
}
ASKED: dict[str, Any] = {
    "approval_id": "apr_1",
    "status": "open",
    "run_id": "run_1",
    "session_id": "ses_1",
    "expires_at": "2026-11-23T00:05:00Z",
    "omitted": 2,
    "calls": [
        {**CALL, "task_id": "n1"},
        {**CALL, "task_id": "", "touches": [], "arguments": {}, "computed": {"path": "n1.first"}},
    ],
}


@pytest.fixture(autouse=True)
def _asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def found(*_: Any) -> Any:
        return ASKED

    async def listed(*_: Any) -> Any:
        return [ASKED]

    monkeypatch.setattr(approval_list, "list_approvals", listed)
    monkeypatch.setattr(approval_list, "find_approval", found)


def test_every_call_has_its_line_and_what_is_left_out_is_told(pml: Pml) -> None:
    shown = pml("approvals", "list").stdout.splitlines()
    assert [line.split()[:6] for line in shown[1:3]] == [
        ["apr_1", "open", "run_1", "n1", "files:delete_file", "write"],
        ["apr_1", "open", "run_1", "any", "files:delete_file", "write"],
    ]
    assert '{"path":"a.md"}' in shown[1]
    assert "{}, path from n1.first" in shown[2]
    assert "and 2 more, later" in shown[3]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("approve", "apr_1"), ("approve", False)),
        (("approve", "apr_1", "--computed"), ("approve", True)),
        (("reject", "apr_1", "--reason", "no"), ("reject", None)),
    ],
)
def test_a_word_says_how_far_it_goes_and_where_it_was_said(
    pml: Pml, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: tuple[str, bool | None]
) -> None:
    sent: list[Any] = []

    def decide(run_id: str, session_id: str, tenant: str, word: Any, **_: Any) -> None:
        sent.append((run_id, session_id, tenant, word))

    monkeypatch.setattr(approvals, "decide", decide)
    assert pml("approvals", *words).exit_code == 0
    ((run_id, session_id, tenant, word),) = sent
    assert (run_id, session_id, tenant) == ("run_1", "ses_1", "local")
    assert (word.decision, word.computed, word.via) == (*said, "command_line")


def test_names_that_differ_in_what_nobody_sees_do_not_look_the_same(
    pml: Pml, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = {**CALL, "task_id": "n1", "tool": "files:a\u200d", "touches": ["files:b\u200c"]}

    async def listed(*_: Any) -> Any:
        return [{**ASKED, "calls": [{**call, "arguments": {"path": "c\u00a0d"}}]}]

    monkeypatch.setattr(approval_list, "list_approvals", listed)
    shown = pml("approvals", "list").stdout
    assert r"files:a\u200d" in shown
    assert r"files:b\u200c" in shown
    assert r'{"path":"c\xa0d"}' in shown
