"""What a person at the other end of a connection is shown, and what their answer says. Pure.

The client's program shows it; a model never sees it, nor can a call of a tool answer it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mcp_types import ElicitRequestFormParams, ElicitResult

from pml.schemas.commands import ApprovalDecide
from pml.streams.approval_text import call_lines, calls_of
from pml.streams.printable import printable

SHOWN_MAX = 16_000
"""Characters. Consent is to what was shown: a request that is longer is for the command line."""
COMMENT_MAX = 2_000
_WORDS: dict[str, Literal["approve", "reject"]] = {"approve": "approve", "reject": "reject"}


def form_of(
    approval_id: str, asked: Mapping[str, Any], run_id: str, name: str | None
) -> ElicitRequestFormParams | None:
    """The request as a form; None where it is too long to be shown as a whole."""
    message = "\n".join(_lines(approval_id, asked, run_id, name))
    if len(message) > SHOWN_MAX:
        return None
    schema = {"type": "object", "properties": _fields(asked), "required": ["decision"]}
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def word_of(approval_id: str, answer: object) -> ApprovalDecide | None:
    """What a person said; None where they decided nothing: they declined to, or went away."""
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return None
    content = answer.content or {}
    decision, comment = content.get("decision"), content.get("comment")
    if not isinstance(decision, str) or decision not in _WORDS:
        return None
    return ApprovalDecide(
        approval_id=approval_id,
        decision=_WORDS[decision],
        reason=comment[:COMMENT_MAX] if isinstance(comment, str) else "",
        computed=content.get("computed") is True or None,
        via="elicitation",
    )


def open_form(
    waits_for: Mapping[str, Mapping[str, Any]], run_id: str, name: str | None
) -> tuple[str, ElicitRequestFormParams] | None:
    """The first request of a run to a person that can be shown, with its id."""
    for approval_id, asked in waits_for.items():
        form = form_of(approval_id, asked, run_id, name) if "approval_id" in asked else None
        if form is not None:
            return approval_id, form
    return None


def _lines(approval_id: str, asked: Mapping[str, Any], run_id: str, name: str | None) -> list[str]:
    what = "these calls" if len(calls_of(asked)) > 1 else "this call"
    before = "Nothing of it has run. " if asked.get("calls") else ""
    touched = ", ".join(asked["touches"]) or "nothing"
    lines = (
        f"May the run {name or run_id} make {what}? {before}",
        *(f"- {line}" for line in call_lines(asked)),
        f"They touch: {touched}.",
        f"Why you are asked: {asked['message']}.",
        f"{approval_id} of {run_id}, until {asked['expires_at']}",
    )
    # No text of an agent or a tool may begin a line of its own.
    return [printable(line, keep="") for line in lines]


def _fields(asked: Mapping[str, Any]) -> dict[str, Any]:
    decision = {"type": "string", "title": "Decision", "enum": list(_WORDS)}
    comment = {"type": "string", "title": "Comment", "maxLength": COMMENT_MAX}
    if all(call.get("arguments_hash") for call in calls_of(asked)):
        return {"decision": decision, "comment": comment}
    told = "Also approve arguments that nobody knows yet; else you are asked again when they are known."
    computed = {"type": "boolean", "title": "Also unknown arguments", "description": told, "default": False}
    return {"decision": decision, "computed": computed, "comment": comment}
