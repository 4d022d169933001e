"""`mcp-permissions.yaml`: what an operator allows (CONTRACT.md, Configuration)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, field_validator

from pml.schemas.base import Json, Model
from pml.schemas.calls import Effect
from pml.schemas.times import to_rfc3339

READING_SCOPES = frozenset({"minimal", "readonly"})
_GLOB = re.compile(r"[*?\[]")


class RetryRule(Model):
    """How often a call that may be repeated is tried again, and how long it waits first."""

    attempts: Annotated[int, Field(ge=1, le=10)] = 3
    backoff_ms: Annotated[int, Field(ge=0, le=60_000)] = 500


class VerifyRule(Model):
    """How to find out whether a write happened: a tool that reads, and what must hold of its answer.

    In texts of `arguments`, `{name}` is the argument of that name of the write; a text that is nothing else
    is its whole value. `done` is a condition over `result`, the answer, and `arguments`, those of the write.
    `after_s` is how long a write whose outcome is unknown may still be at work; where it is absent, for as
    long as the bridge would take its answer.
    """

    tool: Annotated[str, Field(min_length=3, max_length=300, pattern=r"^[^:*?\[]+:[^*?\[]+$")]
    arguments: dict[str, Json] = {}
    done: Annotated[str, Field(min_length=1, max_length=2_000)]
    after_s: Annotated[float | None, Field(ge=0, le=3_600)] = None


class Permission(Model):
    """One entry, for a tool or a glob of tools."""

    scope: str = "admin"
    approval: Literal["auto", "hil"] = Field(
        default="hil", validation_alias=AliasChoices("approval", "approvalMode", "approval_mode")
    )
    effect: Effect | None = None
    when: dict[str, list[Json]] = {}
    touches: tuple[str, ...] | None = None
    shared: bool = False
    open_world: bool | None = None
    speculate_open_world: bool = False
    idempotent: bool | None = None
    retryable: RetryRule | None = None
    cacheable: bool = True
    ttl_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    timeout_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    verify: VerifyRule | None = None
    definition: str | None = None
    approved_at: str | None = None

    @field_validator("retryable", mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        if value is True:
            return RetryRule()
        if value is False:
            return None
        return {"attempts": value} if isinstance(value, int) else value

    @field_validator("verify", mode="before")
    @classmethod
    def _no_name_alone(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError(
                "a tool's name alone does not say what its answer means: "
                "write {tool: SERVER:TOOL, arguments: {…}, done: CONDITION}"
            )
        return value

    @field_validator("approved_at", mode="before")
    @classmethod
    def _yaml_times(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if not isinstance(value, datetime):
            return value
        return to_rfc3339(round((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * 1_000))

    @property
    def declared_effect(self) -> Effect:
        """Read for the reading scopes, else write, unless the entry says it."""
        return self.effect or ("read" if self.scope in READING_SCOPES else "write")


class PermissionFile(Model):
    """The whole file; the most specific entry of a tool wins."""

    version: Literal[1] = 1
    tools: dict[str, Permission] = {}

    @field_validator("tools", mode="before")
    @classmethod
    def _nothing_yet(cls, value: Any) -> Any:
        return {} if value is None else value

    @cached_property
    def _globs(self) -> tuple[str, ...]:
        patterns = [pattern for pattern in self.tools if _GLOB.search(pattern)]
        return tuple(sorted(patterns, key=_specificity, reverse=True))

    def find(self, tool: str) -> tuple[str, Permission] | None:
        """The pattern and entry that decide about a tool; None where nothing names it."""
        if tool in self.tools and not _GLOB.search(tool):
            return tool, self.tools[tool]
        for pattern in self._globs:
            if fnmatchcase(tool, pattern):
                return pattern, self.tools[pattern]
        return None


def _specificity(pattern: str) -> tuple[int, int, str]:
    """A glob with more written out is more specific; ties go by name, so that order does not matter."""
    literal = len(re.sub(r"\[[^]]*\]|[*?]", "", pattern))
    return literal, -len(pattern), pattern
