"""What an operator declares so that a tool itself can say whether a write happened (`verify`).

A rule is looked at when the file is loaded, and again when it is used: whatever was published, only a tool
that reads is asked, and only what is safe to keep goes into the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pml.processors.workflow import conditions
from pml.schemas.calls import LATE_ANSWER_S, CallError
from pml.schemas.errors import PMLError
from pml.schemas.permissions import PermissionFile, VerifyRule
from pml.schemas.sanitiser import sanitise, sanitise_text

NAMES = frozenset({"result", "arguments"})
AMBIGUOUS = CallError(
    code="AMBIGUOUS_EFFECT",
    message="another write of what it changes ran in this session: nobody could tell their effects apart",
)
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class VerifyFailed(PMLError):
    """The tool cannot be asked, or what it says is no certain answer."""

    code = "VERIFY_FAILED"


def flaws(permissions: PermissionFile) -> Iterator[str]:
    """What is wrong with the rules of a file, each with the entry that has it."""
    for name, entry in permissions.tools.items():
        found = flaw(permissions, entry.verify) if entry.verify else ""
        if found:
            yield f"tools.{name}.verify: {found}"


def flaw(permissions: PermissionFile, rule: VerifyRule) -> str:
    """Why a rule cannot be used, in one sentence; empty where it can."""
    found = permissions.find(rule.tool)
    if found is None or found[1].approval != "auto" or found[1].declared_effect != "read":
        return f"{rule.tool} must have an entry of its own that reads, with approval: auto"
    try:
        strangers = conditions.nodes_of(rule.done) - NAMES
    except conditions.ConditionError as error:
        return f"done: {error}"
    if strangers:
        return f"done: only `result` and `arguments` are known, not {', '.join(sorted(strangers))}"
    if sanitise(rule.arguments) != rule.arguments or sanitise_text(rule.done) != rule.done:
        return "it is too large or holds what looks like a secret, and is kept in the log: leave that out"
    return ""


def rule_of(permissions: PermissionFile, tool: str) -> VerifyRule | None:
    """The rule of a tool's entry."""
    found = permissions.find(tool)
    return found[1].verify if found else None


def patience_ms(rule: VerifyRule, timeout_ms: int) -> int:
    """How long a write of which nobody knows may still be at work.

    Unless the operator knows better: from the moment that it was given up, a bridge that nobody hears of
    may have begun it just now, runs it to its time-out, and then waits for its late answer.
    """
    return (
        round(rule.after_s * 1_000) if rule.after_s is not None else timeout_ms + round(LATE_ANSWER_S * 1_000)
    )


def filled(template: Any, arguments: Mapping[str, Any]) -> Any:
    """A template with the arguments of the write in the places of their names.

    Raises:
        VerifyFailed: an argument is absent, or is no text or number in the middle of a text.
    """
    if isinstance(template, Mapping):
        return {name: filled(item, arguments) for name, item in template.items()}
    if isinstance(template, list):
        return [filled(item, arguments) for item in template]
    if not isinstance(template, str):
        return template
    whole = _PLACEHOLDER.fullmatch(template)
    if whole:
        return _argument(whole.group(1), arguments)
    return _PLACEHOLDER.sub(lambda match: _written(match.group(1), arguments), template)


def happened(done: str, result: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether an answer says that the write happened.

    Raises:
        VerifyFailed: the condition has no certain value, or is no boolean.
    """
    try:
        found = conditions.evaluate(done, {"result": result, "arguments": arguments})
    except conditions.ConditionError as error:
        raise VerifyFailed(str(error)) from None
    if not isinstance(found, bool):
        raise VerifyFailed(f"{done!r} must be true or false for every answer")
    return found


def _argument(name: str, arguments: Mapping[str, Any]) -> Any:
    if name not in arguments:
        raise VerifyFailed(f"the write has no argument {name!r} to ask with")
    return arguments[name]


def _written(name: str, arguments: Mapping[str, Any]) -> str:
    value = _argument(name, arguments)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise VerifyFailed(f"the argument {name!r} of the write is no text or number")
    return str(value)
