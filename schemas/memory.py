"""What `pml:recall` is asked and answers, and what an episode is (the spike, EpisodicEvent)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pml.schemas.base import Json, Record

EpisodeType = Literal["speculation_start", "task_complete", "ail_decision", "hil_decision"]
RecallMode = Literal["exact", "fuzzy", "hybrid"]

RECALL_TOOL = "pml:recall"
RECALLED_DEFAULT = 5
RECALLED_MAX = 1_000
DAY_S = 86_400
# The spike, §4: "similar past situations (last 7 days)".
INFLUENCE_WINDOW_S = 7 * DAY_S


class RecallRequest(Record):
    """Arguments of `pml:recall`. `context` is a run's initial context; its domain and complexity are keys.

    `tools` asks for what became of these tools in the same keys within `within_s` before `before`
    (RFC 3339); `k` is how many episodes are wanted.
    """

    workflow_type: str = ""
    context: dict[str, Json] = {}
    mode: RecallMode = "exact"
    k: Annotated[int, Field(ge=0, le=RECALLED_MAX)] = RECALLED_DEFAULT
    tools: tuple[str, ...] = ()
    before: str = ""
    within_s: Annotated[int, Field(gt=0)] = INFLUENCE_WINDOW_S


class ToolPast(Record):
    """How often a tool succeeded and failed in one context."""

    successes: int = 0
    failures: int = 0


class EpisodeRecord(Record):
    """One episode as programs get it. `timestamp` is RFC 3339; `data` has what its type has to say."""

    id: str
    workflow_id: str
    event_type: EpisodeType
    task_id: str | None = None
    timestamp: str
    tool_id: str | None = None
    success: bool | None = None
    confidence: float | None = None
    data: dict[str, Any] = {}


class Recalled(Record):
    """An episode that was found, by how many keys or how similar a context."""

    episode: EpisodeRecord
    keys: int
    similarity: float | None = None


class RecallAnswer(Record):
    """The answer of `pml:recall`."""

    episodes: tuple[Recalled, ...] = ()
    tools: dict[str, ToolPast] = {}
