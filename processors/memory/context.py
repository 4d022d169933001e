"""The context of a run, as episodes are kept and found by (the spike, §2.2, `hashContext`).

Whoever writes episodes down and whoever looks for them calls the same function, so that equal contexts
have equal keys and equal texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pml.processors.workflow.learning import complexity_of, domain_of, learned_name
from pml.processors.workflow.state import UNNAMED
from pml.schemas.canonical import canonical_json, content_hash
from pml.schemas.errors import PMLError

# A context of the log has up to 10 KB; what it is about stands in fewer words.
TEXT_LENGTH_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Context:
    """Three keys (type, domain, complexity), each `default` where a run names none, and a text for what
    is only similar.
    """

    keys: tuple[str, str, str] = (UNNAMED, UNNAMED, UNNAMED)
    text: str = ""

    @property
    def hash(self) -> str:
        """One name for the three keys, 32 hex digits."""
        return content_hash(canonical_json(self.keys))


def matching(keys: tuple[str, str, str], others: tuple[str, str, str]) -> int:
    """How many of the three keys are equal."""
    return sum(mine == theirs for mine, theirs in zip(keys, others, strict=True))


def context_of(workflow_type: str, values: Any) -> Context:
    """The context of a run by its type and its sanitised initial context (any JSON value)."""
    fields: dict[str, Any] = values if isinstance(values, dict) else {}
    kind, domain, complexity = learned_name(workflow_type), domain_of(fields), complexity_of(fields)
    text = _text({**fields, "workflow_type": kind, "domain": domain, "complexity": complexity})
    return Context((kind, domain, complexity), text)


def _text(fields: dict[str, Any]) -> str:
    try:
        return canonical_json(fields).decode()[:TEXT_LENGTH_MAX]
    except PMLError:
        # What JSON cannot carry unchanged was never in the log; somebody asks with it all the same.
        return " ".join(sorted(map(str, fields)))[:TEXT_LENGTH_MAX]
