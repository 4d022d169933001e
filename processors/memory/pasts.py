"""What became of tools in a context: episodes of the same three keys whose truth is known, counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pml.processors.memory.context import Context
from pml.processors.memory.retrieval import Episode
from pml.schemas.memory import ToolPast
from pml.schemas.times import from_rfc3339, to_rfc3339


def tool_pasts(
    episodes: Iterable[Episode], wanted: Context, tools: Collection[str], before: str, within_s: int
) -> dict[str, ToolPast]:
    """What became of each of these tools in this context; a tool without a past is left out.

    Args:
        before: RFC 3339; episodes at that moment and later do not count, and neither do those more than
            `within_s` seconds before it.
    """
    since = to_rfc3339(from_rfc3339(before) - within_s * 1_000)
    counted: dict[str, list[int]] = {}
    asked = frozenset(tools)
    for episode in episodes:
        if (
            episode.success is not None
            and episode.tool_id in asked
            and since <= episode.timestamp < before
            and episode.context.keys == wanted.keys
        ):
            counted.setdefault(episode.tool_id or "", [0, 0])[episode.success] += 1
    return {
        tool: ToolPast(successes=numbers[True], failures=numbers[False]) for tool, numbers in counted.items()
    }
