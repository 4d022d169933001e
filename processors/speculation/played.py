"""Sessions as they went on: what each run was, and every call that it made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pml.processors.learning.scene import Past


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A call that a run made: how long its tool took, and what it gave, None where nobody knows."""

    tool: str
    arguments: Mapping[str, Any]
    result: Any
    tool_ms: float


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A run of a session. `element` is what it is to a model, None where a model knows no such runs.

    `request` is what was visible of the request; times are Unix times.
    """

    element: Past | None
    request: str
    started_ms: int
    ended_ms: int
    calls: tuple[PlayedCall, ...]


def paces(sessions: Sequence[Sequence[PlayedRun]]) -> dict[str, float]:
    """How long each tool takes, in ms: the median of its calls in these sessions."""
    found: dict[str, list[float]] = {}
    for call in _all_calls(sessions):
        found.setdefault(call.tool, []).append(call.tool_ms)
    return {tool: sorted(times)[(len(times) - 1) // 2] for tool, times in found.items()}


def _all_calls(sessions: Sequence[Sequence[PlayedRun]]) -> Iterator[PlayedCall]:
    return (call for session in sessions for run in session for call in run.calls)
